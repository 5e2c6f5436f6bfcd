/** METADATA in many tablets: what is located and scanned, against a model, while its boundaries move. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { allRows, assertSound, metadataOf, rowsIn } from '../../test/metadata-rows.ts';
import { TABLES, type Tables } from '../../test/tables.ts';
import { type ByteString, Code, toBigtableError } from '../base/index.ts';
import { Metrics, sleep } from '../env/index.ts';
import { commitOfMerge, keyOfRow, type MetadataRow, ROOT_RANGE, USER_RANGE } from '../metadata/index.ts';
import { rangeContains, type RowRange } from '../model/index.ts';
import type { AssignedTablet } from './location-cache.ts';
import { Locator } from './locator.ts';

/** Every tablet of METADATA that has two rows is split. */
const TINY = { settings: { metadataTabletBytes: 1 } };
/** All that is under way has ended, also METADATA's splits. */
const QUIET_MS = 3000;

const row = fc.stringMatching(/^[a-h][a-d]?$/);
const table = fc.constantFrom('t', 'u', 'v');
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('create'), table, rows: fc.uniqueArray(row, { maxLength: 9 }) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('split'), table, rows: fc.tuple(row) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('merge'), table, rows: fc.tuple(row) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete'), table, rows: fc.constant([]) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('move'), table, rows: fc.constant([]) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** A cluster, and where the tablets of its tables end. */
class Model {
  readonly ends = new Map<string, ByteString[]>();
  readonly #cluster: Cluster;
  readonly #tables: Tables;

  constructor(cluster: Cluster, tables: Tables) {
    this.#cluster = cluster;
    this.#tables = tables;
  }

  async do({ kind, table, rows }: Step): Promise<void> {
    const tables = this.#tables;
    const ends = this.ends.get(table);
    const [row] = rows;
    const call = [tables.context(), TABLES + table, row!] as const;
    if (kind === 'move') return this.#move();
    if (kind === 'create') {
      if (ends !== undefined) return;
      await tables.create(table, { splits: rows });
      this.ends.set(table, [...rows].sort());
    } else if (ends === undefined) return;
    else if (kind === 'delete') {
      await tables.delete(table);
      this.ends.delete(table);
    } else if (kind === 'split') {
      await this.#cluster.client.splitTablets(...call);
      this.ends.set(table, [...new Set([...ends, row!])].sort());
    } else {
      const error = await this.#cluster.client.mergeTablets(...call).then(() => undefined, toBigtableError);
      if (error === undefined)
        this.ends.set(
          table,
          ends.filter((end) => end !== row),
        );
      else assert.ok(new Set<Code>([Code.FAILED_PRECONDITION, Code.ABORTED]).has(error.code), error.message);
    }
  }

  /** The server of the most tablets ends itself, and another begins. */
  async #move(): Promise<void> {
    await this.#cluster.startServer();
    const owners = (await allRows(this.#tables.env, this.#tables.context())).metadata.map(({ server }) => server?.name);
    await this.#cluster.kill(this.#cluster.servers.findIndex((server) => server?.name === owners[0]));
  }

  async isAsIn(users: readonly MetadataRow[]): Promise<void> {
    for (const [table, ends] of this.ends) {
      const { id } = await this.#tables.service.getTable(this.#tables.context(), TABLES + table);
      const found = users.filter(({ tableId }) => tableId === id).map(({ range }) => range.end);
      assert.deepEqual(found, [...ends, undefined], table);
    }
  }
}

/** Locates as a client does, which drops what proves stale: that costs at most six round trips, with the first call. */
class Seeker {
  readonly #metrics = new Metrics();
  readonly #locator: Locator;
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#locator = new Locator({ ...tables.env, metrics: this.#metrics });
  }

  async seek(users: readonly MetadataRow[], tableId: string, row: ByteString | undefined): Promise<void> {
    const context = this.#tables.context();
    const ofTable = users.filter((one) => one.tableId === tableId);
    const locate = {
      at: () => this.#locator.locate(tableId, row!, context),
      before: () => this.#locator.locateBefore(tableId, row, context),
    };
    const holds = {
      at: ({ range }: MetadataRow) => rangeContains(range, row!),
      before: ({ range: { start, end } }: MetadataRow) =>
        row === undefined ? end === undefined : start < row && (end === undefined || row <= end),
    };
    for (const how of row === undefined || row === '' ? (['before'] as const) : (['at', 'before'] as const)) {
      if (how === 'before' && row === '') continue;
      const wanted = ofTable.find(holds[how])!;
      const isWanted = ({ range, epoch }: AssignedTablet): boolean =>
        range.start === wanted.range.start && range.end === wanted.range.end && epoch === wanted.epoch;
      let found = await locate[how]();
      const before = this.#metrics.get('locator.roundTrips');
      if (!isWanted(found)) {
        this.#locator.drop(found);
        found = await locate[how]();
      }
      assert.ok(isWanted(found), `${how} ${row}: ${JSON.stringify(found.range)}, not ${JSON.stringify(wanted.range)}`);
      const roundTrips = this.#metrics.get('locator.roundTrips') - before;
      assert.ok(roundTrips <= 5, `${roundTrips} round trips next to the call that was refused`);
    }
  }
}

describe('METADATA in many tablets', () => {
  test('locates and scans agree with a model, whatever METADATA’s boundaries, with old locations and without', async () => {
    let boundaries = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 4, maxLength: 14 }),
        fc.constantFrom(1, 1500, 4000),
        async (steps, bytes) => {
          await inCluster(
            async (cluster, tables) => {
              const model = new Model(cluster, tables);
              const old = new Seeker(tables);
              for (const [i, one] of steps.entries()) {
                await model.do(one);
                if (i % 3 > 0 && i < steps.length - 1) continue;
                await sleep(cluster.clock, QUIET_MS);
                const all = await allRows(tables.env, tables.context());
                boundaries += all.metadata.length - 1;
                assertSound(all);
                await model.isAsIn(all.users);
                await scansParts(tables, all.users);
                for (const tableId of new Set(all.users.map((row) => row.tableId)))
                  for (const row of ['a', 'bb', 'e', 'h', undefined]) {
                    await old.seek(all.users, tableId, row);
                    await new Seeker(tables).seek(all.users, tableId, row);
                  }
              }
            },
            { servers: 2, settings: { metadataTabletBytes: bytes } },
          )();
        },
      ),
      { numRuns: 20 },
    );
    assert.ok(boundaries > 40, `${boundaries} boundaries`);
  });

  test(
    'a scan while tablets, and METADATA’s own, are split returns every row that stays once, in order',
    inCluster(async (cluster, tables) => {
      const splits = Array.from({ length: 12 }, (_, i) => `r${10 + i}`);
      await tables.create('t', { splits });
      await sleep(cluster.clock, QUIET_MS);
      const before = await rowsIn(metadataOf(tables.env), USER_RANGE, tables.context());
      const seen: MetadataRow[] = [];
      let turn = 0;
      for await (const rows of metadataOf(tables.env).scan(USER_RANGE, tables.context())) {
        seen.push(...rows);
        // before, at, and after the place of the scan
        for (const row of splits.filter((_, i) => i % 6 === turn % 6))
          await cluster.client.splitTablets(tables.context(), `${TABLES}t`, `${row}${turn}`);
        if (turn++ % 2 === 0) await sleep(cluster.clock, 1000);
      }
      assert.ok(turn > 6, `${turn} batches`);
      const keys = seen.map(keyOfRow);
      assert.deepEqual(keys, [...new Set(keys)].sort());
      const found = new Set(keys);
      assert.ok(before.every((row) => found.has(keyOfRow(row))));
      // what a split adds below a row is there if the row is as it was after the split
      for (const [i, { range }] of seen.entries())
        assert.ok(i === 0 ? range.start === '' : range.start <= seen[i - 1]!.range.end!, 'no row is left out');
    }, TINY),
  );

  test(
    'a commit of two rows that lie in different tablets is refused with the rows as they are, and changes neither',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      await sleep(cluster.clock, QUIET_MS);
      const metadata = metadataOf(tables.env);
      const rows = await rowsIn(metadata, USER_RANGE, tables.context());
      assert.equal((await rowsIn(metadata, ROOT_RANGE, tables.context())).length, 2);
      const [low, high] = rows.map((row) => ({ ...row, server: undefined, logs: [] }));
      const merge = commitOfMerge('merge', 1, low!, high!);
      assert.deepEqual(await metadata.commit([merge], tables.context()), [{ kind: 'refused', rows }]);
      assert.deepEqual(await metadataOf(tables.env).commit([merge], tables.context()), [{ kind: 'refused', rows }]);
      assert.deepEqual(await rowsIn(metadata, USER_RANGE, tables.context()), rows);
    }, TINY),
  );
});

/** Scans of parts of METADATA return what a scan of all does. */
async function scansParts(tables: Tables, users: readonly MetadataRow[]): Promise<void> {
  const keys = users.map(keyOfRow);
  const metadata = metadataOf(tables.env);
  for (let i = 0; i < keys.length; i += 3) {
    for (const range of [
      { start: keys[i]!, end: keys[i + 2] },
      { start: `${keys[i]}\0`, end: `${keys[i + 1]}\0` },
    ] satisfies RowRange[]) {
      const expected = keys.filter((key) => rangeContains(range, key));
      assert.deepEqual((await rowsIn(metadata, range, tables.context())).map(keyOfRow), expected);
    }
  }
}
