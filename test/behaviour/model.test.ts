/**
 * Random histories of mutations, flushes, compactions, changes of groups, splits, merges and reopenings against the
 * plain model: after every few steps the whole table, and random parts of it, read as the model says.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import {
  BigtableError,
  Code,
  type Database,
  type GroupLayout,
  open,
  type ScanOptions,
  type Table,
} from '../../src/embedded/index.ts';
import { bytesOf as bytes, mutationOf, plainCellsOf } from './plain-calls.ts';
import { mayShow, type PlainCell, type PlainFamilies, type Step } from './plain-row.ts';
import { PlainTable } from './plain-table.ts';

const FAMILIES = ['f', 'f-2', 'capped'];
const PLAIN_FAMILIES: PlainFamilies = new Map([
  ['f', {}],
  ['f-2', {}],
  ['capped', { gcRule: { kind: 'maxVersions', versions: 2 } }],
  ['n', {}],
]);
const KEYS = ['a', 'a\x00', 'ab', 'b', 'm', 'z\xff', 'zz'];
const QUALIFIERS = ['', 'q', 'q\x00', '\xff'];
const TIMES = [
  -(2n ** 63n),
  -(2n ** 53n) - 1n,
  -1n,
  0n,
  1n,
  1000n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
];

const GROUPS: readonly GroupLayout[] = [
  {},
  { g: { families: ['f'] } },
  { g: { families: ['f-2', 'n'] }, h: { families: ['capped'] } },
];

type Command =
  | { readonly kind: 'mutate'; readonly row: string; readonly steps: readonly Step[] }
  | { readonly kind: 'increment'; readonly row: string; readonly amount: bigint }
  | { readonly kind: 'dropRows'; readonly start: string; readonly end: string | undefined }
  | { readonly kind: 'flush' }
  | { readonly kind: 'compact' }
  | { readonly kind: 'setGroups'; readonly groups: GroupLayout }
  /** Without a row: every tablet near its middle. */
  | { readonly kind: 'split'; readonly row: string | undefined }
  | { readonly kind: 'merge'; readonly row: string }
  | { readonly kind: 'reopen' }
  | { readonly kind: 'read'; readonly read: Read };

interface Read {
  readonly start: string | undefined;
  readonly end: string | undefined;
  readonly family: string | undefined;
  readonly qualifier: string | undefined;
  readonly since: bigint | undefined;
  readonly versions: number | undefined;
  readonly limit: number | undefined;
  readonly reverse: boolean;
}

const family = fc.constantFrom(...FAMILIES);
const key = fc.constantFrom(...KEYS);
const qualifier = fc.constantFrom(...QUALIFIERS);
const time = fc.constantFrom(...TIMES);
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      family,
      qualifier,
      timestamp: time,
      value: fc.constantFrom('', 'v', 'w'.repeat(300)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({ family, qualifier, since: maybe(time), until: maybe(time) })
      .map(({ since, until, ...rest }) => ({
        kind: 'delete' as const,
        ...rest,
        ...(since === undefined ? {} : { since }),
        ...(until === undefined || (since !== undefined && until < since) ? {} : { until }),
      })),
  },
  { weight: 1, arbitrary: family.map((name) => ({ kind: 'deleteFamily' as const, family: name })) },
  { weight: 1, arbitrary: fc.constant({ kind: 'deleteRow' as const }) },
);

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('mutate' as const),
      row: key,
      steps: fc.array(step, { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('increment' as const),
      row: key,
      amount: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('dropRows' as const), start: key, end: maybe(key) }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'flush' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'compact' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('setGroups' as const), groups: fc.constantFrom(...GROUPS) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('split' as const), row: maybe(key) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('merge' as const), row: key }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reopen' as const }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      read: fc.record({
        start: maybe(key),
        end: maybe(key),
        family: maybe(family),
        qualifier: maybe(qualifier),
        since: maybe(time),
        versions: maybe(fc.integer({ min: 1, max: 3 })),
        limit: maybe(fc.integer({ min: 1, max: 3 })),
        reverse: fc.boolean(),
      }),
    }),
  },
);

async function readCells(table: Table, options: ScanOptions): Promise<PlainCell[]> {
  const cells: PlainCell[] = [];
  for await (const row of table.scan(options)) cells.push(...plainCellsOf(row));
  return cells;
}

/** The model's answer to a read. */
function expected(model: PlainTable, read: Read): PlainCell[] {
  const byRow = new Map<string, PlainCell[]>();
  const seen = new Map<string, number>();
  for (const cell of model.cells()) {
    if (read.start !== undefined && Buffer.compare(bytes(cell.row), bytes(read.start)) < 0) continue;
    if (read.end !== undefined && Buffer.compare(bytes(cell.row), bytes(read.end)) >= 0) continue;
    if (read.family !== undefined && cell.family !== read.family) continue;
    if (read.qualifier !== undefined && cell.qualifier !== read.qualifier) continue;
    if (read.since !== undefined && cell.timestamp < read.since) continue;
    const column = `${cell.row}|${cell.family}|${cell.qualifier}`;
    const version = seen.get(column) ?? 0;
    seen.set(column, version + 1);
    if (read.versions !== undefined && version >= read.versions) continue;
    byRow.set(cell.row, [...(byRow.get(cell.row) ?? []), cell]);
  }
  const rows = [...byRow.values()];
  if (read.reverse) rows.reverse();
  return rows.slice(0, read.limit).flat();
}

function scanOptions(read: Read): ScanOptions {
  const family = read.family ?? '.*';
  return {
    ...(read.start === undefined ? {} : { start: bytes(read.start) }),
    ...(read.end === undefined ? {} : { end: bytes(read.end) }),
    ...(read.family === undefined ? {} : { families: [read.family] }),
    ...(read.qualifier === undefined
      ? {}
      : read.family === undefined
        ? { filter: { kind: 'columnQualifierRegex' as const, regex: bytes(read.qualifier) } }
        : { columns: [{ family, qualifier: bytes(read.qualifier) }] }),
    ...(read.since === undefined ? {} : { since: read.since }),
    ...(read.limit === undefined ? {} : { limit: read.limit }),
    versions: read.versions ?? 'all',
    reverse: read.reverse,
  };
}

/** No tablet begins at the row that a merge names; one of a single row has no middle. */
async function unlessImpossible(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof BigtableError) || error.code !== Code.FAILED_PRECONDITION) throw error;
  }
}

class Run {
  readonly #directory: string;
  readonly model = new PlainTable(PLAIN_FAMILIES);
  #database: Database | undefined;
  #counters = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async start(): Promise<void> {
    this.#database = await open(this.#directory);
    await this.#database.createTable('t', {
      families: { f: {}, 'f-2': {}, capped: { maxVersions: 2 }, n: { maxVersions: 1 } },
      splits: ['b'],
    });
  }

  get #table(): Table {
    return (this.#database as Database).table('t');
  }

  async do(one: Command): Promise<void> {
    switch (one.kind) {
      case 'mutate':
        await this.#table.apply(mutationOf(one.row, one.steps));
        return this.model.apply(one.row, one.steps);
      case 'increment': {
        // counters live in a family of their own, so that no other step makes their value anything but 8 bytes
        const got = await this.#table.increment(bytes(one.row), 'n:c', one.amount);
        const cell = await this.#table.getCell(bytes(one.row), 'n:c');
        assert.equal(got, cell?.int);
        assert.equal(got, this.model.increment(one.row, 'n', 'c', one.amount, ++this.#counters));
        return;
      }
      case 'dropRows': {
        if (one.end !== undefined && one.end <= one.start) return;
        await this.#table.deleteRows({
          start: bytes(one.start),
          ...(one.end === undefined ? {} : { end: bytes(one.end) }),
        });
        return this.model.dropRows(one.start, one.end);
      }
      case 'flush':
        return (this.#database as Database).flush();
      case 'compact':
        return (this.#database as Database).compact('t');
      case 'setGroups':
        return this.#table.setGroups(one.groups);
      case 'split':
        return unlessImpossible(
          (this.#database as Database).split('t', ...(one.row === undefined ? [] : ([bytes(one.row)] as const))),
        );
      case 'merge':
        return unlessImpossible((this.#database as Database).merge('t', bytes(one.row)));
      case 'reopen':
        await this.close();
        this.#database = await open(this.#directory);
        return;
      case 'read': {
        const { start, end } = one.read;
        if (start !== undefined && end !== undefined && end <= start) return;
        // versions that a rule hid once may be gone
        await this.compareAll();
        const withoutCounters = { ...one.read, family: one.read.family ?? 'f' };
        assert.deepEqual(
          await readCells(this.#table, scanOptions(withoutCounters)),
          expected(this.model, withoutCounters),
        );
      }
    }
  }

  async compareAll(): Promise<void> {
    const got = await readCells(this.#table, { families: FAMILIES, versions: 'all' });
    for (const key of new Set([...this.model.keys(), ...got.map(({ row }) => row)])) {
      const cells = got.filter(({ row }) => row === key);
      const row = new Map([...this.model.row(key)].filter(([name]) => name !== 'n'));
      if (mayShow(key, row, cells, PLAIN_FAMILIES, 0)) this.model.resolve(key, cells);
    }
    assert.deepEqual(
      got,
      this.model.cells().filter((cell) => cell.family !== 'n'),
    );
    const counters = await readCells(this.#table, { families: ['n'] });
    const newest = new Map<string, string>();
    for (const cell of this.model.cells())
      if (cell.family === 'n' && !newest.has(cell.row)) newest.set(cell.row, cell.value);
    assert.deepEqual(
      counters.map(({ row, value }) => [row, value]),
      [...newest],
    );
  }

  close(): Promise<void> {
    return (this.#database as Database).close();
  }
}

// calls that wait for a tablet's new place wait on timers that keep no process alive
const alive = setInterval(() => {}, 60_000);
after(() => clearInterval(alive));

test('random histories over flushes, compactions, splits, merges and reopenings read as the plain model says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 60 }), async (commands) => {
      const directory = await mkdtemp(join(tmpdir(), 'edubba-model-'));
      const run = new Run(directory);
      try {
        await run.start();
        for (const one of commands) await run.do(one);
        await run.compareAll();
        await run.do({ kind: 'reopen' });
        await run.compareAll();
      } finally {
        await run.close();
        await rm(directory, { recursive: true });
      }
    }),
    { numRuns: Number(process.env['EDUBBA_MODEL_RUNS'] ?? 30) },
  );
});
