import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { Code } from '../base/index.ts';
import {
  ByteBudget,
  type Env,
  type Guard,
  LocalTransport,
  ManualClock,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  requestContext,
  SeededRandom,
  silentLogger,
  sleep,
} from '../env/index.ts';
import { LIMITS } from '../model/index.ts';
import { callServer, isDeposed, isNotServing, type TabletServerCalls } from '../protocol/index.ts';
import { TabletServer, type TabletServerSettings } from './index.ts';

const settings: TabletServerSettings = {
  limits: LIMITS.default,
  blockSizeBytes: 4096,
  blockCacheBytes: 1 << 20,
  scanCacheBytes: 1 << 20,
  memtableBytes: 1 << 20,
  indexBytes: 1 << 20,
  inMemoryBytes: 1 << 20,
  logLimitBytes: 1 << 20,
  tabletBytes: 1 << 20,
  metadataTabletBytes: 1 << 20,
  compactionsAtOnce: 1,
  majorCompactionMs: 1e9,
};

/** Loses the session of a server as soon as the server has announced itself. */
class Impatient extends MemoryLockService {
  sessions = 0;
  expires = true;

  override async openSession(): Promise<string> {
    this.sessions++;
    return super.openSession();
  }

  override async closeSession(id: string): Promise<void> {
    this.sessions--;
    await super.closeSession(id);
  }

  override async write(
    path: string,
    contents: Uint8Array,
    guard: Guard & { readonly sessionId?: string } = {},
  ): Promise<number> {
    const version = await super.write(path, contents, guard);
    if (this.expires && guard.sessionId !== undefined) await super.closeSession(guard.sessionId);
    return version;
  }
}

function envWith(lockService: MemoryLockService, clock: ManualClock): Env {
  const env: Omit<Env, 'workers' | 'codecs'> = {
    fileSystem: new MemoryFileSystem(),
    lockService,
    transport: new LocalTransport(clock),
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(1 << 20),
  };
  return env as Env;
}

/** A test whose clock advances by itself. */
function inTime(work: (clock: ManualClock) => Promise<void>): () => Promise<void> {
  const clock = new ManualClock();
  return () => inSimulatedTime(clock, work(clock));
}

/** A call of each kind that masters make. */
const MASTER_CALLS: { readonly [M in keyof TabletServerCalls]?: TabletServerCalls[M]['message'] } = {
  status: {},
  load: { tablets: [] },
  unload: { tablets: [], flush: true },
  flush: { keys: [] },
  holdings: {},
  schemaChanged: { tableName: 't' },
  doorFilesChanged: { paths: ['policies/projects/p/instances/i'] },
};

describe('a tablet server', () => {
  test(
    'that loses its lock while it starts does not start, and leaves no file',
    inTime(async (clock) => {
      const lockService = new Impatient();
      const env = envWith(lockService, clock);
      const onEnd = (): void => assert.fail('a server that has not started has no end');
      await assert.rejects(TabletServer.start({ env, settings, address: 'a', onEnd }), {
        code: Code.UNAVAILABLE,
        message: /lost its lock/,
      });
      assert.equal(lockService.sessions, 0);
      lockService.expires = false;
      const next = await TabletServer.start({ env, settings, address: 'a' });
      await next.close();
    }),
  );

  test(
    'that loses its lock later ends once, with the reason, and can be closed',
    inTime(async (clock) => {
      const lockService = new Impatient();
      lockService.expires = false;
      const env = envWith(lockService, clock);
      const reasons: string[] = [];
      let ended = (): void => {};
      const end = new Promise<void>((resolve) => (ended = resolve));
      const server = await TabletServer.start({
        env,
        settings,
        address: 'a',
        onEnd: ({ message }) => {
          reasons.push(message);
          ended();
        },
      });
      const lock = await lockService.holder(`servers/${server.name}`);
      assert.ok(lock);
      await lockService.closeSession(lock.sessionId);
      await end;
      await server.close();
      await server.releaseTablets('users');
      assert.deepEqual(reasons, ['the tablet server has lost its lock']);
      const context = requestContext({ budget: env.requestBudget });
      await assert.rejects(callServer(env.transport, 'a', 'status', {}, context), { code: Code.UNAVAILABLE });
    }),
  );

  test(
    'that has lost its lock is closed when its log is',
    inTime(async (clock) => {
      const lockService = new MemoryLockService();
      const env = envWith(lockService, clock);
      const { fileSystem } = env;
      const openLog = fileSystem.openLog.bind(fileSystem);
      let isClosed = false;
      fileSystem.openLog = async (path) => {
        const log = await openLog(path);
        return Object.assign(log, {
          close: async () => {
            await sleep(clock, 1000);
            isClosed = true;
          },
        });
      };
      const server = await TabletServer.start({ env, settings, address: 'a' });
      const lock = await lockService.holder(`servers/${server.name}`);
      assert.ok(lock);
      await lockService.closeSession(lock.sessionId);
      await sleep(clock, 10);
      assert.equal(isClosed, false);
      await server.close();
      assert.equal(isClosed, true);
    }),
  );

  test(
    'whose lease lapses serves nothing, and serves again if the lock turns out to be held; it ends when it is lost',
    inTime(async (clock) => {
      const lockService = new MemoryLockService({ clock, leaseMs: 10_000 });
      const env = envWith(lockService, clock);
      const reasons: string[] = [];
      const onEnd = ({ message }: { message: string }): void => void reasons.push(message);
      const server = await TabletServer.start({ env, settings, address: 'a', onEnd });
      const path = `servers/${server.name}`;
      const lock = await lockService.holder(path);
      assert.ok(lock);
      const isLocked = async (): Promise<boolean> => {
        const context = requestContext({ budget: env.requestBudget });
        return (await callServer(env.transport, 'a', 'status', {}, context)).locked;
      };
      lockService.cut(lock.sessionId, true);
      while (await isLocked()) await sleep(clock, 10);
      assert.deepEqual(await lockService.holder(path), lock);
      lockService.cut(lock.sessionId, false);
      assert.deepEqual([await isLocked(), reasons], [true, []]);
      lockService.cut(lock.sessionId, true);
      await sleep(clock, 11_000);
      assert.equal(await lockService.read(path), undefined);
      assert.deepEqual(reasons, ['the tablet server has lost its lock']);
    }),
  );

  for (const lost of ['lock', 'file', undefined] as const) {
    test(
      `that missed changes of the lock service ${lost ? `ends if its ${lost} is lost` : 'serves on if it has its lock'}`,
      inTime(async (clock) => {
        const lockService = new MemoryLockService();
        const env = envWith(lockService, clock);
        const reasons: string[] = [];
        const onEnd = ({ message }: { message: string }): void => void reasons.push(message);
        const server = await TabletServer.start({ env, settings, address: 'a', onEnd });
        const end = lockService.missChanges();
        const lock = await lockService.holder(`servers/${server.name}`);
        assert.ok(lock);
        if (lost === 'lock') await lockService.closeSession(lock.sessionId);
        if (lost === 'file') await lockService.remove(lock.path);
        await sleep(clock, 1000);
        assert.deepEqual(reasons, []);
        end();
        await sleep(clock, 1000);
        assert.deepEqual(reasons, lost ? ['the tablet server has lost its lock'] : []);
        await server.close();
      }),
    );
  }

  test(
    'whose file is removed ends',
    inTime(async (clock) => {
      const lockService = new MemoryLockService();
      const reasons: string[] = [];
      const onEnd = ({ message }: { message: string }): void => void reasons.push(message);
      const server = await TabletServer.start({ env: envWith(lockService, clock), settings, address: 'a', onEnd });
      await lockService.remove(`servers/${server.name}`);
      await sleep(clock, 1000);
      assert.deepEqual(reasons, ['the tablet server has lost its lock']);
      assert.equal(await lockService.holder(`servers/${server.name}`), undefined);
    }),
  );

  test(
    'that took the address of another answers no call that is meant for that one',
    inTime(async (clock) => {
      const env = envWith(new MemoryLockService(), clock);
      const old = await TabletServer.start({ env, settings, address: 'a' });
      await old.close();
      const now = await TabletServer.start({ env, settings, address: 'a' });
      const context = requestContext({ budget: env.requestBudget });
      for (const [method, message] of Object.entries({ ...MASTER_CALLS, commit: { commits: [] } })) {
        await assert.rejects(env.transport.call('a', method, { ...message, to: old.name }, context), isNotServing);
        if (method in MASTER_CALLS) await env.transport.call('a', method, { ...message, to: now.name }, context);
      }
      await now.close();
    }),
  );

  test(
    'that a master has called refuses every call of the masters before it',
    inTime(async (clock) => {
      const env = envWith(new MemoryLockService(), clock);
      const server = await TabletServer.start({ env, settings, address: 'a' });
      const context = requestContext({ budget: env.requestBudget });
      for (const masterEpoch of [3, 3, 7])
        for (const [method, message] of Object.entries(MASTER_CALLS))
          await env.transport.call('a', method, { ...message, masterEpoch }, context);
      for (const [method, message] of Object.entries({ ...MASTER_CALLS, commit: { commits: [] } }))
        await assert.rejects(env.transport.call('a', method, { ...message, masterEpoch: 6 }, context), isDeposed);
      await callServer(env.transport, 'a', 'status', {}, context);
      await server.close();
    }),
  );

  test(
    'that is closed loads nothing more, and is closed once, also where two callers end it concurrently',
    inTime(async (clock) => {
      const env = envWith(new MemoryLockService(), clock);
      const onEnd = (): void => assert.fail('a server that is closed has no other end');
      const server = await TabletServer.start({ env, settings, address: 'a', onEnd });
      await server.releaseTablets('users');
      const context = requestContext({ budget: env.requestBudget });
      const load = { tablets: [{ key: '00000010:', epoch: 1 }] };
      const [answer] = await callServer(env.transport, 'a', 'load', load, context);
      assert.match(answer?.message ?? '', /is ending/);
      await Promise.all([server.close(), server.close()]);
      await server.close();
    }),
  );
});
