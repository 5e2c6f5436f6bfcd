/**
 * Calls whose bounds are undefined, null, empty or misspelt, as plain JavaScript lets them through: each would do more
 * than was asked for, so each is refused with the bound's name. The options of every call are listed with one good
 * value each, and the requests are made from them.
 */
import { Code, type Database, RowMutation, type Table } from '../../src/embedded/index.ts';
import { all, type LibraryRequest, refused } from './library-request.ts';

/** A call with an object of options. */
interface BoundedCall {
  readonly name: string;
  /** Options that are good together with nothing else. */
  readonly good: Readonly<Record<string, unknown>>;
  /** Options that each of the others needs. */
  readonly needed?: Readonly<Record<string, unknown>>;
  /** Those that may be undefined: they bound nothing. */
  readonly free?: readonly string[];
  /** Those of which an empty text is no bound, and so refused. */
  readonly emptyIsNone?: readonly string[];
  call(options: never, table: Table, database: Database): Promise<unknown>;
}

const { INVALID_ARGUMENT } = Code;
const apply = (t: Table, mutation: RowMutation): Promise<void> => t.apply(mutation);
const row = (): RowMutation => new RowMutation('kept');

const OF_ROW = {
  families: ['f'],
  columns: ['f:q'],
  columnRegex: 'f:q',
  columnRange: { family: 'f' },
  since: 1000,
  until: 2000,
  at: 1000,
  cellsPerRow: 1,
  filter: { kind: 'passAll' },
  versions: 1,
  signal: new AbortController().signal,
};
const FAMILY = {
  maxVersions: 1,
  maxAgeMs: 1000,
  gcRule: { kind: 'maxVersions', versions: 1 },
  aggregate: 'sum',
  group: 'default',
};
const RULE = { family: 'f', qualifier: 'n', change: { kind: 'increment', amount: 1 } };

const CALLS: readonly BoundedCall[] = [
  {
    name: 'deleteRows',
    good: { prefix: 'kept', start: 'kept', end: 'kepu' },
    emptyIsNone: ['prefix', 'start', 'end'],
    call: (options, t) => t.deleteRows(options),
  },
  {
    name: 'scan',
    good: { rows: ['kept'], prefix: 'k', start: 'k', end: 'l', limit: 1, reverse: true, ...OF_ROW },
    free: ['reverse', 'versions', 'signal'],
    emptyIsNone: ['rows', 'prefix', 'start', 'end', 'families', 'columns', 'columnRegex', 'limit', 'cellsPerRow'],
    call: (options, t) => all(t.scan(options)),
  },
  {
    name: 'get',
    good: OF_ROW,
    free: ['versions', 'signal'],
    emptyIsNone: ['families', 'columns', 'columnRegex', 'cellsPerRow'],
    call: (options, t) => t.get('kept', options),
  },
  {
    name: 'a range of columns',
    good: { start: 'a', end: 'z' },
    needed: { family: 'f' },
    emptyIsNone: ['start', 'end'],
    call: (columnRange, t) => all(t.scan({ columnRange })),
  },
  {
    name: 'a deletion of versions',
    good: { since: 1000, until: 2000 },
    call: async (range, t) => apply(t, row().delete('f:n', range)),
  },
  {
    name: 'a deletion of versions after a check',
    good: { since: 1000, until: 2000 },
    call: async (range, t) => t.checkAndMutate('kept', { column: 'f:n' }, { then: (r) => r.delete('f:n', range) }),
  },
  {
    name: 'a predicate of a column',
    good: { equals: 'x' },
    needed: { column: 'f:text' },
    emptyIsNone: [],
    call: async (predicate, t) => t.checkAndMutate('kept', predicate, { then: (r) => r.deleteRow() }),
  },
  {
    name: 'a predicate',
    good: { filter: { kind: 'blockAll' } },
    call: async (predicate, t) => t.checkAndMutate('kept', predicate, { then: (r) => r.deleteRow() }),
  },
  {
    name: 'the outcomes of a check',
    good: { then: () => {}, otherwise: () => {} },
    free: ['then', 'otherwise'],
    call: async (outcomes, t) => t.checkAndMutate('kept', { column: 'f:n' }, outcomes),
  },
  {
    name: 'a rule of readModifyWrite',
    good: RULE,
    needed: RULE,
    emptyIsNone: ['family'],
    call: async (rule, t) => t.readModifyWrite('kept', [rule]),
  },
  {
    name: 'the change of a rule',
    good: { amount: 1 },
    needed: { kind: 'increment' },
    emptyIsNone: ['amount'],
    call: async (change, t) => t.readModifyWrite('kept', [{ family: 'f', qualifier: 'n', change }]),
  },
  {
    name: 'a new family',
    good: FAMILY,
    free: ['group'],
    emptyIsNone: ['maxVersions', 'maxAgeMs', 'gcRule', 'aggregate'],
    call: async (options, t) => t.createFamily('new', options),
  },
  {
    name: 'a family of a new table',
    good: FAMILY,
    free: ['group'],
    emptyIsNone: ['maxVersions', 'maxAgeMs', 'gcRule', 'aggregate'],
    call: async (f, _t, d) => d.createTable('other', { families: { f } }),
  },
  {
    name: 'a new table',
    good: { families: { f: {} }, splits: ['m'], granularity: 'micros', groups: { default: {} } },
    free: ['splits', 'granularity', 'groups'],
    emptyIsNone: ['families'],
    call: async (options, _t, d) => d.createTable('other', options),
  },
  {
    name: 'a rule of versions',
    good: { versions: 1 },
    needed: { kind: 'maxVersions' },
    emptyIsNone: ['versions'],
    call: async (rule, t) => t.setGcRule('f', rule),
  },
  {
    name: 'a rule of age',
    good: { ageMicros: 1e6 },
    needed: { kind: 'maxAge' },
    emptyIsNone: ['ageMicros'],
    call: async (rule, t) => t.setGcRule('f', rule),
  },
  {
    name: 'a rule of rules',
    good: { rules: [{ kind: 'maxVersions', versions: 1 }] },
    needed: { kind: 'intersection' },
    emptyIsNone: ['rules'],
    call: async (rule, t) => t.setGcRule('f', { kind: 'union', rules: [rule] }),
  },
];

/** Two letters of the name change places, or a letter is lost: never another option's name. */
const misspelt = (name: string): string => (name.length > 3 ? `${name.slice(0, 1)}${name.slice(2)}` : `${name}s`);

const requestsOf = ({ name, good, needed = {}, free = [], emptyIsNone = [], call }: BoundedCall): LibraryRequest[] =>
  Object.keys(good).flatMap((option) => {
    const ask =
      (options: Readonly<Record<string, unknown>>): LibraryRequest['ask'] =>
      (t, d) =>
        call(options as never, t, d);
    const says = new RegExp(`\\b${option}\\b`);
    // the others are left out: what is refused is the bound, not how it goes with them
    const { [option]: _, ...others } = needed;
    const wrong = misspelt(option);
    const empty = Array.isArray(good[option]) ? undefined : '';
    return [
      refused(
        `${name}, ${option} misspelt`,
        INVALID_ARGUMENT,
        new RegExp(`unknown (option|outcome|field) "${wrong}".*\\b${option}\\b`),
        ask({ ...others, [wrong]: good[option] }),
      ),
      refused(
        `${name}, ${option} misspelt next to the good one`,
        INVALID_ARGUMENT,
        new RegExp(`"${wrong}"`),
        ask({ ...others, [option]: good[option], [wrong]: good[option] }),
      ),
      ...(free.includes(option)
        ? []
        : [undefined, null].map((none) =>
            refused(`${name}, ${option} ${none}`, INVALID_ARGUMENT, says, ask({ ...others, [option]: none })),
          )),
      ...(emptyIsNone.includes(option)
        ? [refused(`${name}, ${option} empty`, INVALID_ARGUMENT, says, ask({ ...others, [option]: empty ?? '' }))]
        : []),
      ...(emptyIsNone.includes(option) && empty === ''
        ? [
            refused(
              `${name}, ${option} as bytes of no length`,
              INVALID_ARGUMENT,
              says,
              ask({ ...others, [option]: new Uint8Array() }),
            ),
          ]
        : []),
    ];
  });

/** Values that are no object of options. */
const notOptions = ({ name, call }: BoundedCall): LibraryRequest[] =>
  (
    [
      ['null', null],
      ['text', 'kept'],
      ['an array', ['kept']],
      ['a number', 1000],
      ['a Map', new Map([['prefix', 'kept']])],
      ['a Date', new Date(1)],
    ] as const
  ).map(([what, given]) =>
    refused(
      `${name}, ${what} in place of an object`,
      INVALID_ARGUMENT,
      /must be (an object|'never' or an object)|must not be null/,
      (t, d) => call(given as never, t, d),
    ),
  );

type Loose = Record<string, (...given: unknown[]) => unknown>;
/** As plain JavaScript calls it. */
const loose = (thing: unknown): Loose => thing as Loose;

const BY_PLACE: LibraryRequest[] = [
  refused('deleteRows without options', INVALID_ARGUMENT, /deleteRows/, async (t) => loose(t)['deleteRows']?.()),
  refused('deleteRows of undefined', INVALID_ARGUMENT, /deleteRows/, async (t) => loose(t)['deleteRows']?.(undefined)),
  refused('deleteRows without a bound', INVALID_ARGUMENT, /prefix, start or end; deleteAllRows\(\)/, async (t) =>
    t.deleteRows({} as never),
  ),
  refused('deleteRows of a prefix and a start', INVALID_ARGUMENT, /either prefix, or start and end/, async (t) =>
    t.deleteRows({ prefix: 'x', start: 'k' } as never),
  ),
  refused('a scan of rows that are text', INVALID_ARGUMENT, /rows must be an array/, async (t) =>
    all(t.scan({ rows: 'kept' as never })),
  ),
  refused('a scan of families that are text', INVALID_ARGUMENT, /families must be an array/, async (t) =>
    all(t.scan({ families: 'f' as never })),
  ),
  refused('a scan of a family that is undefined', INVALID_ARGUMENT, /a family must be text, not undefined/, async (t) =>
    all(t.scan({ families: [undefined as never] })),
  ),
  refused('a scan of a column that is undefined', INVALID_ARGUMENT, /column.*undefined/, async (t) =>
    all(t.scan({ columns: [undefined as never] })),
  ),
  refused('a scan of a row that is undefined', INVALID_ARGUMENT, /row key.*undefined/, async (t) =>
    all(t.scan({ rows: [undefined as never] })),
  ),
  ...[Number.NaN, 0, -1, 1.5, '5', Number.POSITIVE_INFINITY].flatMap((limit) => [
    refused(
      `a scan of ${typeof limit} ${limit} rows`,
      INVALID_ARGUMENT,
      /limit must be a whole number above 0/,
      async (t) => all(t.scan({ limit: limit as never })),
    ),
    refused(
      `a scan of ${typeof limit} ${limit} cells a row`,
      INVALID_ARGUMENT,
      /cellsPerRow must be a whole number above 0/,
      async (t) => all(t.scan({ cellsPerRow: limit as never })),
    ),
  ]),
  refused('a deletion of versions of undefined', INVALID_ARGUMENT, /range of versions/, async (t) =>
    apply(t, loose(row())['delete']?.('f:n', undefined) as RowMutation),
  ),
  refused('a deletion of versions without a side', INVALID_ARGUMENT, /since, until or both/, async (t) =>
    apply(t, row().delete('f:n', {})),
  ),
  refused('a deletion of a column that is undefined', INVALID_ARGUMENT, /column.*undefined/, async (t) =>
    apply(t, row().delete(undefined as never)),
  ),
  refused('a deletion of a qualifier that is undefined', INVALID_ARGUMENT, /qualifier.*undefined/, async (t) =>
    apply(t, row().delete({ family: 'f', qualifier: undefined as never })),
  ),
  refused(
    'a deletion of a qualifier that is misspelt',
    INVALID_ARGUMENT,
    /unknown field "qualifer" \(did you mean qualifier\?\)/,
    async (t) => apply(t, row().delete({ family: 'f', qualifer: 'n' } as never)),
  ),
  refused('a deletion of a family alone as a column', INVALID_ARGUMENT, /"f".*family:qualifier/, async (t) =>
    apply(t, row().delete('f')),
  ),
  refused(
    'a deletion in a family that is undefined',
    INVALID_ARGUMENT,
    /a family must be text, not undefined/,
    async (t) => apply(t, row().deleteFamily(undefined as never)),
  ),
  refused('a mutation of a row that is undefined', INVALID_ARGUMENT, /row key.*undefined/, async (t) =>
    apply(t, new RowMutation(undefined as never).deleteRow()),
  ),
  refused('a deletion of a row that is undefined', INVALID_ARGUMENT, /row key.*undefined/, async (t) =>
    t.deleteRow(undefined as never),
  ),
  refused(
    'a cell at a time that is undefined',
    INVALID_ARGUMENT,
    /\bat must be .* not undefined|option at must not/,
    async (t) => loose(t)['getCell']?.('kept', 'f:n', undefined),
  ),
  refused("a row's cell at a time that is undefined", INVALID_ARGUMENT, /\bat must be .* not undefined/, async (t) =>
    loose(await t.get('kept'))['get']?.('f:n', undefined),
  ),
  refused('a predicate of nothing', INVALID_ARGUMENT, /column or a filter/, async (t) =>
    t.checkAndMutate('kept', {} as never, { then: (r) => r.deleteRow() }),
  ),
  refused('a predicate of a column and a filter', INVALID_ARGUMENT, /either a filter/, async (t) =>
    t.checkAndMutate('kept', { column: 'f:n', filter: { kind: 'passAll' } } as never, { then: (r) => r.deleteRow() }),
  ),
  refused('a predicate that is undefined', INVALID_ARGUMENT, /predicate.*undefined/, async (t) =>
    t.checkAndMutate('kept', undefined as never, { then: (r) => r.deleteRow() }),
  ),
  refused('an outcome that is no function', INVALID_ARGUMENT, /outcome then must be a function/, async (t) =>
    t.checkAndMutate('kept', { column: 'f:n' }, { then: 'x' as never }),
  ),
  refused('rules that are no array', INVALID_ARGUMENT, /rules must be an array/, async (t) =>
    t.readModifyWrite('kept', RULE as never),
  ),
  refused('a rule of an unknown kind', INVALID_ARGUMENT, /append or increment.*"add"/, async (t) =>
    t.readModifyWrite('kept', [{ family: 'f', qualifier: 'n', change: { kind: 'add', amount: 1 } as never }]),
  ),
  refused('a GC rule that is undefined', INVALID_ARGUMENT, /GC rule.*'never'.*undefined/, async (t) =>
    t.setGcRule('f', undefined as never),
  ),
  refused('no GC rule', INVALID_ARGUMENT, /GC rule.*'never'.*undefined/, async (t) => loose(t)['setGcRule']?.('f')),
  refused('a GC rule that is text', INVALID_ARGUMENT, /GC rule.*'never'.*"always"/, async (t) =>
    t.setGcRule('f', 'always' as never),
  ),
  refused('a GC rule of a part that is undefined', INVALID_ARGUMENT, /rules\[1\].*undefined/, async (t) =>
    t.setGcRule('f', { kind: 'union', rules: [{ kind: 'maxVersions', versions: 1 }, undefined as never] }),
  ),
  refused('a GC rule of a part that is never', INVALID_ARGUMENT, /rules\[0\].*"never"/, async (t) =>
    t.setGcRule('f', { kind: 'union', rules: ['never' as never] }),
  ),
  refused(
    'a family that is undefined is deleted',
    INVALID_ARGUMENT,
    /a family must be text, not undefined/,
    async (t) => t.deleteFamily(undefined as never),
  ),
  refused('a family without a name', INVALID_ARGUMENT, /a family must be text, not undefined/, async (t) =>
    t.createFamily(undefined as never),
  ),
  refused(
    'families as an array',
    INVALID_ARGUMENT,
    /families must be an object .*\{ f: \{\} \}.* array of 2/,
    async (_t, d) => d.createTable('other', { families: ['f', 'g'] as never }),
  ),
  refused('families as a Map', INVALID_ARGUMENT, /families must be an object .* Map/, async (_t, d) =>
    d.createTable('other', { families: new Map([['f', {}]]) as never }),
  ),
  refused('a family of undefined', INVALID_ARGUMENT, /family "f" must be an object.* undefined/, async (_t, d) =>
    d.createTable('other', { families: { f: undefined as never } }),
  ),
  refused(
    'an unknown aggregate',
    INVALID_ARGUMENT,
    /aggregate must be one of sum, min, max, hll, not string "avg"/,
    async (t) => t.createFamily('new', { aggregate: 'avg' as never }),
  ),
  refused('groups that are undefined', INVALID_ARGUMENT, /groups must be an object/, async (t) =>
    t.setGroups(undefined as never),
  ),
  refused('groups as an array', INVALID_ARGUMENT, /groups must be an object/, async (t) => t.setGroups(['f'] as never)),
  refused('families of a group as text', INVALID_ARGUMENT, /families must be an array/, async (t) =>
    t.setGroups({ x: { families: 'fg' as never } }),
  ),
  refused(
    'a table that is undefined is deleted',
    INVALID_ARGUMENT,
    /a table name must be text, not undefined/,
    async (_t, d) => d.deleteTable(undefined as never),
  ),
  refused('a table of no name is deleted', INVALID_ARGUMENT, /a table name must not be empty/, async (_t, d) =>
    d.deleteTable(''),
  ),
  refused('a compaction of undefined', INVALID_ARGUMENT, /a table name must be text, not undefined/, async (_t, d) =>
    loose(d)['compact']?.(undefined),
  ),
  refused('a compaction of no name', INVALID_ARGUMENT, /a table name must not be empty/, async (_t, d) =>
    d.compact(''),
  ),
  refused('a split at undefined', INVALID_ARGUMENT, /row key.*undefined/, async (_t, d) =>
    loose(d)['split']?.('t', undefined),
  ),
  refused('a split at no row', INVALID_ARGUMENT, /row key must not be empty/, async (_t, d) => d.split('t', '')),
  refused('a merge at undefined', INVALID_ARGUMENT, /row key.*undefined/, async (_t, d) =>
    d.merge('t', undefined as never),
  ),
  refused('a merge at no row', INVALID_ARGUMENT, /row key must not be empty/, async (_t, d) => d.merge('t', '')),
  refused('a list of tables of undefined', INVALID_ARGUMENT, /prefix.*undefined/, async (_t, d) =>
    loose(d)['listTableNames']?.(undefined),
  ),
  refused('a list of tables of no prefix', INVALID_ARGUMENT, /prefix must not be empty/, async (_t, d) =>
    d.listTableNames(''),
  ),
];

export const UNBOUNDED_REQUESTS: readonly LibraryRequest[] = [
  ...CALLS.flatMap(requestsOf),
  ...CALLS.flatMap(notOptions),
  ...BY_PLACE,
];
