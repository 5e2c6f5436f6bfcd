/**
 * METADATA's tablets are split while the power fails, before every operation on files, and while tablet servers end, at
 * every call between them. Afterwards everything acknowledged is there, METADATA is sound, and nothing is left over.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { allRows, type AllRows, assertSound } from '../../test/metadata-rows.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code, toBigtableError } from '../base/index.ts';
import { ManualClock, SeededRandom, sleep } from '../env/index.ts';
import { checkDatabase } from '../inspect/index.ts';
import { isMetadataTablet, ROOT_KEY } from '../metadata/index.ts';
import { readAllLockFiles } from '../platform/index.ts';
import { callServer } from '../protocol/index.ts';
import type { ControlService } from '../service/index.ts';
import { keepAlive, STORING, type TestDatabase, World } from './fixtures.ts';

/** Every how manieth point is tried; EDUBBA_CRASH_STRIDE=1 is the long form, .ci/run tries every eighth. */
const STRIDE = process.env['EDUBBA_CRASH_STRIDE'];
const MAX_MS = STRIDE === '1' ? 3_600_000 : 300_000;
/** Some five rows of METADATA; users' tablets here are smaller. */
const TABLET_BYTES = 2000;
/** METADATA's splits come by themselves a while after the flush that makes them due. */
const QUIET_MS = 5000;

const ends: (() => void)[] = [];
before(() => void ends.push(keepAlive()));
after(() => ends.forEach((end) => end()));

/** What was acknowledged. */
interface Promises {
  readonly rows: Set<string>;
  /** By table: rows at which a tablet begins, if no merge was requested there. */
  readonly splits: Map<string, Set<string>>;
  deleted: boolean;
}

type Control = Pick<ControlService, 'splitTablets' | 'mergeTablets' | 'flush'>;

const newPromises = (): Promises => ({ rows: new Set(), splits: new Map(), deleted: false });

/** Calls again while servers end. `done`: the code of the error by which a repetition says that it is done. */
async function patiently({ env }: Tables, call: () => Promise<unknown>, done?: Code): Promise<void> {
  for (;;) {
    const error = await call().then(() => undefined, toBigtableError);
    if (error === undefined || error.code === done) return;
    if (error.code !== Code.UNAVAILABLE) throw error;
    await sleep(env.clock, 100);
  }
}

/** Tables come and go, tablets are split and merged, and METADATA grows meanwhile. */
async function live(tables: Tables, control: Control, promises: Promises): Promise<void> {
  const create = async (table: string, splits: readonly string[]): Promise<void> => {
    await patiently(tables, () => tables.create(table, { splits }), Code.ALREADY_EXISTS);
    promises.splits.set(table, new Set(splits));
  };
  const write = async (row: string): Promise<void> => {
    await patiently(tables, () => tables.set('a', row, row));
    promises.rows.add(row);
  };
  const split = async (row: string): Promise<void> => {
    await patiently(tables, () => control.splitTablets(tables.context(), `${TABLES}a`, row));
    promises.splits.get('a')!.add(row);
  };
  await create('a', ['d', 'k']);
  await Promise.all(['b', 'e', 'm'].map(write));
  // flushes begin by themselves a while after the last load
  await sleep(tables.env.clock, 1000);
  await create('gone', ['b', 'd', 'f']);
  for (const row of ['c', 'f', 'h']) await split(row);
  const flush = (): Promise<void> => patiently(tables, () => control.flush(tables.context()));
  await Promise.all([split('m'), write('n'), flush()]);
  for (const row of ['k', 'f']) {
    promises.splits.get('a')!.delete(row);
    await control.mergeTablets(tables.context(), `${TABLES}a`, row).catch((thrown: unknown) => {
      const { code } = toBigtableError(thrown);
      // their rows lie apart, or a server ended
      assert.ok(new Set<Code>([Code.FAILED_PRECONDITION, Code.ABORTED, Code.UNAVAILABLE]).has(code), String(thrown));
    });
  }
  await Promise.all([patiently(tables, () => tables.delete('gone'), Code.NOT_FOUND), split('p')]);
  promises.deleted = true;
  await create('b', ['c', 'e']);
  await flush();
  await write('o');
}

async function assertKept(tables: Tables, promises: Promises): Promise<AllRows> {
  const listed = await tables.service.listTables(tables.context(), TABLES);
  const all = await allRows(tables.env, tables.context());
  // the rows of a table that is being deleted, or was not created to the end, need not make a whole
  const ids = new Set(listed.map(({ id }) => id));
  assertSound({ ...all, users: all.users.filter(({ tableId }) => ids.has(tableId)) });
  const idOf = (table: string): string | undefined => listed.find(({ name }) => name === TABLES + table)?.id;
  for (const [table, splits] of promises.splits) {
    if (table === 'gone') continue;
    const id = idOf(table);
    const starts = new Set(all.users.filter(({ tableId }) => tableId === id).map(({ range }) => range.start));
    for (const row of splits) assert.ok(starts.has(row), `the split of ${table} at ${row} is undone`);
  }
  assert.ok(!promises.deleted || idOf('gone') === undefined);
  if (promises.splits.has('a')) {
    const rows = new Set(await tables.rows('a'));
    for (const row of promises.rows) assert.ok(rows.has(row), `row ${row} is lost`);
  }
  return all;
}

/** Runs the life until operation `at`, then lets the power fail. Undefined if the life ended before. */
async function crashAt(at: number, tabletServers: number): Promise<AllRows | undefined> {
  const clock = new ManualClock();
  const promises = newPromises();
  let left = at;
  let crashed = false;
  let tellCrash = (): void => {};
  const crash = new Promise<void>((resolve) => (tellCrash = resolve));
  const world: World = new World({
    clock,
    tabletServers,
    tabletBytes: TABLET_BYTES,
    settings: { blockSizeBytes: 1024 },
    faults: (operation) => {
      if (crashed || !STORING.has(operation) || --left > 0) return;
      crashed = true;
      world.crash(new SeededRandom(at));
      tellCrash();
    },
  });
  const life = async (): Promise<void> => {
    const db = await world.start();
    await live(db, controlOf(db), promises);
    await sleep(clock, QUIET_MS);
    await db.close();
  };
  try {
    // no call is answered once the power has failed
    await inSimulatedTime(clock, Promise.race([life(), crash]));
  } catch (error) {
    if (!crashed || !(error instanceof BigtableError)) throw error;
  }
  if (!crashed) return undefined;
  left = Number.POSITIVE_INFINITY;
  return inSimulatedTime(clock, lookAfter(world, promises, clock));
}

async function lookAfter(world: World, promises: Promises, clock: ManualClock): Promise<AllRows> {
  const db = await world.start();
  const found = await assertKept(db, promises);
  if (!(await db.service.listTables(db.context(), TABLES)).some(({ name }) => name === `${TABLES}a`))
    await db.create('a');
  // each tablet can be split, whatever METADATA's boundaries
  for (const row of ['aa', 'bb', 'cc', 'dd', 'gg', 'kk', 'mm', 'oo']) await db.database.splitTablet(`${TABLES}a`, row);
  await db.database.flush();
  await sleep(clock, QUIET_MS);
  await assertKept(db, promises);
  await db.database.compact();
  await db.database.sweep();
  const { env } = db;
  const whole = await checkDatabase({ ...env, readAllLockFiles: () => readAllLockFiles(env.fileSystem) });
  assert.deepEqual([whole.findings, whole.orphans], [[], []]);
  await db.close();
  const again = await world.start();
  await assertKept(again, promises);
  await again.close();
  return found;
}

const controlOf = ({ database }: TestDatabase): Control => ({
  splitTablets: (_context, table, row) => database.splitTablet(table, row),
  mergeTablets: (_context, table, row) => database.mergeTablets(table, row),
  flush: () => database.flush(),
});

describe('METADATA is split', () => {
  for (const [tabletServers, stride] of [
    [1, 37],
    [2, 53],
  ] as const) {
    test(`while the power fails, before every operation, with ${tabletServers} tablet servers`, {
      timeout: MAX_MS,
    }, async () => {
      const boundaries = new Map<number, number>();
      for (let at = 1; ; at += Number(STRIDE ?? stride)) {
        const found = await crashAt(at, tabletServers).catch((error: unknown) => {
          throw new Error(`the power failed before operation ${at}: ${(error as Error).stack}`, { cause: error });
        });
        if (found === undefined) break;
        boundaries.set(found.metadata.length, (boundaries.get(found.metadata.length) ?? 0) + 1);
      }
      const points = [...boundaries.values()].reduce((sum, count) => sum + count, 0);
      console.log(`crash: ${points} power failures, by tablets of METADATA: ${JSON.stringify([...boundaries].sort())}`);
      assert.ok(boundaries.size >= 3, 'METADATA has one tablet, two, or more when the power fails');
    });
  }

  for (const [whose, stride] of [
    ['METADATA', 23],
    ['the root tablet', 23],
  ] as const) {
    test(`while the server of ${whose} ends, at every call`, { timeout: MAX_MS }, async () => {
      let points = 0;
      for (let at = 1; await endAt(at, whose === 'METADATA'); at += Number(STRIDE ?? stride)) points++;
      console.log(`crash: ${points} ends of the server of ${whose}`);
      assert.ok(points > 5);
    });
  }
});

/** The server of METADATA's last tablet, or of the root tablet, ends at call `at`. False if the life ended before. */
async function endAt(at: number, isMetadata: boolean): Promise<boolean> {
  let calls = 0;
  let hasEnded = false;
  await inCluster(
    async (cluster, tables) => {
      cluster.onCall = ({ go }) => {
        if (++calls !== at) return undefined;
        hasEnded = true;
        return endServer(cluster, tables, isMetadata).then(go);
      };
      const promises = newPromises();
      await live(tables, cluster.client, promises);
      if (hasEnded) await cluster.startServer();
      await sleep(cluster.clock, 60_000);
      cluster.onCall = undefined;
      await assertKept(tables, promises);
      for (const row of ['aa', 'bb', 'dd', 'gg', 'kk', 'oo'])
        await cluster.client.splitTablets(tables.context(), `${TABLES}a`, row);
      const { metadata } = await assertKept(tables, promises);
      assert.ok(metadata.length > 1);
    },
    { servers: 2, settings: { metadataTabletBytes: TABLET_BYTES, blockSizeBytes: 1024 } },
  )().catch((error: unknown) => {
    throw new Error(`it ended at call ${at}: ${(error as Error).stack}`, { cause: error });
  });
  return hasEnded;
}

async function endServer(cluster: Cluster, tables: Tables, isMetadata: boolean): Promise<void> {
  for (const [index, server] of cluster.servers.entries()) {
    if (server === undefined) continue;
    const status = await callServer(tables.env.transport, server.address, 'status', {}, tables.context());
    const keys = status.tablets.map(({ key }) => key).filter(isMetadataTablet);
    if (isMetadata ? keys.some((key) => key !== ROOT_KEY) : keys.includes(ROOT_KEY)) return cluster.kill(index);
  }
}
