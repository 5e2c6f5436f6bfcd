/**
 * The schemas of row keys (API: Table.row_key_schema): the fields that a row key is made of, for the columns of SQL.
 * They are kept with the table; their rules are those of the API's definition.
 */
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { Type, Type_Struct as Struct } from '../generated/google/bigtable/admin/v2/types_pb.ts';

const RESERVED = ['_key', '_timestamp'];
const MAX_DELIMITER_BYTES = 50;
const FIELD = 'row_key_schema';

/** INVALID_ARGUMENT where it breaks a rule. `families`: the names of the table's column families. */
export function checkRowKeySchema({ fields, encoding }: Struct, families: readonly string[]): void {
  const names = new Set<string>();
  for (const { fieldName, type } of fields) {
    if (fieldName === '') throw wrong('every field must have a name');
    const name = quote(fieldName, 100);
    if (RESERVED.includes(fieldName)) throw wrong(`field ${name} has a reserved name`);
    if (families.includes(fieldName)) throw wrong(`field ${name} has the name of a column family`);
    if (names.has(fieldName)) throw wrong(`field ${name} stands twice`);
    names.add(fieldName);
    checkType(name, type);
  }
  const form = encoding?.encoding;
  switch (form?.case) {
    case undefined:
      throw wrong('it must have an encoding');
    case 'singleton':
      if (fields.length !== 1) throw wrong(`the encoding singleton is for one field, not ${fields.length}`);
      return;
    case 'delimitedBytes': {
      const { length } = form.value.delimiter;
      if (length < 1 || length > MAX_DELIMITER_BYTES)
        throw wrong(`the delimiter must have 1 to ${MAX_DELIMITER_BYTES} bytes, not ${length}`);
      return;
    }
    case 'orderedCodeBytes':
      return;
  }
}

/** A schema may be added, and removed by a caller that ignores warnings; it may not be replaced. */
export function checkRowKeySchemaChange(
  present: boolean,
  given: Struct | undefined,
  families: readonly string[],
  ignoresWarnings: boolean,
): void {
  if (given === undefined) {
    if (present && !ignoresWarnings)
      throw wrong('it is removed only if ignore_warnings is set: readers of its columns would fail');
    return;
  }
  if (present) throw new BigtableError(Code.FAILED_PRECONDITION, `${FIELD}: a schema of row keys cannot be replaced`);
  checkRowKeySchema(given, families);
}

/** A scalar type with an encoding. */
function checkType(name: string, type: Type | undefined): void {
  if (type === undefined) throw wrong(`field ${name} has no type`);
  const { kind } = type;
  switch (kind.case) {
    case 'bytesType':
    case 'stringType':
    case 'int64Type':
    case 'timestampType':
      if (kind.value.encoding?.encoding.case === undefined) throw wrong(`the type of field ${name} has no encoding`);
      return;
    case undefined:
      throw wrong(`field ${name} has no type`);
    default:
      throw wrong(`the type of field ${name} must be bytes, string, int64 or timestamp, not ${kind.case}`);
  }
}

function wrong(message: string): BigtableError {
  return invalidArgument(`${FIELD}: ${message}`, { field: FIELD });
}
