/**
 * The master without notifications, or with late ones: checks of assignments, servers that do not answer, and sweeps
 * during deaths.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { Code, unavailable } from '../base/index.ts';
import { type Env, ManualClock, type RequestContext, sleep, type Transport } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import {
  commitOfRow,
  keyOfRow,
  keysOfTable,
  METADATA_TABLE_ID,
  type MetadataRow,
  USER_RANGE,
} from '../metadata/index.ts';
import { callServer, logPathOf, type ReadMessage } from '../protocol/index.ts';
import { TabletServer } from '../tabletserver/index.ts';
import { Database } from './open/database.ts';
import { keepAlive, TABLES, TestDatabase, World } from './fixtures.ts';
import { checkSettings, tabletServerSettings } from './settings/settings.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

type Call = (
  method: string,
  address: string,
  message: unknown,
  context: RequestContext,
) => Promise<unknown> | undefined;

/** Calls go through `call` first, which may answer in place of the handler. */
function intercepted(inner: Transport, call: Call, stream: Transport['stream'] = inner.stream.bind(inner)): Transport {
  return {
    serve: (address, handler) => inner.serve(address, handler),
    call: (address, method, message, context) =>
      call(method, address, message, context) ?? inner.call(address, method, message, context),
    stream,
  };
}

async function start(env: Env, tabletServers: number): Promise<TestDatabase> {
  return new TestDatabase(await Database.start({ env, settings: checkSettings({}), tabletServers }));
}

function startServer(env: Env, index: number): Promise<TabletServer> {
  return TabletServer.start({
    env,
    address: `tablet-server-${index}`,
    settings: tabletServerSettings(checkSettings({}), 3),
  });
}

function metadataOf({ env }: TestDatabase): MetadataClient {
  return new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
}

async function rowsOf(db: TestDatabase, table: string): Promise<MetadataRow[]> {
  const { id } = await db.service.getTable(db.context(), TABLES + table);
  const rows: MetadataRow[] = [];
  for await (const some of metadataOf(db).scan(keysOfTable(id), db.context())) rows.push(...some);
  return rows;
}

async function onlyRow(db: TestDatabase): Promise<MetadataRow> {
  const [row] = await rowsOf(db, 't');
  assert.ok(row?.server);
  return row;
}

const refOf = (row: MetadataRow) => ({ key: keyOfRow(row), epoch: row.epoch });

function unload(db: TestDatabase, row: MetadataRow): Promise<unknown> {
  return callServer(
    db.env.transport,
    row.server?.address ?? '',
    'unload',
    { tablets: [refOf(row)], flush: true },
    db.context(),
  );
}

/** Waits take no time. */
function inTime(work: (env: Env) => Promise<void>): () => Promise<void> {
  return async () => {
    const clock = new ManualClock();
    const env = await new World({ clock }).env();
    await inSimulatedTime(clock, work(env));
  };
}

/** The session that a tablet server keeps its lock with: when it is closed the server is dead. */
async function kill(env: Env, name: string): Promise<void> {
  const lock = await env.lockService.holder(`servers/${name}`);
  assert.ok(lock);
  await env.lockService.closeSession(lock.sessionId);
}

class Gate {
  open!: () => void;
  readonly passed = new Promise<void>((resolve) => (this.open = resolve));
}

describe('a sweep during deaths', () => {
  test(
    'keeps the log of a server that comes, gets a tablet after the scan, acknowledges a write and dies',
    inTime(async (env) => {
      const [reached, go] = [new Gate(), new Gate()];
      const { transport: inner } = env;
      let state: 'idle' | 'armed' | 'broken' | 'held' = 'idle';
      // the scan of users' rows stops after the first one, until it is released
      const stream: Transport['stream'] = (address, method, message, context) => {
        const { tableId, ranges } = message as ReadMessage;
        const isScan =
          method === 'read' &&
          tableId === METADATA_TABLE_ID &&
          context.principal === 'master' &&
          ranges[0]?.end === undefined;
        if (isScan && state === 'armed' && ranges[0]?.start === USER_RANGE.start) {
          state = 'broken';
          return (async function* () {
            yield* inner.stream(address, method, { ...(message as ReadMessage), rowsLimit: 1 }, context);
            throw unavailable('the server of METADATA is away');
          })();
        }
        if (!isScan || state !== 'broken') return inner.stream(address, method, message, context);
        state = 'held';
        return (async function* () {
          reached.open();
          await go.passed;
          yield* inner.stream(address, method, message, context);
        })();
      };
      const shared = { ...env, transport: intercepted(inner, () => undefined, stream) };
      const db = await start(shared, 2);
      await db.create('t');
      await db.create('second');
      await db.set('t', 'a', '1');
      const third = await startServer(shared, 2);
      await db.database.sweep();
      state = 'armed';
      const sweeping = db.database.sweep();
      await reached.passed;
      await unload(db, await onlyRow(db));
      const now = await onlyRow(db);
      const given = {
        ...now,
        server: { name: third.name, address: third.address },
        epoch: now.epoch + 1,
        logs: [logPathOf(third.name)],
      };
      await metadataOf(db).commit(
        [commitOfRow('given', { kind: 'assigned', atMicros: 1 }, keyOfRow(now), now, given)],
        db.context(),
      );
      assert.deepEqual(
        await callServer(env.transport, third.address, 'load', { tablets: [refOf(given)] }, db.context()),
        [undefined],
      );
      await db.set('t', 'b', 'acknowledged');
      await kill(env, third.name);
      go.open();
      await sweeping;
      assert.ok(
        (await env.fileSystem.listLogs('logs/')).includes(logPathOf(third.name)) ||
          (await onlyRow(db)).server?.name !== third.name,
      );
      assert.deepEqual(await db.read('t'), [
        ['a', '1'],
        ['b', 'acknowledged'],
      ]);
      await db.close();
    }),
  );

  test(
    'keeps the log of a server that dies while a commit that assigns it a tablet is under way',
    inTime(async (env) => {
      const [reached, go] = [new Gate(), new Gate()];
      let held = '';
      // commits that assign that server a tablet wait
      const call: Call = (method, address, message, context) => {
        if (
          method !== 'commit' ||
          held === '' ||
          context.principal !== 'master' ||
          !JSON.stringify(message).includes(`"name":"${held}"`)
        )
          return undefined;
        reached.open();
        return go.passed.then(() => env.transport.call(address, method, message, context));
      };
      const shared = { ...env, transport: intercepted(env.transport, call) };
      const db = await start(shared, 1);
      await db.create('t', { splits: ['c', 'f', 'j'] });
      for (const row of ['a', 'd', 'g', 'k']) await db.set('t', row, row);
      const second = await startServer(shared, 1);
      held = second.name;
      // a second later the master moves tablets to it
      await reached.passed;
      await kill(env, second.name);
      await db.database.sweep();
      const log = logPathOf(second.name);
      assert.ok((await env.fileSystem.listLogs('logs/')).includes(log), 'a row may yet come to list it');
      go.open();
      held = '';
      assert.deepEqual(await db.rows('t'), ['a', 'd', 'g', 'k']);
      await db.database.flush();
      await db.database.sweep();
      assert.ok(!(await env.fileSystem.listLogs('logs/')).includes(log), 'no tablet needs it any more');
      await db.close();
    }),
  );
});

describe('a master without notifications', () => {
  test('finds a tablet that its server has released on its own, within half a minute', async () => {
    const clock = new ManualClock();
    const world = new World({ clock, tabletServers: 2 });
    await inSimulatedTime(
      clock,
      (async () => {
        const db = await world.start();
        await db.create('t');
        await db.set('t', 'a', '1');
        await sleep(clock, 100_000);
        const row = await onlyRow(db);
        // of a former master, for example
        await unload(db, row);
        const sinceMs = clock.monotonicMs();
        assert.deepEqual(await db.read('t'), [['a', '1']]);
        assert.ok(clock.monotonicMs() - sinceMs <= 31_000, `${clock.monotonicMs() - sinceMs} ms`);
        assert.ok((await onlyRow(db)).epoch > row.epoch);
        await db.close();
      })(),
    );
  });

  test('changes nothing while all is well', async () => {
    const clock = new ManualClock();
    const env = await new World({ clock }).env();
    const calls = new Map<string, number>();
    let counts = false;
    const call: Call = (method) => {
      if (counts) calls.set(method, (calls.get(method) ?? 0) + 1);
      return undefined;
    };
    await inSimulatedTime(
      clock,
      (async () => {
        const db = await start({ ...env, transport: intercepted(env.transport, call) }, 2);
        await db.create('t', { splits: ['c', 'f', 'j'] });
        await sleep(clock, 120_000);
        const before = await rowsOf(db, 't');
        counts = true;
        // less than an hour, in which the periodic sweep comes
        await sleep(clock, 1_800_000);
        counts = false;
        assert.deepEqual([...calls.keys()], ['status']);
        assert.ok(calls.get('status')! >= 2 * 59 && calls.get('status')! <= 2 * 61, `${calls.get('status')}`);
        assert.deepEqual(await rowsOf(db, 't'), before);
        await db.close();
      })(),
    );
  });

  test('calls a server again that failed to answer once, and counts it as live', async () => {
    const clock = new ManualClock();
    const world = new World({ clock });
    const env = await world.env();
    let failing = true;
    let notified: string[] = [];
    let calls = 0;
    const call: Call = (method, address) => {
      if (method === 'schemaChanged') notified.push(address);
      if (method !== 'status' || address !== 'tablet-server-1') return undefined;
      calls++;
      return failing ? Promise.reject(unavailable('a moment of weakness')) : undefined;
    };
    await inSimulatedTime(
      clock,
      (async () => {
        const db = await start({ ...env, transport: intercepted(env.transport, call) }, 2);
        await sleep(clock, 10_000);
        assert.ok(calls >= 10 && calls <= 12, `${calls} calls in 10 s`);
        failing = false;
        await sleep(clock, 2_000);
        notified = [];
        await db.create('t');
        assert.deepEqual(notified.sort(), ['tablet-server-0', 'tablet-server-1']);
        await (await env.fileSystem.create('sstables/garbage-0')).close();
        assert.equal((await db.database.sweep()).files, 1);
        assert.equal(
          world.messages.filter((message) => /does not answer/.test(message)).length,
          1,
          world.messages.join('\n'),
        );
        await db.close();
      })(),
    );
  });

  test('tries damaged tablets again and again, and logs it once', async () => {
    const clock = new ManualClock();
    const world = new World({ clock });
    await inSimulatedTime(
      clock,
      (async () => {
        let db = await world.start();
        await db.create('t');
        await db.set('t', 'a', '1');
        await db.database.flush();
        const [file] = Object.values((await onlyRow(db)).files).flat();
        assert.ok(file !== undefined);
        await db.close();
        const length = await world.fileSystem.size(file);
        const damageFooter = (): void => {
          for (let offset = length - 60; offset < length; offset++) world.fileSystem.damage(file, offset);
        };
        damageFooter();
        db = await world.start();
        await sleep(clock, 300_000);
        await assert.rejects(db.read('t'), { code: Code.DATA_LOSS });
        assert.equal(
          world.messages.filter((message) => /cannot be served|could not be loaded/.test(message)).length,
          2,
          world.messages.join('\n'),
        );
        // flipped back: no other event happens
        damageFooter();
        await sleep(clock, 31_000);
        assert.deepEqual(await db.read('t'), [['a', '1']]);
        await db.close();
      })(),
    );
  });

  test('does not wait for an earlier timer when a server dies', async () => {
    const clock = new ManualClock();
    const world = new World({ clock });
    const env = await world.env();
    let counts = false;
    let scans = 0;
    const call: Call = (method) => {
      if (counts && method === 'status') scans++;
      return undefined;
    };
    const shared = { ...env, transport: intercepted(env.transport, call) };
    const db = await inSimulatedTime(clock, start(shared, 2));
    await inSimulatedTime(clock, sleep(clock, 10_000));
    // a new one: the master checks it a second later
    const third = await inSimulatedTime(clock, startServer(shared, 2));
    counts = true;
    await kill(env, third.name);
    clock.advance(1);
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(scans > 0, 'immediately');
    await inSimulatedTime(clock, db.close());
  });
});
