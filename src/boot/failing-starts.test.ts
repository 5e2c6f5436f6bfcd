/**
 * Starts that fail at any of their calls: their resources are free again, so that they do not block the next start,
 * here or elsewhere.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { Client } from '../client/index.ts';
import { BigtableError, Code, unavailable } from '../base/index.ts';
import { type Env, type LockEvent, type LockService, ManualClock, type Transport } from '../env/index.ts';
import { Master } from '../master/index.ts';
import { LIMITS } from '../model/index.ts';
import { TabletServer } from '../tabletserver/index.ts';
import { Database } from './open/database.ts';
import { keepAlive, TestDatabase, World } from './fixtures.ts';
import { checkSettings, tabletServerSettings } from './settings/settings.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

/** Counts the held resources of the lock service and the transport, and lets one call fail. */
class Taken {
  sessions = 0;
  watches = 0;
  addresses = 0;
  calls = 0;
  /** The number of the call that fails. */
  failAt = Number.POSITIVE_INFINITY;
  failed = '';

  #step(what: string): void {
    if (++this.calls !== this.failAt) return;
    this.failed = what;
    throw unavailable(`${what} fails`);
  }

  lockService(inner: LockService): LockService {
    const counted: Partial<LockService> = {
      openSession: async () => {
        this.#step('openSession');
        this.sessions++;
        return inner.openSession();
      },
      closeSession: async (id) => {
        this.sessions--;
        return inner.closeSession(id);
      },
      watch: (prefix: string, listener: (event: LockEvent) => void) => {
        this.watches++;
        const stop = inner.watch(prefix, listener);
        let stopped = false;
        return () => {
          if (!stopped) this.watches--;
          stopped = true;
          stop();
        };
      },
    };
    return new Proxy(inner, {
      get: (target, name: keyof LockService) => {
        if (name in counted) return counted[name];
        const value = target[name] as unknown;
        if (typeof value !== 'function') return value;
        if (!['tryAcquire', 'holder', 'list', 'write', 'read'].includes(name)) return value.bind(target);
        return async (...args: unknown[]) => {
          this.#step(name);
          return (await value.apply(target, args)) as unknown;
        };
      },
    });
  }

  transport(inner: Transport): Transport {
    return {
      call: (...args) => inner.call(...args),
      stream: (...args) => inner.stream(...args),
      serve: async (address, handler) => {
        this.#step('serve');
        const stop = await inner.serve(address, handler);
        this.addresses++;
        return async () => {
          this.addresses--;
          await stop();
        };
      },
    };
  }
}

type Start = (env: Env) => Promise<{ close(): void | Promise<void> }>;

const settings = checkSettings({});
const server: Start = (env) =>
  TabletServer.start({ env, address: 'tablet-server-0', settings: tabletServerSettings(settings, 1) });
const client: Start = (env) => Client.open({ env, limits: LIMITS.default });
const database: Start = (env) => Database.start({ env, settings, tabletServers: 2 });
/** Starts next to a server that it does not own. */
const master: Start = async (env) => {
  const started = await Master.start({ env, address: 'master', isCancelled: () => true });
  await started.assigned.catch(async (error: unknown) => {
    await started.close();
    throw error;
  });
  return started;
};

/** Starts again and again, a later call failing each time, until none fails. Returns the calls that failed. */
async function failEverywhere(start: Start, neighbour?: Start): Promise<Set<string>> {
  const failures = new Set<string>();
  for (let failAt = 1; ; failAt++) {
    assert.ok(failAt < 200, 'the start makes calls without end');
    const clock = new ManualClock();
    const inner = await new World({ clock }).env();
    const other = await neighbour?.(inner);
    const taken = new Taken();
    taken.failAt = failAt;
    const env = {
      ...inner,
      lockService: taken.lockService(inner.lockService),
      transport: taken.transport(inner.transport),
    };
    const outcome = await inSimulatedTime(
      clock,
      start(env).catch((error: unknown) => error),
    );
    if (!(outcome instanceof Error)) {
      await inSimulatedTime(clock, Promise.resolve((outcome as { close(): Promise<void> }).close()));
      await inSimulatedTime(clock, Promise.resolve(other?.close()));
      if (taken.failed === '') return failures;
      // it was made again, or made after the start
      assert.ok(failures.size > 0);
      continue;
    }
    assert.ok(outcome instanceof BigtableError && outcome.code === Code.UNAVAILABLE, `${outcome}`);
    failures.add(taken.failed);
    const where = `${taken.failed}, call ${failAt}`;
    assert.deepEqual(
      { sessions: taken.sessions, watches: taken.watches, addresses: taken.addresses },
      { sessions: 0, watches: 0, addresses: 0 },
      where,
    );
    if (other === undefined) assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY, `a timer is left: ${where}`);
    // the next start is not blocked
    await inSimulatedTime(
      clock,
      start(inner).then(async (again) => {
        await again.close();
        await other?.close();
      }),
    );
  }
}

/** Calls `before` before each call of the object. */
function beforeEachCall<T extends object>(inner: T, before: () => void): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        before();
        return value.apply(target, args) as unknown;
      };
    },
  });
}

/**
 * Starts on data that exists, again and again; the session of its first tablet server ends at a later call each
 * time, until the start is over before. Returns the numbers of the starts that failed, and of those that did not, after
 * which all rows were read.
 */
async function endServerEverywhere(tabletServers: number): Promise<{ failed: number; served: number }> {
  const clock = new ManualClock();
  const world = new World({ clock, tabletServers });
  const inTime = <T>(work: Promise<T>): Promise<T> =>
    inSimulatedTime(clock, work, () => world.messages.slice(-5).join('\n'));
  const write = async (): Promise<void> => {
    const db = await world.start();
    await db.create('t', { splits: ['m'] });
    for (const row of ['a', 'z']) await db.set('t', row, row);
  };
  await inTime(write());
  const outcomes = { failed: 0, served: 0 };
  for (let endAt = 1; ; endAt++) {
    assert.ok(endAt < 1000, 'the start makes calls without end');
    world.crash();
    const inner = await world.env();
    const { lockService: locks } = inner;
    let calls = 0;
    let session: string | undefined;
    const before = (): void => {
      if (++calls === endAt && session !== undefined) void locks.closeSession(session);
    };
    const openSession = async (): Promise<string> => {
      const opened = await locks.openSession();
      session ??= opened;
      return opened;
    };
    const lockService = new Proxy(beforeEachCall<LockService>(locks, before), {
      get: (target, name) => (name === 'openSession' ? openSession : (Reflect.get(target, name) as unknown)),
    });
    const env = { ...inner, lockService, transport: beforeEachCall(inner.transport, before) };
    const outcome = await inTime(Database.start({ env, settings, tabletServers }).catch((error: unknown) => error));
    if (outcome instanceof Database) {
      const isOver = calls < endAt;
      calls = endAt;
      const db = new TestDatabase(outcome);
      assert.deepEqual(await inTime(db.rows('t')), ['a', 'z'], `call ${endAt}`);
      await inTime(db.close());
      if (isOver) return outcomes;
      outcomes.served++;
    } else {
      assert.ok(outcome instanceof BigtableError, `call ${endAt}: ${outcome}`);
      outcomes.failed++;
    }
  }
}

describe('a start that fails', () => {
  test('of a tablet server: leaves no session, lock, watch, address or timer', async () => {
    const failures = await failEverywhere(server);
    const expected = ['holder', 'list', 'openSession', 'read', 'serve', 'tryAcquire', 'write'];
    assert.deepEqual([...failures].sort(), expected);
  });

  test('of a master: nor does it', async () => {
    const failures = await failEverywhere(master, server);
    for (const each of ['openSession', 'tryAcquire', 'list', 'serve', 'write']) assert.ok(failures.has(each), each);
  });

  test('of a client library: nor does it', async () => {
    assert.deepEqual([...(await failEverywhere(client))], ['list']);
  });

  test('of a database: nor does it, nor any of its parts', async () => {
    const failures = await failEverywhere(database);
    for (const each of ['openSession', 'tryAcquire', 'list', 'serve', 'write']) assert.ok(failures.has(each), each);
  });

  for (const tabletServers of [1, 2])
    test(`of a database of which one of ${tabletServers} tablet servers ends meanwhile: waits for nothing`, async () => {
      const { failed, served } = await endServerEverywhere(tabletServers);
      assert.ok(failed > 10, `${failed} starts failed, ${served} did not`);
    });
});
