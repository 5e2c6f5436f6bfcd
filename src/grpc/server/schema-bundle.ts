/**
 * The contents of schema bundles (API: google.bigtable.admin.v2.SchemaBundle): descriptors of protobuf messages, or
 * schemas of Avro. A bundle is whole: all that it refers to is in it.
 */
import { createFileRegistry, type DescEnum, type DescMessage, type FileRegistry } from '@bufbuild/protobuf';
import { FieldDescriptorProto_Label as Label, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { SchemaBundle } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { decodeRequest } from '../codec/messages.ts';
import { checkAvroSchema } from './avro-schema.ts';

/**
 * INVALID_ARGUMENT where the contents cannot be understood or are not whole. FAILED_PRECONDITION where they may not
 * replace those of `present`: they are of the other kind, or values written by those may be misread, which
 * `ignoresWarnings` allows.
 */
export function checkSchemaBundle(
  { type }: SchemaBundle,
  present: SchemaBundle | undefined,
  ignoresWarnings: boolean,
): void {
  if (type.case === undefined)
    throw invalidArgument('schema_bundle must have proto_schema or avro_schema', { field: 'schema_bundle.type' });
  if (present !== undefined && present.type.case !== type.case)
    throw new BigtableError(Code.FAILED_PRECONDITION, 'the type of a schema bundle cannot change');
  if (type.case === 'avroSchema') {
    const { jsonSchemas } = type.value;
    if (jsonSchemas.length === 0) throw wrong('avro_schema.json_schemas must not be empty');
    for (const [i, text] of jsonSchemas.entries()) checkAvroSchema(text, `avro_schema.json_schemas[${i}]`);
    return;
  }
  const registry = registryOf(type.value.protoDescriptors);
  if (present?.type.case === 'protoSchema' && !ignoresWarnings) {
    const change = breakingChange(registryOf(present.type.value.protoDescriptors), registry);
    if (change !== undefined)
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `the schema bundle is not compatible with the present one: ${change}; set ignore_warnings to replace it`,
      );
  }
}

function registryOf(descriptors: Uint8Array): FileRegistry {
  if (descriptors.length === 0) throw wrong('proto_schema.proto_descriptors must not be empty');
  const set = decodeRequest(FileDescriptorSetSchema, descriptors);
  if (set.file.length === 0) throw wrong('proto_schema.proto_descriptors has no file');
  const names = new Set(set.file.map(({ name }) => name));
  for (const { name, dependency } of set.file) {
    const missing = dependency.find((each) => !names.has(each));
    if (missing !== undefined)
      throw wrong(`${quote(name, 200)} imports ${quote(missing, 200)}, which the bundle lacks (--include_imports)`);
  }
  try {
    return createFileRegistry(set);
  } catch (error) {
    throw wrong(`proto_schema.proto_descriptors: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** What a reader of values that the first schema wrote would lack or misread in the second one, in words. */
function breakingChange(before: FileRegistry, after: FileRegistry): string | undefined {
  for (const desc of before) {
    if (desc.kind === 'message') {
      const now = after.getMessage(desc.typeName);
      if (now === undefined) return `message ${desc.typeName} is gone`;
      const change = changeOfMessage(desc, now);
      if (change !== undefined) return change;
    } else if (desc.kind === 'enum') {
      const now = after.getEnum(desc.typeName);
      if (now === undefined) return `enum ${desc.typeName} is gone`;
      const gone = goneValue(desc, now);
      if (gone !== undefined) return `value ${gone} of enum ${desc.typeName} is gone`;
    }
  }
  return undefined;
}

function changeOfMessage(before: DescMessage, after: DescMessage): string | undefined {
  const now = new Map(after.fields.map((field) => [field.number, field.proto]));
  for (const { number, proto: was } of before.fields) {
    const is = now.get(number);
    const words = `field ${number} of ${before.typeName}`;
    if (is === undefined) return `${words} is gone`;
    if (is.type !== was.type || is.typeName !== was.typeName) return `${words} has another type`;
    if ((is.label === Label.REPEATED) !== (was.label === Label.REPEATED)) return `${words} is repeated or not`;
  }
  return undefined;
}

function goneValue(before: DescEnum, after: DescEnum): number | undefined {
  const now = new Set(after.values.map(({ number }) => number));
  return before.values.find(({ number }) => !now.has(number))?.number;
}

function wrong(message: string): BigtableError {
  return invalidArgument(message, { field: 'schema_bundle' });
}
