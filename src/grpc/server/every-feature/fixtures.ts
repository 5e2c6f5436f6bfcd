/**
 * Every kind of filter, mutation, aggregate and garbage-collection rule of the API, with what it must do; and the sizes
 * that a server takes.
 *
 * Invariant: a probe looks at the effect, not only at the code. Each has a table of its own with the families f and g.
 */
import assert from 'node:assert/strict';
import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { BigtableTableAdmin } from '../../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { type GcRule, GcRuleSchema } from '../../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../../generated/google/bigtable/v2/bigtable_pb.ts';
import { MutationSchema, RowFilterSchema } from '../../generated/google/bigtable/v2/data_pb.ts';
import { type ApiClient, codeOf } from '../fixtures.ts';

type RowFilterInit = MessageInitShape<typeof RowFilterSchema>;
type MutationInit = MessageInitShape<typeof MutationSchema>;
type GcRuleInit = MessageInitShape<typeof GcRuleSchema>;

/** What a probe works with: `table` is the full name of its table. */
export interface Subject {
  readonly api: ApiClient;
  readonly table: string;
  /** Waits where the server collects garbage some time later; false when it has had its time. */
  settle(): Promise<boolean>;
}

export interface Probe {
  readonly section: 'filter' | 'mutation' | 'aggregate' | 'rule';
  /** The name of the field in the definition. */
  readonly name: string;
  run(subject: Subject): Promise<void>;
}

export interface SizeProbe {
  readonly name: string;
  /** The limits that servers may have, ascending. */
  readonly sizes: readonly number[];
  /** True where a request of that size takes a second. */
  readonly isLarge?: true;
  /** Throws where the server refuses that size. */
  run(subject: Subject, size: number): Promise<unknown>;
}

const data = Bigtable.method;
const admin = BigtableTableAdmin.method;
const equal: (seen: unknown, expected: unknown, message?: string) => void = assert.deepEqual;
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const DAY_SECONDS = 86_400;

export const PARENT = 'projects/project/instances/features';

/** Makes the table of a probe. */
export async function makeTable(api: ApiClient, tableId: string): Promise<string> {
  await api.ask(admin.createTable, { parent: PARENT, tableId, table: { columnFamilies: { f: {}, g: {} } } });
  return `${PARENT}/tables/${tableId}`;
}

const set = (column: string, timestampMicros: bigint, value: string): MutationInit => {
  const [familyName = '', qualifier = ''] = column.split(':');
  const columnQualifier = bytes(qualifier);
  return {
    mutation: { case: 'setCell', value: { familyName, columnQualifier, timestampMicros, value: bytes(value) } },
  };
};
const mutate = ({ api, table }: Subject, row: string, ...mutations: MutationInit[]) =>
  api.ask(data.mutateRow, { tableName: table, rowKey: bytes(row), mutations });

interface SeenCell {
  readonly key: string;
  readonly value: Buffer;
  readonly labels: readonly string[];
}

/** The cells of a read; `key` is "row family:qualifier@microseconds". */
async function read({ api, table }: Subject, filter?: RowFilterInit): Promise<SeenCell[]> {
  const answers = await api.stream(data.readRows, { tableName: table, ...(filter && { filter }) });
  let [row, family, qualifier] = ['', '', ''];
  return answers
    .flatMap(({ chunks }) => chunks)
    .map((chunk) => {
      if (chunk.rowKey.length > 0) row = Buffer.from(chunk.rowKey).toString('latin1');
      family = chunk.familyName ?? family;
      if (chunk.qualifier !== undefined) qualifier = Buffer.from(chunk.qualifier).toString('latin1');
      const key = `${row} ${family}:${qualifier}@${chunk.timestampMicros}`;
      return { key, value: Buffer.from(chunk.value), labels: chunk.labels };
    });
}
const linesOf = async (subject: Subject, filter?: RowFilterInit): Promise<string[]> =>
  (await read(subject, filter)).map(
    ({ key, value, labels }) => `${key}=${value.toString('latin1')}${labels.map((label) => ` ${label}`).join('')}`,
  );

/** The names of the fields of a oneof. */
function kindsOf(desc: DescMessage, oneof: string): Map<string | undefined, string> {
  const { fields } = desc.oneofs.find(({ name }) => name === oneof)!;
  return new Map(fields.map(({ localName, name }) => [localName, name]));
}
export const FILTER_KINDS = kindsOf(RowFilterSchema, 'filter');
export const MUTATION_KINDS = kindsOf(MutationSchema, 'mutation');
export const RULE_KINDS = kindsOf(GcRuleSchema, 'rule');

/** The rows that filters are applied to. */
const [A_NEW, A_OLD, B, C] = ['a f:x@3000=1', 'a f:x@1000=2', 'b f:x@1000=4', 'c g:y@1000=3'] as const;
const ALL: readonly string[] = [A_NEW, A_OLD, B, C];
const all = { case: 'passAllFilter' as const, value: true };
const ofValue = (regex: string): RowFilterInit => ({ filter: { case: 'valueRegexFilter', value: bytes(regex) } });
const ofFamily = (regex: string): RowFilterInit => ({ filter: { case: 'familyNameRegexFilter', value: regex } });
const chain = (...filters: RowFilterInit[]): RowFilterInit => ({ filter: { case: 'chain', value: { filters } } });
const interleave = (...filters: RowFilterInit[]): RowFilterInit => ({
  filter: { case: 'interleave', value: { filters } },
});
const stripped: RowFilterInit = { filter: { case: 'stripValueTransformer', value: true } };

/** A filter, and what it passes of the four cells. Its name is that of its outermost kind. */
const FILTERS: readonly (readonly [RowFilterInit['filter'], readonly string[]])[] = [
  [chain(ofFamily('f'), ofValue('[14]')).filter, [A_NEW, B]],
  [interleave(ofValue('2'), ofValue('1')).filter, [A_NEW, A_OLD]],
  [
    {
      case: 'condition',
      value: { predicateFilter: ofValue('4'), trueFilter: { filter: all }, falseFilter: ofFamily('g') },
    },
    [B, C],
  ],
  [{ case: 'sink', value: true }, ALL],
  [all, ALL],
  [{ case: 'blockAllFilter', value: true }, []],
  [{ case: 'rowKeyRegexFilter', value: bytes('b|d') }, [B]],
  [{ case: 'rowSampleFilter', value: 1e-9 }, []],
  [{ case: 'familyNameRegexFilter', value: 'g' }, [C]],
  [{ case: 'columnQualifierRegexFilter', value: bytes('y') }, [C]],
  [
    {
      case: 'columnRangeFilter',
      value: {
        familyName: 'f',
        startQualifier: { case: 'startQualifierClosed', value: bytes('x') },
        endQualifier: { case: 'endQualifierOpen', value: bytes('y') },
      },
    },
    [A_NEW, A_OLD, B],
  ],
  [{ case: 'timestampRangeFilter', value: { startTimestampMicros: 2000n, endTimestampMicros: 4000n } }, [A_NEW]],
  [{ case: 'valueRegexFilter', value: bytes('[34]') }, [B, C]],
  [
    {
      case: 'valueRangeFilter',
      value: {
        startValue: { case: 'startValueOpen', value: bytes('1') },
        endValue: { case: 'endValueClosed', value: bytes('3') },
      },
    },
    [A_OLD, C],
  ],
  [{ case: 'valueBitmaskFilter', value: { mask: bytes('1') } }, [A_NEW, C]],
  [{ case: 'cellsPerRowOffsetFilter', value: 1 }, [A_OLD]],
  [{ case: 'cellsPerRowLimitFilter', value: 1 }, [A_NEW, B, C]],
  [{ case: 'cellsPerColumnLimitFilter', value: 1 }, [A_NEW, B, C]],
  [stripped.filter, ALL.map((cell) => cell.slice(0, -1))],
  [{ case: 'applyLabelTransformer', value: 'l' }, ALL.map((cell) => `${cell} l`)],
];

const filterProbes = FILTERS.map(
  ([filter, expected]): Probe => ({
    section: 'filter',
    name: FILTER_KINDS.get(filter?.case)!,
    async run(subject) {
      await mutate(subject, 'a', set('f:x', 3000n, '1'), set('f:x', 1000n, '2'));
      await mutate(subject, 'b', set('f:x', 1000n, '4'));
      await mutate(subject, 'c', set('g:y', 1000n, '3'));
      equal(await linesOf(subject, { filter: filter! }), expected);
      if (filter?.case !== 'sink') return;
      // what goes into the sink passes the rest of the chain by
      const sunk = interleave(chain(ofValue('1'), { filter }), ofValue('4'));
      equal(await linesOf(subject, chain(sunk, stripped)), [A_NEW, B.slice(0, -1)]);
    },
  }),
);

type Aggregator = 'sum' | 'min' | 'max' | 'hllppUniqueCount';
const INT64 = {
  kind: {
    case: 'int64Type' as const,
    value: { encoding: { encoding: { case: 'bigEndianBytes' as const, value: {} } } },
  },
};

/** Adds a family of that name whose cells are aggregates. */
async function addAggregate({ api, table }: Subject, family: string, kind: Aggregator): Promise<void> {
  const aggregator = { case: kind, value: {} } as { readonly case: 'sum'; readonly value: object };
  const valueType = { kind: { case: 'aggregateType' as const, value: { inputType: INT64, aggregator } } };
  const modifications = [{ id: family, mod: { case: 'create' as const, value: { valueType } } }];
  await api.ask(admin.modifyColumnFamilies, { name: table, modifications });
}
const COUNTER = {
  columnQualifier: { kind: { case: 'rawValue' as const, value: bytes('n') } },
  timestamp: { kind: { case: 'rawTimestampMicros' as const, value: 1000n } },
};
const add = (familyName: string, intValue: bigint): MutationInit => {
  const input = { kind: { case: 'intValue' as const, value: intValue } };
  return { mutation: { case: 'addToCell', value: { familyName, ...COUNTER, input } } };
};
const merge = (familyName: string, state: Uint8Array): MutationInit => {
  const input = { kind: { case: 'rawValue' as const, value: state } };
  return { mutation: { case: 'mergeToCell', value: { familyName, ...COUNTER, input } } };
};
const number = (value: bigint): Buffer => {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(value);
  return buffer;
};
const counterOf = async (subject: Subject): Promise<Buffer> => (await read(subject))[0]!.value;

/** A mutation of the row m with f:x@3000=1, f:x@1000=2, f:y@1000=3 and g:y@1000=4, and what is left of it. */
const MUTATIONS: readonly (readonly [MutationInit['mutation'], readonly string[]])[] = [
  [set('f:x', 2000n, '9').mutation, ['f:x@3000=1', 'f:x@2000=9', 'f:x@1000=2', 'f:y@1000=3', 'g:y@1000=4']],
  [
    {
      case: 'deleteFromColumn',
      value: {
        familyName: 'f',
        columnQualifier: bytes('x'),
        timeRange: { startTimestampMicros: 1000n, endTimestampMicros: 3000n },
      },
    },
    ['f:x@3000=1', 'f:y@1000=3', 'g:y@1000=4'],
  ],
  [{ case: 'deleteFromFamily', value: { familyName: 'f' } }, ['g:y@1000=4']],
  [{ case: 'deleteFromRow', value: {} }, []],
];

const mutationProbes: readonly Probe[] = [
  ...MUTATIONS.map(
    ([mutation, expected]): Probe => ({
      section: 'mutation',
      name: MUTATION_KINDS.get(mutation?.case)!,
      async run(subject) {
        const [x, old, y, g] = [
          set('f:x', 3000n, '1'),
          set('f:x', 1000n, '2'),
          set('f:y', 1000n, '3'),
          set('g:y', 1000n, '4'),
        ];
        await mutate(subject, 'm', x, old, y, g);
        await mutate(subject, 'm', { mutation: mutation! });
        equal((await linesOf(subject)).sort(), expected.map((cell) => `m ${cell}`).sort());
      },
    }),
  ),
  {
    section: 'mutation',
    name: MUTATION_KINDS.get('addToCell')!,
    async run(subject) {
      await addAggregate(subject, 'sum', 'sum');
      await mutate(subject, 'm', add('sum', 6n), add('sum', -1n));
      equal(await counterOf(subject), number(5n));
    },
  },
  {
    section: 'mutation',
    name: MUTATION_KINDS.get('mergeToCell')!,
    async run(subject) {
      await addAggregate(subject, 'sum', 'sum');
      await mutate(subject, 'm', add('sum', 6n), merge('sum', number(5n)));
      equal(await counterOf(subject), number(11n));
    },
  },
];

const aggregate = (kind: 'sum' | 'min' | 'max', expected: bigint): Probe => ({
  section: 'aggregate',
  name: kind,
  async run(subject) {
    await addAggregate(subject, kind, kind);
    // the last is neither the least nor the greatest
    for (const input of [6n, 5n, 7n, 6n]) await mutate(subject, 'm', add(kind, input));
    equal(await counterOf(subject), number(expected));
  },
});

const aggregateProbes: readonly Probe[] = [
  aggregate('sum', 24n),
  aggregate('min', 5n),
  aggregate('max', 7n),
  {
    section: 'aggregate',
    name: 'hllpp_unique_count',
    async run(subject) {
      await addAggregate(subject, 'count', 'hllppUniqueCount');
      // the sketch, without the type and the number of inputs that stand before it
      const sketchOf = async () => (await counterOf(subject)).subarray(4);
      await mutate(subject, 'm', add('count', 6n));
      const state = await counterOf(subject);
      const one = await sketchOf();
      await mutate(subject, 'm', add('count', 6n));
      equal(await sketchOf(), one, 'the same input counts once');
      await mutate(subject, 'm', add('count', 7n));
      const two = await sketchOf();
      assert.notDeepEqual(two, one);
      await mutate(subject, 'm', merge('count', state));
      equal(await sketchOf(), two, 'what is merged counts once');
    },
  },
];

const versions = (value: number): GcRuleInit => ({ rule: { case: 'maxNumVersions', value } });
const age: GcRuleInit = { rule: { case: 'maxAge', value: { seconds: BigInt(DAY_SECONDS) } } };

/** A rule, and how many it keeps of three versions: the newest is of today, the others are decades old. */
const RULES: readonly (readonly [GcRuleInit['rule'], number])[] = [
  [versions(2).rule, 2],
  [age.rule, 1],
  [{ case: 'intersection', value: { rules: [versions(2), age] as GcRule[] } }, 2],
  [{ case: 'union', value: { rules: [versions(2), age] as GcRule[] } }, 1],
];

const ruleProbes = RULES.map(
  ([rule, kept]): Probe => ({
    section: 'rule',
    name: RULE_KINDS.get(rule?.case)!,
    async run(subject) {
      const now = BigInt(Date.now()) * 1000n;
      const versionsOf = [set('f:x', now, '1'), set('f:x', 3000n, '2'), set('f:x', 1000n, '3')];
      await mutate(subject, 'm', ...versionsOf);
      await subject.api.ask(admin.modifyColumnFamilies, {
        name: subject.table,
        modifications: [{ id: 'f', mod: { case: 'update', value: { gcRule: { rule: rule! } } } }],
      });
      let seen: string[];
      do seen = (await read(subject)).map(({ value }) => value.toString());
      while (seen.length !== kept && (await subject.settle()));
      equal(seen, ['1', '2', '3'].slice(0, kept));
    },
  }),
);

export const PROBES: readonly Probe[] = [...filterProbes, ...mutationProbes, ...aggregateProbes, ...ruleProbes];

const withFilter = ({ api, table }: Subject, filter: RowFilterInit) =>
  api.stream(data.readRows, { tableName: table, filter });
const addFamily = ({ api, table }: Subject, id: string, gcRule?: GcRuleInit) =>
  api.ask(admin.modifyColumnFamilies, {
    name: table,
    modifications: [{ id, mod: { case: 'create', value: { ...(gcRule && { gcRule }) } } }],
  });

/** A filter whose message has that many bytes. */
function filterOf(size: number): RowFilterInit {
  for (let length = size; ; length--) {
    const filter = ofValue('v'.repeat(length));
    if (toBinary(RowFilterSchema, create(RowFilterSchema, filter)).length === size) return filter;
  }
}

/** A filter within others, `depth` of them. */
const nested = (depth: number): RowFilterInit =>
  depth === 0 ? { filter: all } : chain({ filter: all }, nested(depth - 1));

/** A rule whose message has that many bytes, of rules that have 4 and 5 in it. */
function ruleOf(size: number): GcRuleInit {
  for (let long = 0; ; long++) {
    const short = Math.floor((size - 3 - 5 * long) / 4);
    const rules = Array.from({ length: short + long }, (_, i) => versions(i < long ? 200 : 100)) as GcRule[];
    const rule: GcRuleInit = { rule: { case: 'union', value: { rules } } };
    if (toBinary(GcRuleSchema, create(GcRuleSchema, rule)).length === size) return rule;
  }
}

const KIB = 1024;
export const SIZE_PROBES: readonly SizeProbe[] = [
  {
    name: 'bytes of a row key',
    sizes: [4 * KIB, 64 * KIB],
    run: (subject, size) => mutate(subject, 'k'.repeat(size), set('f:x', 1000n, '')),
  },
  { name: 'characters of a family name', sizes: [64], run: (subject, size) => addFamily(subject, 'n'.repeat(size)) },
  {
    name: 'bytes of a qualifier',
    sizes: [16 * KIB],
    run: (subject, size) => mutate(subject, 'm', set(`f:${'q'.repeat(size)}`, 1000n, '')),
  },
  {
    name: 'bytes of a value',
    sizes: [100 * KIB * KIB],
    isLarge: true,
    run: (subject, size) => mutate(subject, 'm', set('f:x', 1000n, 'v'.repeat(size))),
  },
  {
    name: 'mutations of a request',
    sizes: [100_000],
    isLarge: true,
    run: (subject, size) => mutate(subject, 'm', ...new Array<MutationInit>(size).fill(set('f:x', 1000n, ''))),
  },
  { name: 'bytes of a filter', sizes: [20 * KIB], run: (subject, size) => withFilter(subject, filterOf(size)) },
  { name: 'depth of a filter', sizes: [20], run: (subject, size) => withFilter(subject, nested(size)) },
  {
    name: 'characters of a label',
    sizes: [15],
    run: (subject, size) => withFilter(subject, { filter: { case: 'applyLabelTransformer', value: 'l'.repeat(size) } }),
  },
  { name: 'characters of a table id', sizes: [50], run: ({ api }, size) => makeTable(api, 't'.repeat(size)) },
  { name: 'bytes of a rule', sizes: [500], run: (subject, size) => addFamily(subject, `r${size}`, ruleOf(size)) },
];

/** The greatest size that the server takes, as a word; 'above N' when it refuses none. */
export async function limitOf({ sizes, run }: SizeProbe, subject: Subject): Promise<string> {
  for (const size of sizes) {
    const code = await codeOf(run(subject, size));
    if (code !== 'OK') return `${code} at ${size}`;
    const above = await codeOf(run(subject, size + 1));
    if (above === 'INVALID_ARGUMENT') return String(size);
    if (above !== 'OK') return `${above} at ${size + 1}`;
  }
  return `above ${sizes.at(-1)}`;
}

/** Whether the server takes a cell with a timestamp before 1970. */
export async function negativeTimestampsOf(subject: Subject): Promise<string> {
  const code = await codeOf(mutate(subject, 'm', set('f:x', -1000n, '')));
  return code === 'OK' ? 'accepted' : 'refused';
}
