import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Cluster, inCluster } from '../../test/cluster.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code, unavailable } from '../base/index.ts';
import { type LockEvent, type LockService, notReached, sleep, toPlainError } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import {
  keyOfRow,
  keysOfTable,
  METADATA_TABLE_ID,
  type MetadataRow,
  ROOT_RANGE,
  USER_RANGE,
} from '../metadata/index.ts';
import type { RowRange } from '../model/index.ts';
import {
  callMaster,
  callServer,
  encodePeerFile,
  PROTOCOL,
  type ReadMessage,
  type TabletRef,
} from '../protocol/index.ts';
import { Master } from './index.ts';

const T = `${TABLES}t`;

const metadataOf = ({ env }: Cluster): MetadataClient =>
  new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });

async function rowsOf(cluster: Cluster, tables: Tables, table = 't'): Promise<MetadataRow[]> {
  const { id } = await cluster.client.getTable(tables.context(), TABLES + table);
  return metadataRows(cluster, tables, keysOfTable(id));
}

async function metadataRows(cluster: Cluster, tables: Tables, range: RowRange): Promise<MetadataRow[]> {
  const rows: MetadataRow[] = [];
  for await (const some of metadataOf(cluster).scan(range, tables.context())) rows.push(...some);
  return rows;
}

const ownersOf = async (cluster: Cluster, tables: Tables, table?: string): Promise<(string | undefined)[]> =>
  (await rowsOf(cluster, tables, table)).map(({ server }) => server?.address);

/** Has the tablet's server release it, unrequested, as by a former master. */
async function unload(cluster: Cluster, tables: Tables, row: MetadataRow): Promise<void> {
  assert.ok(row.server);
  const message = { tablets: [{ key: keyOfRow(row), epoch: row.epoch }], flush: true };
  await callServer(cluster.env.transport, row.server.address, 'unload', message, tables.context());
}

const linesOf = ({ messages }: Cluster, words: RegExp): number => messages.filter((line) => words.test(line)).length;

const sweep = ({ env }: Cluster, tables: Tables) => callMaster(env.transport, 'master', 'sweep', {}, tables.context());

describe('assignments', () => {
  test(
    'spread tablets over a server that comes, and give those of one that dies to the others',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['c', 'f', 'j', 'm', 'p'] });
      for (const row of ['a', 'd', 'g', 'k', 'n', 'q']) await tables.set('t', row, row);
      await cluster.startServer();
      await sleep(cluster.clock, 60_000);
      const owners = await ownersOf(cluster, tables);
      assert.equal(owners.filter((owner) => owner === 'server-1').length, 3);
      await cluster.kill(1);
      assert.deepEqual(await tables.rows('t'), ['a', 'd', 'g', 'k', 'n', 'q']);
      assert.deepEqual(new Set(await ownersOf(cluster, tables)), new Set(['server-0']));
    }),
  );

  test(
    'begin anew when METADATA is not served, though no server came or died',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t');
        await tables.set('t', 'a', '1');
        const [row] = await metadataRows(cluster, tables, ROOT_RANGE);
        assert.ok(row?.server);
        const owner = row.server.address;
        let isReleased = false;
        // the master has the answer that it is served there, and scans it when it is not
        cluster.onCall = ({ address, method, context, go }) => {
          if (isReleased || method !== 'status' || address !== owner || context.principal !== 'master')
            return undefined;
          isReleased = true;
          return go().then(async (status) => {
            await unload(cluster, tables, row);
            return status;
          });
        };
        while (!isReleased) await sleep(cluster.clock, 1000);
        await sleep(cluster.clock, 10_000);
        assert.deepEqual(await tables.read('t'), [['a', '1']]);
        assert.ok((await metadataRows(cluster, tables, ROOT_RANGE))[0]!.epoch > row.epoch);
        await sleep(cluster.clock, 60_000);
        assert.equal((await metadataRows(cluster, tables, ROOT_RANGE))[0]!.epoch, row.epoch + 1, 'once');
      },
      { servers: 2 },
    ),
  );

  test(
    'do not wait for a server that has its lock and does not answer the master',
    inCluster(
      async (cluster, tables) => {
        const { clock } = cluster;
        const names = ['t1', 't2', 't3', 't4', 't5', 't6'];
        for (const name of names) await tables.create(name);
        for (const name of names) await tables.set(name, 'a', '1');
        const owners = new Set<unknown>();
        for (const name of names) for (const owner of await ownersOf(cluster, tables, name)) owners.add(owner);
        assert.equal(owners.size, 3);
        cluster.onCall = ({ address, context }) =>
          context.principal === 'master' && address === 'server-2' ? cluster.noAnswer(context) : undefined;
        await cluster.kill(0);
        const killedMs = clock.monotonicMs();
        for (const name of names) await tables.set(name, 'b', '2');
        assert.ok(clock.monotonicMs() - killedMs < 5000, `${clock.monotonicMs() - killedMs} ms`);
        cluster.onCall = undefined;
      },
      { servers: 3 },
    ),
  );

  test(
    'keep a tablet where it is when its move fails at any step',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['c', 'f', 'j'] });
      for (const row of ['a', 'd', 'g', 'k']) await tables.set('t', row, row);
      let unloads = 0;
      let loads = 0;
      cluster.onCall = ({ method, go }) => {
        if (method === 'unload' && ++unloads <= 2) {
          const code = unloads === 1 ? Code.RESOURCE_EXHAUSTED : Code.FAILED_PRECONDITION;
          return Promise.resolve([toPlainError(new BigtableError(code, 'no'))]);
        }
        if (method === 'load' && ++loads === 1)
          return go().then(() => [toPlainError(unavailable('the answer is lost'))]);
        return undefined;
      };
      await cluster.startServer();
      await sleep(cluster.clock, 90_000);
      assert.ok(unloads > 2 && loads > 1, `${unloads} ${loads}`);
      assert.deepEqual(await tables.rows('t'), ['a', 'd', 'g', 'k']);
      assert.equal(linesOf(cluster, /could not release a tablet/), 1);
      assert.equal(new Set(await ownersOf(cluster, tables)).size, 2);
    }),
  );

  test(
    'find a tablet that its server does not have, and one that it has released at the epoch of its row',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      const [row] = await rowsOf(cluster, tables);
      assert.ok(row);
      await unload(cluster, tables, row);
      assert.deepEqual(await tables.read('t'), [['a', '1']]);
      const [now] = await rowsOf(cluster, tables);
      assert.ok(now && now.epoch > row.epoch);
    }),
  );

  test(
    'are taken back by the server that has released the tablet when the master cannot give it away',
    inCluster(
      async (cluster, tables) => {
        const { clock } = cluster;
        await tables.create('t');
        await tables.set('t', 'a', '1');
        const [row] = await rowsOf(cluster, tables);
        assert.ok(row?.server);
        cluster.onCall = ({ context }) => (context.principal === 'master' ? cluster.noAnswer(context) : undefined);
        const releasedMs = clock.monotonicMs();
        await unload(cluster, tables, row);
        await tables.set('t', 'b', '2');
        assert.ok(clock.monotonicMs() - releasedMs < 2000, `${clock.monotonicMs() - releasedMs} ms`);
        const [now] = await rowsOf(cluster, tables);
        assert.deepEqual(now?.server, row.server);
        assert.equal(now.epoch, row.epoch + 1);
        cluster.onCall = undefined;
        // the master may move it now, and knows where it is
        await sleep(clock, 60_000);
        assert.deepEqual(await tables.rows('t'), ['a', 'b']);
        await cluster.kill(row.server.address === 'server-0' ? 0 : 1);
        assert.deepEqual(await tables.rows('t'), ['a', 'b']);
        assert.equal(linesOf(cluster, /is taken back/), 1);
      },
      { servers: 2 },
    ),
  );

  test(
    'leave a tablet that was given to another server where it is',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t');
        await tables.set('t', 'a', '1');
        const [row] = await rowsOf(cluster, tables);
        assert.ok(row);
        await unload(cluster, tables, row);
        // a look of the master, which is caused by this one, gives it away
        assert.deepEqual(await tables.rows('t'), ['a']);
        const [given] = await rowsOf(cluster, tables);
        await sleep(cluster.clock, 10_000);
        assert.deepEqual((await rowsOf(cluster, tables))[0]?.epoch, given?.epoch);
      },
      { servers: 2 },
    ),
  );

  for (const killed of [0, 1])
    test(
      `are served by the server that METADATA names, though no call of the master arrives (${killed} is dead)`,
      inCluster(
        async (cluster, tables) => {
          const { clock } = cluster;
          await tables.create('t', { splits: ['m'] });
          await tables.set('t', 'a', '1');
          await tables.set('t', 'z', '1');
          cluster.onCall = ({ method, message, context }) =>
            method === 'load' && (message as { tablets: readonly TabletRef[] }).tablets[0]?.key.startsWith('00000010')
              ? cluster.noAnswer(context)
              : undefined;
          const epochs = (await rowsOf(cluster, tables)).map(({ epoch }) => epoch);
          await cluster.kill(killed);
          assert.deepEqual(await tables.rows('t'), ['a', 'z']);
          const now = await rowsOf(cluster, tables);
          assert.ok(
            now.every(({ epoch }, i) => epoch <= epochs[i]! + 1),
            'none was given away twice',
          );
          assert.ok(linesOf(cluster, /no master has announced/) > 0);
          // nothing is loaded that was released
          cluster.onCall = undefined;
          await sleep(clock, 60_000);
          await tables.set('t', 'b', '2');
          assert.deepEqual(await tables.rows('t'), ['a', 'b', 'z']);
        },
        { servers: 2 },
      ),
    );

  test(
    'are recovered immediately when a server dies that fell silent while one of them was moved from it',
    inCluster(
      async (cluster, tables) => {
        const { clock } = cluster;
        const letters = [...'bcdefghi'];
        await tables.create('t', { splits: letters });
        for (const row of letters) await tables.set('t', row, '1');
        // after the death of a server with tablets of METADATA all rows are read
        const root = await metadataOf(cluster).readRoot(tables.context());
        const [cut, left] = root?.server?.address === 'server-0' ? [1, 0] : [0, 1];
        let isCut = false;
        cluster.onCall = ({ method, address, context }) => {
          if (context.principal !== 'master') return undefined;
          if (address === `server-${left}` && method === 'unload') return cluster.noAnswer(context);
          if (address !== `server-${cut}`) return undefined;
          isCut ||= method === 'unload';
          return isCut ? Promise.reject(notReached('another process has its address now')) : undefined;
        };
        await cluster.startServer();
        // looks of the master find that it does not answer
        await sleep(clock, 70_000);
        assert.ok(isCut);
        assert.ok(linesOf(cluster, /was not moved/) > 0);
        assert.equal(linesOf(cluster, /holds its lock and does not answer/), 1);
        await cluster.kill(cut);
        const killedMs = clock.monotonicMs();
        assert.deepEqual(await tables.rows('t'), letters);
        assert.ok(clock.monotonicMs() - killedMs < 5000, `${clock.monotonicMs() - killedMs} ms`);
      },
      { servers: 2 },
    ),
  );

  test(
    'are not loaded by a server because of callers whose locations are stale',
    inCluster(
      async (cluster, tables) => {
        const { clock, env } = cluster;
        await tables.create('t', { splits: ['m'] });
        const [row] = await rowsOf(cluster, tables);
        assert.ok(row?.server);
        const other = row.server.address === 'server-0' ? 'server-1' : 'server-0';
        const { tableId } = row;
        let looks = 0;
        cluster.onStream = ({ method, message, context }) => {
          const isLook = method === 'read' && (message as { tableId: string }).tableId !== tableId;
          if (isLook && context.principal === 'tablet-server') looks++;
          return undefined;
        };
        for (let i = 0; i < 50; i++) {
          for (let j = 0; j < 20; j++) {
            const message = { tableId, row: `a${j}`, mutations: [] };
            await rejectsWith(
              Code.UNAVAILABLE,
              callServer(env.transport, other, 'mutateRow', message, tables.context()),
            );
          }
          await sleep(clock, 100);
        }
        await sleep(clock, 5000);
        assert.deepEqual((await rowsOf(cluster, tables)).map(({ epoch }) => epoch)[0], row.epoch);
        assert.ok(looks > 0 && looks <= 6 * 16, `${looks} looks`);
        assert.equal(linesOf(cluster, /no master has announced/), 0);
      },
      { servers: 2 },
    ),
  );

  test(
    'are looked up once while a load that a master has announced takes its time',
    inCluster(
      async (cluster, tables) => {
        const { clock } = cluster;
        await tables.create('t');
        await tables.set('t', 'a', '1');
        const [row] = await rowsOf(cluster, tables);
        assert.ok(row?.server);
        // the load reads the whole row, a look its location
        let [looks, held] = [0, 0];
        cluster.onStream = ({ method, message, context, go }) => {
          const read = message as ReadMessage;
          if (method !== 'read' || read.tableId !== METADATA_TABLE_ID || context.principal !== 'tablet-server')
            return undefined;
          const { start = '' } = read.ranges[0] ?? {};
          if (!start.startsWith(row.tableId)) return undefined;
          if (read.filter !== undefined) {
            looks++;
            return undefined;
          }
          held++;
          return (async function* (): AsyncGenerator<unknown> {
            await sleep(clock, 3500);
            yield* go();
          })();
        };
        await cluster.kill(row.server.address === 'server-0' ? 0 : 1);
        assert.deepEqual(await tables.rows('t'), ['a']);
        assert.ok(held > 0 && looks <= 2, `${held} reads held, ${looks} looks`);
        assert.equal(linesOf(cluster, /no master has announced/), 0);
      },
      { servers: 2 },
    ),
  );

  test(
    'log once why a tablet cannot be loaded, and once that it is',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      let damaged = true;
      cluster.onCall = ({ method, message, go }) => {
        const { tablets } = message as { tablets?: readonly { key: string }[] };
        if (!damaged || method !== 'load' || !tablets?.some(({ key }) => key.startsWith('00000010'))) return go();
        return Promise.resolve(tablets.map(() => toPlainError(new BigtableError(Code.DATA_LOSS, 'damaged'))));
      };
      await cluster.kill(0);
      await cluster.startServer();
      await sleep(cluster.clock, 120_000);
      assert.equal(linesOf(cluster, /could not be loaded and will/), 1);
      damaged = false;
      await sleep(cluster.clock, 60_000);
      assert.deepEqual(await tables.rows('t'), ['a']);
      assert.equal(linesOf(cluster, /is served now/), 1);
    }),
  );

  test(
    'are retried when they fail, and each failure is logged once',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      let failures = 5;
      cluster.onLockCall = (name, path) =>
        name === 'list' && path === 'servers/' && failures-- > 0 ? Promise.reject(unavailable('away')) : undefined;
      await sleep(cluster.clock, 60_000);
      assert.ok(failures < 0);
      assert.equal(linesOf(cluster, /could not assign and will try again/), 1);
    }),
  );
});

describe('tablet servers', () => {
  test(
    'that hold their lock and do not answer are called again, and their tablets wait',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'z']) await tables.set('t', row, row);
        const before = await ownersOf(cluster, tables);
        const answers: (() => Promise<unknown>)[] = [
          () => Promise.reject(unavailable('a moment of weakness')),
          () => Promise.resolve({ name: 'another', protocol: PROTOCOL, locked: true, tablets: [] }),
          () => Promise.resolve({ name: cluster.servers[1]?.name, protocol: PROTOCOL, locked: false, tablets: [] }),
        ];
        let next = 0;
        let silent = true;
        cluster.onCall = ({ method, address }) =>
          silent && method === 'status' && address === 'server-1' ? answers[next++ % 3]?.() : undefined;
        await sleep(cluster.clock, 60_000);
        assert.equal(linesOf(cluster, /does not answer/), 1);
        assert.deepEqual(await ownersOf(cluster, tables), before);
        silent = false;
        await sleep(cluster.clock, 2000);
        await tables.create('u');
        silent = true;
        await sleep(cluster.clock, 60_000);
        await cluster.kill(1);
        assert.deepEqual(await tables.rows('t'), ['a', 'z']);
        assert.equal(linesOf(cluster, /does not answer/), 2);
      },
      { servers: 2 },
    ),
  );

  test(
    'whose lock is free are fenced, and one of another protocol is left out',
    inCluster(async (cluster, tables) => {
      const { lockService } = cluster.env;
      const peer = { name: 'dead', address: 'nowhere', protocol: PROTOCOL };
      await lockService.write('servers/dead', encodePeerFile(peer));
      const session = await lockService.openSession();
      await lockService.tryAcquire('servers/newer', session);
      const newer = { name: 'newer', address: 'newer', protocol: { ...PROTOCOL, version: 99 } };
      await lockService.write('servers/newer', encodePeerFile(newer));
      await sleep(cluster.clock, 40_000);
      assert.equal(await lockService.read('servers/dead'), undefined);
      assert.equal(linesOf(cluster, /does not answer.*speaks version 99/), 1);
      await tables.create('t');
      await tables.set('t', 'a', '1');
      await rejectsWith(Code.UNAVAILABLE, cluster.client.deleteTable(tables.context(), T), /tablet server newer at/);
      await lockService.remove('servers/newer');
      // it may serve as long as it holds its lock
      await rejectsWith(Code.UNAVAILABLE, cluster.client.deleteTable(tables.context(), T), /tablet server newer at/);
      await lockService.closeSession(session);
      await cluster.client.deleteTable(tables.context(), T);
      await sleep(cluster.clock, 40_000);
    }),
  );

  test(
    'that fail a call to all are logged, and the call continues',
    inCluster(
      async (cluster, tables) => {
        cluster.onCall = ({ method, address }) =>
          method === 'schemaChanged' && address === 'server-0' ? Promise.reject(unavailable('away')) : undefined;
        await tables.create('t');
        assert.equal(linesOf(cluster, /failed a call/), 1);
        cluster.onCall = undefined;
      },
      { servers: 2 },
    ),
  );
});

describe('a master', () => {
  test(
    'stands by while another has the lock, and takes its place when that has lost it',
    inCluster(async (cluster, tables) => {
      let ended = 0;
      await tables.create('t');
      await cluster.master?.close();
      const first = await Master.start({ env: cluster.env, address: 'master', onEnd: () => ended++ });
      let second: Master | undefined;
      const starting = Master.start({ env: cluster.env, address: 'master-2', onEnd: () => ended++ });
      void starting.then((master) => (second = master));
      await first.assigned;
      await sleep(cluster.clock, 60_000);
      assert.equal(second, undefined);
      const lock = await cluster.env.lockService.holder('master');
      assert.ok(lock);
      await cluster.env.lockService.closeSession(lock.sessionId);
      second = await starting;
      await tables.create('u');
      await tables.set('u', 'a', '1');
      assert.equal(linesOf(cluster, /lost its lock, or its file, and ends itself/), 1);
      assert.equal(ended, 1, 'the first');
      await rejectsWith(
        Code.UNAVAILABLE,
        callMaster(cluster.env.transport, 'master', 'counters', {}, tables.context()),
      );
      await second.close();
      await second.close();
      assert.equal(ended, 1);
    }),
  );

  for (const isMissed of [false, true]) {
    test(
      `whose file is removed${isMissed ? ' while it hears of no changes' : ''} ends, and another takes its place`,
      inCluster(async (cluster, tables) => {
        let ended = 0;
        await cluster.master?.close();
        const first = await Master.start({ env: cluster.env, address: 'master', onEnd: () => ended++ });
        const starting = Master.start({ env: cluster.env, address: 'master-2' });
        await first.assigned;
        await sleep(cluster.clock, 1000);
        const hear = isMissed ? cluster.missChanges() : undefined;
        await cluster.env.lockService.remove('master');
        hear?.();
        cluster.master = await starting;
        await tables.create('t');
        await tables.set('t', 'a', '1');
        assert.equal(ended, 1);
      }),
    );
  }

  test(
    'stands by until its signal aborts, and leaves nothing behind',
    inCluster(async ({ env, master }) => {
      const abort = new AbortController();
      const start = Master.start({ env, address: 'master-2', signal: abort.signal });
      await sleep(env.clock, 1000);
      abort.abort();
      await rejectsWith(Code.CANCELLED, start, /master lock/);
      await master?.close();
      const next = await Master.start({ env, address: 'master-2' });
      await next.assigned;
      await next.close();
    }),
  );

  test('stands by also over gaps of its watch', async () => {
    const cluster = new Cluster();
    await cluster.inTime(async () => {
      await cluster.start();
      const { lockService: inner } = cluster.env;
      let report: ((event: LockEvent) => void) | undefined;
      const lockService = new Proxy(inner, {
        get: (target, name: keyof LockService) =>
          name === 'watch' && report === undefined
            ? (_prefix: string, listener: (event: LockEvent) => void) => {
                report = listener;
                listener({ kind: 'established' });
                return () => {};
              }
            : (target[name] as (...args: unknown[]) => unknown).bind(target),
      });
      const starting = Master.start({ env: { ...cluster.env, lockService }, address: 'master-2' });
      await sleep(cluster.clock, 1000);
      await cluster.master?.close();
      report?.({ kind: 'gap' });
      cluster.master = await starting;
      await cluster.close();
    });
  });

  test('that finds no tablet server waits for one, and answers meanwhile', async () => {
    const cluster = new Cluster();
    await cluster.inTime(async () => {
      const { clock, env } = cluster;
      cluster.master = await Master.start({ env, address: 'master' });
      await cluster.openClient();
      const creating = cluster.tables.create('t');
      await sleep(clock, 20_000);
      const { counters } = await callMaster(env.transport, 'master', 'counters', {}, cluster.tables.context());
      assert.equal(typeof counters, 'object');
      await rejectsWith(
        Code.UNAVAILABLE,
        callMaster(env.transport, 'master', 'sweep', {}, cluster.tables.context()),
        /METADATA is not served yet/,
      );
      assert.equal(linesOf(cluster, /could not assign.*no tablet server is alive/), 1);
      await cluster.startServer();
      await creating;
      await cluster.tables.set('t', 'a', '1');
      await cluster.master.assigned;
      await cluster.close();
    });
  });

  test(
    'answers, and lets data be read, before every tablet is assigned',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'n']) await tables.set('t', row, row);
        const dead = (await rowsOf(cluster, tables))[1]!.server!.address;
        await cluster.master?.close();
        const loading = new Gate();
        cluster.onCall = ({ method, message, go }) => {
          const { tablets } = message as { tablets: { key: string }[] };
          if (method !== 'load' || tablets.every(({ key }) => key.startsWith(METADATA_TABLE_ID))) return undefined;
          return loading.passed.then(go);
        };
        await cluster.kill(Number(dead.slice(-1)));
        const master = await Master.start({ env: cluster.env, address: 'master' });
        cluster.master = master;
        let isAssigned = false;
        void master.assigned.then(() => (isAssigned = true));
        const served = dead.endsWith('0') ? 'server-1' : 'server-0';
        const row = (await ownersOf(cluster, tables)).indexOf(served) === 0 ? 'a' : 'n';
        assert.deepEqual(await tables.read('t', { ranges: [{ start: row, end: `${row}\0` }] }), [[row, row]]);
        await cluster.client.modifyFamilies(tables.context(), T, [{ kind: 'create', family: { name: 'g' } }]);
        await tables.set('t', row, '2', 'g');
        assert.equal(isAssigned, false);
        loading.open();
        await master.assigned;
        assert.deepEqual(await tables.rows('t'), ['a', 'n']);
        cluster.onCall = undefined;
      },
      { servers: 2 },
    ),
  );

  test('gives up its first assignment when it is cancelled', async () => {
    const cluster = new Cluster();
    await cluster.inTime(async () => {
      let asked = 0;
      const master = await Master.start({ env: cluster.env, address: 'master', isCancelled: () => ++asked > 3 });
      await rejectsWith(Code.UNAVAILABLE, master.assigned, /no tablet server is alive/);
      await master.close();
      assert.equal(await cluster.env.lockService.holder('master'), undefined);
    });
  });

  test('does not begin a database anew if the file of its root is lost', async () => {
    for (const flushed of [false, true]) {
      const cluster = new Cluster();
      await cluster.inTime(async () => {
        await cluster.start();
        await cluster.tables.create('t');
        await cluster.tables.set('t', 'a', '1');
        if (flushed) await cluster.client.flush(cluster.tables.context());
        await cluster.master?.close();
        await cluster.env.lockService.remove('root');
        await rejectsWith(Code.DATA_LOSS, cluster.startMaster(), /no file "root"/);
        await cluster.master?.close();
        for (const server of cluster.servers) await server?.close();
      });
    }
  });

  test(
    'does not show callers a code that servers and masters use between them',
    inCluster(async (cluster, tables) => {
      const refused = toPlainError(new BigtableError(Code.FAILED_PRECONDITION, 'an earlier unloading is not finished'));
      cluster.onCall = ({ method, message }) =>
        method === 'load'
          ? Promise.resolve((message as { tablets: readonly unknown[] }).tablets.map(() => refused))
          : undefined;
      await rejectsWith(Code.UNAVAILABLE, tables.create('t'));
    }),
  );

  test(
    'is closed when its work is over, however often and by whomever that is asked',
    inCluster(async (cluster) => {
      let answer = (): void => {};
      const asked = new Promise<void>((resolve) => {
        cluster.onCall = ({ method, go }) => {
          if (method !== 'holdings') return undefined;
          resolve();
          return new Promise((done) => {
            answer = () => {
              cluster.onCall = undefined;
              done(go());
            };
          });
        };
      });
      await asked;
      let closed = 0;
      const close = (): Promise<unknown> => cluster.master!.close().then(() => closed++);
      const first = close();
      await sleep(cluster.clock, 100);
      const second = close();
      await sleep(cluster.clock, 100);
      assert.equal(closed, 0);
      answer();
      await Promise.all([first, second]);
    }),
  );

  test(
    'sweeps no file that a server was given after it was asked, and replaced before the scan, while a read is inside',
    inCluster(
      async (cluster, tables) => {
        const context = tables.context();
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'n']) {
          const cellOf = (n: number) => ({
            kind: 'setCell' as const,
            family: 'f',
            qualifier: `q${n}`,
            timestamp: 1000,
            value: Buffer.alloc(1000),
          });
          await tables.mutate('t', row, ...Array.from({ length: 20 }, (_, n) => cellOf(n)));
        }
        await cluster.client.flush(context);
        const given = async (): Promise<MetadataRow | undefined> =>
          (await rowsOf(cluster, tables)).find(({ server }) => server?.address === 'server-1');
        const asked = new Gate();
        let reading: AsyncIterator<unknown> | undefined;
        let held: readonly string[] = [];
        cluster.onCall = ({ method, address, go }) => {
          if (method === 'load' && address === 'server-1') return asked.passed.then(go);
          if (method !== 'holdings' || address !== 'server-0' || reading !== undefined) return undefined;
          return (async () => {
            asked.open();
            let row = await given();
            for (; row === undefined; row = await given()) await sleep(cluster.clock, 100);
            held = Object.values(row.files).flat();
            reading = cluster.client.readRows(context, { table: T, ranges: [row.range] })[Symbol.asyncIterator]();
            await reading.next();
            for await (const _progress of cluster.client.compactTables(context, T));
            return go();
          })();
        };
        await cluster.startServer();
        await sleep(cluster.clock, 500);
        await sweep(cluster, tables);
        cluster.onCall = undefined;
        assert.ok(held.length > 0);
        assert.ok(
          !Object.values((await given())!.files)
            .flat()
            .includes(held[0]!),
        );
        const files = (await cluster.fileSystem.list('sstables/')).map(({ path }) => path);
        for (const path of held) assert.ok(files.includes(path), path);
        while (!(await reading!.next()).done);
      },
      { settings: { readBatchBytes: 2000 } },
    ),
  );

  test(
    'sweeps files that no row lists, and nothing if a server does not answer, not even one that no row names',
    inCluster(async (cluster, tables) => {
      const { fileSystem } = cluster;
      await tables.create('t');
      await tables.set('t', 'a', '1');
      const garbage = async (name: string): Promise<void> => (await fileSystem.create(`sstables/${name}`)).close();
      await cluster.startServer();
      await sleep(cluster.clock, 1000);
      await garbage('g-1');
      assert.ok(!(await ownersOf(cluster, tables)).includes('server-1'));
      for (const away of ['server-0', 'server-1']) {
        cluster.onCall = ({ method, address }) =>
          method === 'holdings' && address === away ? Promise.reject(unavailable('away')) : undefined;
        assert.deepEqual(await sweep(cluster, tables), { files: 0, logs: 0 });
      }
      // one that does not even answer a status
      cluster.onCall = ({ method, address }) =>
        address === 'server-1' && (method === 'holdings' || method === 'status')
          ? Promise.reject(unavailable('away'))
          : undefined;
      await sleep(cluster.clock, 60_000);
      assert.deepEqual(await sweep(cluster, tables), { files: 0, logs: 0 });
      cluster.onCall = undefined;
      await sleep(cluster.clock, 10_000);
      assert.deepEqual(await sweep(cluster, tables), { files: 1, logs: 0 });
      await cluster.kill(0);
      await cluster.startServer();
      await tables.set('t', 'b', '1');
      await sleep(cluster.clock, 60_000);
      const { logs } = await sweep(cluster, tables);
      assert.ok(logs <= 1);
      await garbage('g-2');
      // by itself the hour
      await sleep(cluster.clock, 3_700_000);
      assert.equal((await fileSystem.list('sstables/')).filter(({ path }) => path.includes('g-2')).length, 0);
      assert.deepEqual(await tables.rows('t'), ['a', 'b']);
    }),
  );

  test(
    'is notified of splits, and of files that are left',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t');
        for (const row of 'abcdefgh') await tables.set('t', row, row);
        for (const row of 'bcdefgh') await cluster.client.splitTablets(tables.context(), T, row);
        await sleep(cluster.clock, 60_000);
        const owners = await ownersOf(cluster, tables);
        assert.equal(owners.filter((owner) => owner === 'server-0').length, 4);
        for await (const _ of cluster.client.compactTables(tables.context(), T));
        await sleep(cluster.clock, 60_000);
        assert.deepEqual(await tables.rows('t'), [...'abcdefgh']);
      },
      { servers: 2 },
    ),
  );
});

class Gate {
  open!: () => void;
  readonly passed = new Promise<void>((resolve) => (this.open = resolve));
}

/** Ways in which the link of a master to the lock service may fail it: what its calls answer from then on. */
const CUTS: Record<string, (inner: LockService) => Promise<Partial<LockService>>> = {
  'cannot reach the lock service': async () => {
    const away = () => Promise.reject(unavailable('away'));
    return {
      read: away,
      list: away,
      holder: away,
      write: away,
      remove: away,
      tryAcquire: away,
      leaseHolds: () => true,
    };
  },
  'hears nothing from the lock service': async () => ({ leaseHolds: () => true }),
  'reads the lock service as it was': async (inner) => {
    const [files, holder] = [await inner.list(''), await inner.holder('master')];
    return {
      list: async (prefix, after = '') => files.filter(({ path }) => path.startsWith(prefix) && path > after),
      read: async (path) => files.find((file) => file.path === path),
      holder: async (path) => (path === 'master' ? holder : inner.holder(path)),
      leaseHolds: () => true,
    };
  },
};

describe('a master that has lost its lock and does not know it', () => {
  for (const [how, cutOff] of Object.entries(CUTS)) {
    test(`does not remove the rows of a table that its successor makes: it ${how}`, async () => {
      const cluster = new Cluster({ servers: 2 });
      const { lockService: inner } = cluster.env;
      let cut: Partial<LockService> | undefined;
      const lockService = new Proxy(inner, {
        get: (target, name: keyof LockService) => {
          if (name !== 'watch') return cut?.[name] ?? (target[name] as (...args: unknown[]) => unknown).bind(target);
          const watch: LockService['watch'] = (prefix, listener) =>
            target.watch(prefix, (event) => cut === undefined && listener(event));
          return watch;
        },
      });
      await cluster.inTime(async () => {
        await cluster.startServer();
        await cluster.startServer();
        await Master.start({ env: { ...cluster.env, lockService }, address: 'first-master' });
        await cluster.openClient();
        await cluster.tables.create('x');
        await sleep(cluster.clock, 5000);
        const [reached, go] = [new Gate(), new Gate()];
        cluster.onStream = ({ message, context, go: read }) => {
          const { tableId, ranges } = message as ReadMessage;
          if (context.principal !== 'master' || tableId !== METADATA_TABLE_ID || ranges[0]?.start !== USER_RANGE.start)
            return undefined;
          cluster.onStream = undefined;
          return (async function* () {
            reached.open();
            await go.passed;
            yield* read();
          })();
        };
        await cluster.startServer();
        await reached.passed;
        cut = await cutOff(inner);
        const lock = await inner.holder('master');
        assert.ok(lock);
        await inner.closeSession(lock.sessionId);
        await cluster.startMaster();
        await cluster.openClient();
        const { tables } = cluster;
        await tables.create('t');
        await tables.set('t', 'a', '1');
        go.open();
        await sleep(cluster.clock, 120_000);
        assert.equal((await rowsOf(cluster, tables)).length, 1);
        await tables.set('t', 'b', '2');
        assert.deepEqual(await tables.rows('t'), ['a', 'b']);
        await assert.rejects(callMaster(cluster.env.transport, 'first-master', 'sweep', {}, tables.context()), {
          code: Code.UNAVAILABLE,
        });
        await cluster.close();
      });
    });
  }
});
