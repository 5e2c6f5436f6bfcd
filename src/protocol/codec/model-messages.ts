/** The model's types as messages: cells, mutations, ranges, schemas and their changes, filters. */
import type { Bound, RowFilter } from '../../filter/index.ts';
import { decodeSchema, encodeSchema, schemaPath } from '../../metadata/index.ts';
import type {
  AggregateKind,
  Cell,
  FamilySchema,
  GcRule,
  GroupCompression,
  GroupLayout,
  Idempotency,
  LocalityGroup,
  Mutation,
  Mutations,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
  TableSchema,
  TimestampRange,
  ValueType,
} from '../../model/index.ts';
import {
  byteString,
  bytes,
  choice,
  type Codec,
  count,
  type FieldsOf,
  flag,
  integer,
  lazy,
  list,
  listOf,
  mapOf,
  mappedMessage,
  type MessageCodec,
  message,
  number,
  oneOf,
  optional,
  present,
  required,
  text,
  whole,
} from '../../protobuf/index.ts';
import type { FamilyChange } from '../../service/index.ts';
import { labels } from './read-batch.ts';
import { MutationsCodec, setCellCodec } from './set-cells.ts';

export const rowRange: MessageCodec<RowRange> = message('RowRange', {
  start: required(1, byteString),
  end: present(2, byteString),
});

const timestampRange: MessageCodec<TimestampRange> = message('TimestampRange', {
  start: optional(1, integer),
  end: optional(2, integer),
});

// filters

const bound: MessageCodec<Bound> = message('Bound', { value: required(1, byteString), closed: required(2, flag) });
const anyFilter: Codec<RowFilter> = lazy('RowFilter', () => rowFilter);
const regex = { regex: required(1, byteString) };
const cells = { cells: required(1, whole) };

export const rowFilter: MessageCodec<RowFilter> = oneOf<RowFilter>('RowFilter', {
  chain: [1, { filters: list(1, anyFilter) }],
  interleave: [2, { filters: list(1, anyFilter) }],
  condition: [
    3,
    { predicate: required(1, anyFilter), whenTrue: optional(2, anyFilter), whenFalse: optional(3, anyFilter) },
  ],
  sink: [4, {}],
  passAll: [5, {}],
  blockAll: [6, {}],
  rowKeyRegex: [7, regex],
  rowSample: [8, { probability: required(1, number) }],
  familyNameRegex: [9, regex],
  columnQualifierRegex: [10, regex],
  columnRange: [11, { family: required(1, text), start: optional(2, bound), end: optional(3, bound) }],
  timestampRange: [12, { range: required(1, timestampRange) }],
  valueRegex: [13, regex],
  valueRange: [14, { start: optional(1, bound), end: optional(2, bound) }],
  valueBitmask: [15, { mask: required(1, byteString) }],
  cellsPerRowOffset: [16, cells],
  cellsPerRowLimit: [17, cells],
  cellsPerColumnLimit: [18, cells],
  stripValue: [19, {}],
  applyLabel: [20, { label: required(1, text) }],
});

// mutations

/** The input of an aggregate: a number or bytes. */
const aggregateInput = mappedMessage(
  oneOf<
    | { readonly kind: 'integer'; readonly value: number | bigint }
    | { readonly kind: 'bytes'; readonly value: Uint8Array }
  >('AggregateInput', { integer: [1, { value: required(1, integer) }], bytes: [2, { value: required(1, bytes) }] }),
  (value: number | bigint | Uint8Array) =>
    value instanceof Uint8Array ? { kind: 'bytes', value } : { kind: 'integer', value },
  ({ value }) => value,
);

const column = { family: required(1, text), qualifier: required(2, byteString) };

export const mutation: MessageCodec<Mutation> = oneOf<Mutation>('Mutation', {
  setCell: [1, setCellCodec],
  addToCell: [2, { ...column, timestamp: required(3, integer), input: required(4, aggregateInput) }],
  mergeToCell: [3, { ...column, timestamp: required(3, integer), state: present(4, bytes) }],
  deleteFromColumn: [4, { ...column, range: optional(3, timestampRange) }],
  deleteFromFamily: [5, { family: required(1, text) }],
  deleteFromRow: [6, {}],
});

const mutations: MessageCodec<Mutations> = new MutationsCodec(mutation);

const mutationFields = { row: required(1, byteString), mutations: required(2, mutations) };

const idempotency: MessageCodec<Idempotency> = message('Idempotency', {
  token: required(1, byteString),
  startMs: optional(2, number),
});

export const rowMutations: MessageCodec<RowMutations> = message('RowMutations', {
  ...mutationFields,
  idempotency: optional(3, idempotency),
});

/** The mutations of a row of the table with that id. */
type TableMutations = RowMutations & { readonly tableId: string; readonly schemaVersion?: number | undefined };

export const tableMutations: MessageCodec<TableMutations> = message<TableMutations>('TableMutations', {
  ...mutationFields,
  tableId: required(3, text),
  schemaVersion: optional(4, count),
  idempotency: optional(5, idempotency),
});

export const readModifyWriteRule: MessageCodec<ReadModifyWriteRule> = message('ReadModifyWriteRule', {
  ...column,
  change: required(
    3,
    oneOf<ReadModifyWriteRule['change']>('ReadModifyWriteChange', {
      append: [1, { suffix: required(1, bytes) }],
      increment: [2, { amount: required(1, integer) }],
    }),
  ),
});

// cells

export const cell: MessageCodec<Cell> = message('Cell', {
  ...column,
  timestamp: required(3, integer),
  value: required(4, bytes),
  labels: optional(5, labels),
});

// schemas

/** A schema, as its file in the lock service has it: with its own version and features. */
export const tableSchema: MessageCodec<TableSchema> = mappedMessage(
  message<{ readonly path: string; readonly file: Uint8Array }>('TableSchema', {
    path: required(1, text),
    file: required(2, bytes),
  }),
  (schema: TableSchema) => ({ path: schemaPath(schema.name), file: encodeSchema(schema) }),
  ({ path, file }) => decodeSchema(path, file),
);

const gcRule: MessageCodec<GcRule> = oneOf<GcRule>('GcRule', {
  maxVersions: [1, { versions: required(1, number) }],
  maxAge: [2, { ageMicros: required(1, number) }],
  union: [
    3,
    {
      rules: list(
        1,
        lazy('GcRule', () => gcRule),
      ),
    },
  ],
  intersection: [
    4,
    {
      rules: list(
        1,
        lazy('GcRule', () => gcRule),
      ),
    },
  ],
});

const valueType: MessageCodec<ValueType> = message('ValueType', {
  aggregate: optional(
    1,
    message<NonNullable<ValueType['aggregate']>>('AggregateType', {
      kind: required(1, choice<AggregateKind>('AggregateKind', { sum: 1, min: 2, max: 3, hll: 4 })),
      input: required(2, choice('AggregateInputType', { int64: 1, bytes: 2 })),
    }),
  ),
  encoded: optional(2, text),
});

/** Quotas are set apart. */
export const familySchema: MessageCodec<FamilySchema> = message<Omit<FamilySchema, 'quotaBytes'>>('FamilySchema', {
  name: required(1, text),
  generation: optional(2, count),
  gcRule: optional(3, gcRule),
  valueType: optional(4, valueType),
  group: optional(5, text),
});

const groupFields: FieldsOf<LocalityGroup> = {
  blockSizeBytes: optional(1, count),
  compression: optional(
    2,
    message<GroupCompression>('GroupCompression', {
      kind: required(1, choice('CompressionKind', { none: 1, lz4: 2, zstd: 3, 'zstd-dict': 4, 'two-pass': 5 })),
      level: optional(2, count),
    }),
  ),
  bloomFilter: optional(3, choice('BloomFilter', { none: 1, row: 2, 'row-column': 3 })),
  inMemory: optional(4, flag),
};

export const groupLayout: MessageCodec<GroupLayout> = mapOf(
  'GroupLayout',
  message<GroupLayout[string]>('GroupOfLayout', { ...groupFields, families: optional(5, listOf('Families', text)) }),
);

/** Fields of the API that are kept without effect. */
export const extraFields = mapOf('ExtraFields', text);

export const familyChange: MessageCodec<FamilyChange> = oneOf<FamilyChange>('FamilyChange', {
  create: [1, { family: required(1, familySchema) }],
  update: [
    2,
    {
      family: required(1, familySchema),
      fields: list(2, choice('FamilyField', { gcRule: 1, valueType: 2 })),
    },
  ],
  drop: [3, { name: required(1, text) }],
});
