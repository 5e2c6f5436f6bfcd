/** Arbitrary pieces of the data model, as any client of the Bigtable API could send them, and rows as messages. */
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import {
  type ByteString,
  fromBytes,
  INT64_MAX,
  INT64_MIN,
  int64,
  type Int64,
  toBigInt,
  toBytes,
  toText,
} from '../../base/index.ts';
import type { Bound, RowFilter } from '../../filter/index.ts';
import type {
  Cell,
  FamilySchema,
  GcRule,
  Mutation,
  ReadModifyWriteRule,
  RowRange,
  TableSchema,
  TimestampRange,
} from '../../model/index.ts';
import {
  ColumnSchema,
  FamilySchema as FamilyMessage,
  type Row,
  RowSchema,
} from '../generated/google/bigtable/v2/data_pb.ts';

/** Objects with the usual prototype, so that they compare equal to those that the product makes. */
function record<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

export const byteString: fc.Arbitrary<ByteString> = fc.uint8Array({ maxLength: 12 }).map((bytes) => fromBytes(bytes));
export const rowKey: fc.Arbitrary<ByteString> = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => fromBytes(bytes));
export const familyName = fc.constantFrom('a', 'cf', 'anchor', 'contents', 'x-y_z.9', '__proto__', 'constructor');
export const anyInt64: fc.Arbitrary<Int64> = fc
  .oneof(
    fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
    fc.constantFrom(0n, 1n, INT64_MIN, INT64_MAX, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n)),
  )
  .map(int64);
/** -1 means the server's time on the wire. */
export const timestamp = anyInt64.filter((value) => value !== -1);
/** Buffers, since both sides of the wire pass on Buffers. */
export const value: fc.Arbitrary<Buffer> = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));

/** Starts are always sent on the wire, and an end of 0 cannot be sent. */
export const timestampRange: fc.Arbitrary<TimestampRange> = record({
  start: anyInt64,
  end: fc.option(
    anyInt64.filter((end) => end !== 0),
    { nil: undefined },
  ),
});

const bound: fc.Arbitrary<Bound | undefined> = fc.option(record({ value: byteString, closed: fc.boolean() }), {
  nil: undefined,
});
const cells = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });

/** The kinds of filters that hold no other filter. */
export const simpleFilters: readonly fc.Arbitrary<RowFilter>[] = [
  fc.constant({ kind: 'sink' }),
  fc.constant({ kind: 'passAll' }),
  fc.constant({ kind: 'blockAll' }),
  byteString.map((regex) => ({ kind: 'rowKeyRegex', regex })),
  fc.double({ noNaN: true }).map((probability) => ({ kind: 'rowSample', probability })),
  familyName.map((regex) => ({ kind: 'familyNameRegex', regex })),
  byteString.map((regex) => ({ kind: 'columnQualifierRegex', regex })),
  record({ kind: fc.constant('columnRange' as const), family: familyName, start: bound, end: bound }),
  timestampRange.map((range) => ({ kind: 'timestampRange', range })),
  byteString.map((regex) => ({ kind: 'valueRegex', regex })),
  record({ kind: fc.constant('valueRange' as const), start: bound, end: bound }),
  byteString.map((mask) => ({ kind: 'valueBitmask', mask })),
  cells.map((n) => ({ kind: 'cellsPerRowOffset', cells: n })),
  cells.map((n) => ({ kind: 'cellsPerRowLimit', cells: n })),
  cells.map((n) => ({ kind: 'cellsPerColumnLimit', cells: n })),
  fc.constant({ kind: 'stripValue' }),
  fc.constantFrom('x', 'a-label').map((label) => ({ kind: 'applyLabel', label })),
];

export const rowFilter: fc.Arbitrary<RowFilter> = fc.letrec<{ filter: RowFilter }>((tie) => {
  const part = tie('filter');
  const optional = fc.option(part, { nil: undefined });
  return {
    filter: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(...simpleFilters),
      fc.array(part, { maxLength: 3 }).map((filters): RowFilter => ({ kind: 'chain', filters })),
      fc.array(part, { maxLength: 3 }).map((filters): RowFilter => ({ kind: 'interleave', filters })),
      record({ kind: fc.constant('condition' as const), predicate: part, whenTrue: optional, whenFalse: optional }),
    ),
  };
}).filter;

const column = { family: familyName, qualifier: byteString };

/** Time ranges of a deletion hold something, as the API demands. */
const deletionRange = timestampRange.filter(
  ({ start, end }) => start === undefined || end === undefined || start < end,
);

export const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  record({
    kind: fc.constant('setCell' as const),
    ...column,
    timestamp: fc.option(timestamp, { nil: undefined }),
    value,
  }),
  record({ kind: fc.constant('addToCell' as const), ...column, timestamp: anyInt64, input: fc.oneof(anyInt64, value) }),
  record({
    kind: fc.constant('mergeToCell' as const),
    ...column,
    timestamp: anyInt64,
    state: fc.option(value, { nil: undefined, freq: 5 }),
  }),
  record({
    kind: fc.constant('deleteFromColumn' as const),
    ...column,
    range: fc.option(deletionRange, { nil: undefined }),
  }),
  record({ kind: fc.constant('deleteFromFamily' as const), family: familyName }),
  record({ kind: fc.constant('deleteFromRow' as const) }),
);

export const rule: fc.Arbitrary<ReadModifyWriteRule> = record({
  ...column,
  change: fc.oneof(
    record({ kind: fc.constant('append' as const), suffix: value }),
    record({ kind: fc.constant('increment' as const), amount: anyInt64 }),
  ),
});

export const rowRange: fc.Arbitrary<RowRange> = record({
  start: byteString,
  end: fc.option(rowKey, { nil: undefined }),
}).filter(({ start, end }) => end === undefined || start <= end);

export const gcRule: fc.Arbitrary<GcRule> = fc.letrec<{ rule: GcRule }>((tie) => ({
  rule: fc.oneof(
    { maxDepth: 3 },
    fc.integer({ min: 1, max: 2 ** 31 - 1 }).map((versions): GcRule => ({ kind: 'maxVersions', versions })),
    fc.integer({ min: 1000, max: Number.MAX_SAFE_INTEGER }).map((ageMicros): GcRule => ({ kind: 'maxAge', ageMicros })),
    fc.array(tie('rule'), { maxLength: 3 }).map((rules): GcRule => ({ kind: 'union', rules })),
    fc.array(tie('rule'), { maxLength: 3 }).map((rules): GcRule => ({ kind: 'intersection', rules })),
  ),
})).rule;

export const family: fc.Arbitrary<FamilySchema> = record({
  name: familyName,
  gcRule: fc.option(gcRule, { nil: undefined }),
}).map(({ name, gcRule: given }) => ({ name, ...(given && { gcRule: given }) }));

export const tableSchema: fc.Arbitrary<TableSchema> = record({
  name: fc.constantFrom('projects/p/instances/i/tables/t', 'projects/p/instances/i/tables/other'),
  id: fc.constant(''),
  granularity: fc.constantFrom('millis' as const, 'micros' as const),
  families: fc
    .uniqueArray(family, { selector: (each) => each.name, maxLength: 4 })
    .map((families) => Object.fromEntries(families.map((each) => [each.name, each]))),
  deletionProtection: fc.boolean(),
});

export const cell: fc.Arbitrary<Cell> = record({
  ...column,
  timestamp: anyInt64,
  value,
  labels: fc.option(fc.constantFrom(['x'], ['a-label']), { nil: undefined }),
}).map(({ labels, ...rest }) => ({ ...rest, ...(labels && { labels }) }));

/** Families and columns in the order of their bytes, versions in the order given. */
export function rowMessage(key: ByteString, cells: readonly Cell[]): Row {
  const row = create(RowSchema, { key: toBytes(key) });
  const sorted = [...cells].sort((a, b) => order(a.family, b.family) || order(a.qualifier, b.qualifier));
  let before: Cell | undefined;
  for (const cell of sorted) {
    if (cell.family !== before?.family) row.families.push(create(FamilyMessage, { name: toText(cell.family) }));
    const family = row.families.at(-1);
    if (cell.family !== before?.family || cell.qualifier !== before.qualifier)
      family?.columns.push(create(ColumnSchema, { qualifier: toBytes(cell.qualifier) }));
    const given = { timestampMicros: toBigInt(cell.timestamp), value: cell.value, labels: [...(cell.labels ?? [])] };
    family?.columns.at(-1)?.cells.push({ $typeName: 'google.bigtable.v2.Cell', ...given });
    before = cell;
  }
  return row;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
