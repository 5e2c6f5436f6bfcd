import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Code } from '../../base/index.ts';
import { Type_StructSchema as StructSchema } from '../generated/google/bigtable/admin/v2/types_pb.ts';
import { checkRowKeySchema, checkRowKeySchemaChange } from './row-key-schema.ts';

type Init = MessageInitShape<typeof StructSchema>;
const INT = { kind: { case: 'int64Type', value: { encoding: { encoding: { case: 'bigEndianBytes', value: {} } } } } };
const TEXT = { kind: { case: 'stringType', value: { encoding: { encoding: { case: 'utf8Bytes', value: {} } } } } };
const ORDERED = { encoding: { case: 'orderedCodeBytes', value: {} } };
const field = (fieldName: string, type: object = INT): object => ({ fieldName, type });
const delimited = (bytes: number): object => ({
  encoding: { case: 'delimitedBytes', value: { delimiter: Buffer.alloc(bytes, '#') } },
});
const struct = (fields: object[], encoding: object | undefined) =>
  create(StructSchema, { fields, ...(encoding && { encoding }) } as Init);

describe('a schema of row keys', () => {
  test('has named scalar fields and an encoding', () => {
    for (const schema of [
      struct([field('a')], { encoding: { case: 'singleton', value: {} } }),
      struct([field('a'), field('b', TEXT)], ORDERED),
      struct([field('a'), field('b', TEXT)], delimited(1)),
      struct([], delimited(50)),
    ])
      checkRowKeySchema(schema, ['f']);
  });

  test('of another form is INVALID_ARGUMENT', () => {
    for (const schema of [
      struct([field('a')], undefined),
      struct([field('a')], {}),
      struct([field('a'), field('b')], { encoding: { case: 'singleton', value: {} } }),
      struct([], { encoding: { case: 'singleton', value: {} } }),
      struct([field('a')], delimited(0)),
      struct([field('a')], delimited(51)),
      struct([field('')], ORDERED),
      struct([field('f')], ORDERED),
      struct([field('_key')], ORDERED),
      struct([field('_timestamp')], ORDERED),
      struct([field('a'), field('a')], ORDERED),
      struct([{ fieldName: 'a' }], ORDERED),
      struct([field('a', { kind: { case: 'int64Type', value: {} } })], ORDERED),
      struct([field('a', { kind: { case: 'boolType', value: {} } })], ORDERED),
      struct([field('a', { kind: { case: 'arrayType', value: { elementType: INT } } })], ORDERED),
      struct([field('a', { kind: { case: 'structType', value: {} } })], ORDERED),
    ])
      assert.throws(() => checkRowKeySchema(schema, ['f']), { code: Code.INVALID_ARGUMENT });
  });

  test('is added, removed where warnings are ignored, and never replaced', () => {
    const schema = struct([field('a')], ORDERED);
    checkRowKeySchemaChange(false, schema, [], false);
    checkRowKeySchemaChange(false, undefined, [], false);
    checkRowKeySchemaChange(true, undefined, [], true);
    assert.throws(() => checkRowKeySchemaChange(true, undefined, [], false), { code: Code.INVALID_ARGUMENT });
    for (const ignoresWarnings of [true, false])
      assert.throws(() => checkRowKeySchemaChange(true, schema, [], ignoresWarnings), {
        code: Code.FAILED_PRECONDITION,
      });
  });
});
