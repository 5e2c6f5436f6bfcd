/** Splits of METADATA's own tablets, next to all that changes and reads its rows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, type InterceptedCall, inCluster } from '../../test/cluster.ts';
import { allRows, type AllRows, assertSound, keysBeforeBoundaries } from '../../test/metadata-rows.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { Code, unavailable } from '../base/index.ts';
import { Metrics, sleep } from '../env/index.ts';
import { Locator } from '../locator/index.ts';
import { isMetadataTablet, keyOfRow, METADATA_TABLE_ID, type MetadataCommit, metadataKey } from '../metadata/index.ts';
import { callServer } from '../protocol/index.ts';

const T = `${TABLES}t`;
const rowsFrom = (first: number, count: number): string[] => Array.from({ length: count }, (_, i) => `r${first + i}`);
/** Some 64 rows of METADATA. */
const SMALL = { settings: { metadataTabletBytes: 24 << 10 } };
/** A while after the last load flushes begin by themselves. */
const LOADED_MS = 1000;
/** Every tablet of METADATA that has two rows is split. */
const TINY = { settings: { metadataTabletBytes: 1 } };

const idOf = async (tables: Tables, table: string): Promise<string> =>
  (await tables.service.getTable(tables.context(), TABLES + table)).id;
const rowsOf = (tables: Tables): Promise<AllRows> => allRows(tables.env, tables.context());

/** Waits until METADATA is as the test wants it. */
async function until({ clock }: Cluster, isReached: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = clock.monotonicMs() + 600_000;
  while (!(await isReached())) {
    assert.ok(clock.monotonicMs() < endMs, 'it does not come');
    await sleep(clock, 10);
  }
}

const commitsOf = ({ method, message }: InterceptedCall): readonly MetadataCommit[] =>
  method === 'commit' ? (message as { commits: readonly MetadataCommit[] }).commits : [];
const isSplitOf = (call: InterceptedCall, whose: 'METADATA' | 'users'): boolean =>
  commitsOf(call).some(
    ({ event, rows }) => event.kind === 'split' && isMetadataTablet(rows[0]!.key) === (whose === 'METADATA'),
  );

/** Everything is found, and every tablet served, by a client that knows nothing. */
async function assertServed(cluster: Cluster, tables: Tables, table: string, keys: readonly string[]): Promise<void> {
  assert.deepEqual(await tables.rows(table), keys);
  assert.deepEqual(await tables.rows(table, { reversed: true }), [...keys].reverse());
  const id = await idOf(tables, table);
  const metrics = new Metrics();
  for (const [i, key] of keys.entries()) {
    if (i % 7 > 0) continue;
    const before = metrics.get('locator.roundTrips');
    await new Locator({ ...cluster.env, metrics }).locate(id, key, tables.context());
    assert.equal(metrics.get('locator.roundTrips') - before, 3, `row ${key}`);
  }
}

describe('splits of METADATA', () => {
  test(
    'come as it grows, directly after a row near the middle, and everything is found',
    inCluster(async (cluster, tables) => {
      const keys = rowsFrom(100, 160);
      await tables.create('t');
      for (const key of keys) await tables.set('t', key, key);
      await sleep(cluster.clock, LOADED_MS);
      let largest = 0;
      for (const key of keys.slice(1)) {
        await cluster.client.splitTablets(tables.context(), T, key);
        const { metadata } = await rowsOf(tables);
        if (metadata.length === 1) largest++;
      }
      const all = await rowsOf(tables);
      assertSound(all);
      assert.ok(all.metadata.length >= 3, `${all.metadata.length} tablets of METADATA`);
      assert.ok(largest > 32 && largest < 128, `the first split came at ${largest} rows`);
      const present = new Set(all.users.map(keyOfRow));
      assert.ok(keysBeforeBoundaries(all).every((key) => present.has(key)));
      await assertServed(cluster, tables, 't', keys);
      await cluster.client.flush(tables.context());
      await assertServed(cluster, tables, 't', keys);
    }, SMALL),
  );

  test(
    'leave the rows of every split together: those next to a boundary are split further',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['c', 'f', 'j', 'm', 'p', 's'] });
      await until(cluster, async () => (await rowsOf(tables)).metadata.length >= 6);
      const { metadata: before } = await rowsOf(tables);
      for (const row of ['b', 'd', 'e', 'g', 'h', 'i', 'k', 'n', 'o', 'q', 't', 'z', 'a', 'bb', 'c0']) {
        await cluster.client.splitTablets(tables.context(), T, row);
        assertSound(await rowsOf(tables));
      }
      assert.equal((await rowsOf(tables)).users.length, 22);
      await until(cluster, async () => (await rowsOf(tables)).metadata.length > before.length);
    }, TINY),
  );

  test(
    'refuse a merge of tablets whose rows lie apart, and both are served',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      await tables.set('t', 'a', '1');
      await until(cluster, async () => (await rowsOf(tables)).metadata.length === 2);
      await rejectsWith(
        Code.FAILED_PRECONDITION,
        cluster.client.mergeTablets(tables.context(), T, 'm'),
        /different tablets of METADATA/,
      );
      await tables.set('t', 'z', '1');
      assert.deepEqual(await tables.rows('t'), ['a', 'z']);
    }, TINY),
  );

  test(
    'between the two rows of a merge under way end the merge, and both tablets are served',
    inCluster(async (cluster, tables) => {
      const flush = holdFlushes(cluster, (call) => {
        flush.release();
        return until(cluster, async () => (await rowsOf(tables)).metadata.length === 2).then(() => call.go());
      });
      await tables.create('t', { splits: ['m'] });
      for (const row of ['a', 'z']) await tables.set('t', row, row);
      await rejectsWith(Code.ABORTED, cluster.client.mergeTablets(tables.context(), T, 'm'), /try again/);
      assert.equal(flush.merges, 1);
      const all = await rowsOf(tables);
      assertSound(all);
      assert.deepEqual(keysBeforeBoundaries(all), [metadataKey(await idOf(tables, 't'), 'm')]);
      assert.equal(all.users.length, 2);
      for (const row of ['b', 'y']) await tables.set('t', row, row);
      assert.deepEqual(await tables.rows('t'), ['a', 'b', 'y', 'z']);
    }, TINY),
  );

  test(
    'directly after the new row of a split whose answer was lost do not hide that it was done',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      for (const row of ['a', 'z']) await tables.set('t', row, row);
      let lost = 0;
      cluster.onCall = (call) => {
        if (!isSplitOf(call, 'users') || lost++ > 0) return undefined;
        return call.go().then(async () => {
          await until(cluster, async () => (await rowsOf(tables)).metadata.length === 2);
          throw unavailable('the answer is lost');
        });
      };
      await cluster.client.splitTablets(tables.context(), T, 'm');
      assert.equal(lost, 1, 'it is not sent again');
      const all = await rowsOf(tables);
      assert.deepEqual(keysBeforeBoundaries(all), [metadataKey(await idOf(tables, 't'), 'm')]);
      for (const row of ['b', 'y']) await tables.set('t', row, row);
      assert.deepEqual(await tables.rows('t'), ['a', 'b', 'y', 'z']);
      assert.ok(!cluster.messages.some((line) => /no longer served|could not be split/.test(line)));
    }, TINY),
  );

  test(
    'while a compaction of everything waits leave it the parts',
    inCluster(async (cluster, tables) => {
      const flush = holdFlushes(cluster);
      await tables.create('t', { splits: ['m'] });
      const gate = cluster.onCall!;
      let split = (): void => {};
      const released = new Promise<void>((resolve) => (split = resolve));
      let isHeld = false;
      cluster.onCall = (call) => {
        if (isSplitOf(call, 'METADATA')) {
          isHeld = true;
          return released.then(() => call.go());
        }
        if (call.method === 'compactMetadata') sleep(cluster.clock, 1).then(split, split);
        return gate(call);
      };
      flush.release();
      await until(cluster, () => isHeld);
      for await (const _ of cluster.client.compactTables(tables.context()));
      const files = (await rowsOf(tables)).metadata.map((row) => Object.values(row.files).flat());
      assert.equal(files.length, 2);
      assert.deepEqual(
        files[0]!.filter((path) => files[1]!.includes(path)),
        [],
        'they share no file any more',
      );
      await tables.set('t', 'a', '1');
    }, TINY),
  );

  test('come after a row that is there when they are committed, whatever the turn in which a merge removes it', async () => {
    const outcomes = { merged: 0, refused: 0 };
    for (let turns = 0; turns < 400; turns += 16) {
      await inCluster(async (cluster, tables) => {
        let flush: Promise<unknown> | undefined;
        cluster.onCall = (call) => {
          if (!commitsOf(call).some(({ event }) => event.kind === 'merged') || flush !== undefined) return undefined;
          // METADATA is split once it is flushed
          const keys = [metadataKey(METADATA_TABLE_ID, undefined)];
          flush = callServer(cluster.env.transport, call.address, 'flush', { keys }, tables.context());
          return after(turns).then(() => call.go());
        };
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'z']) await tables.set('t', row, row);
        await cluster.client.mergeTablets(tables.context(), T, 'm').then(
          () => outcomes.merged++,
          () => outcomes.refused++,
        );
        await sleep(cluster.clock, 1000);
        assertSound(await rowsOf(tables));
        await cluster.client.splitTablets(tables.context(), T, 'k');
        const all = await rowsOf(tables);
        assertSound(all);
        const key = metadataKey(await idOf(tables, 't'), 'k');
        assert.ok(
          all.users.some((row) => keyOfRow(row) === key),
          `after ${turns} turns`,
        );
        assert.deepEqual(await tables.rows('t'), ['a', 'z']);
      }, TINY)();
    }
    assert.ok(outcomes.merged > 2 && outcomes.refused > 2, JSON.stringify(outcomes));
  });
});

/** Resolves after that many turns of other work. */
async function after(turns: number): Promise<void> {
  for (let i = 0; i < turns; i++) await undefined;
}

interface HeldFlushes {
  merges: number;
  /** Lets the flushes continue. */
  release(): void;
}

/** METADATA's flushes, and so its splits, wait for `release`. `onMerge` makes the commit of the first merge. */
function holdFlushes(cluster: Cluster, onMerge = (call: InterceptedCall): Promise<unknown> => call.go()): HeldFlushes {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const held: HeldFlushes = { merges: 0, release: () => release() };
  cluster.onCall = (call) => {
    const commits = commitsOf(call);
    if (commits.some(({ event, rows }) => event.kind === 'compacted' && isMetadataTablet(rows[0]!.key)))
      return released.then(() => call.go());
    if (!commits.some(({ event }) => event.kind === 'merged') || held.merges++ > 0) return undefined;
    return onMerge(call);
  };
  return held;
}
