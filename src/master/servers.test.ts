import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { losingAnswers } from '../../test/contracts/lost-answers.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { BigtableError, Code } from '../base/index.ts';
import {
  ByteBudget,
  type CallHandler,
  type Env,
  LocalTransport,
  type LockService,
  ManualClock,
  MemoryFileSystem,
  MemoryLockService,
  MemorySlotStore,
  Metrics,
  type RequestContext,
  requestContext,
  SeededRandom,
  silentLogger,
  withSlotLogs,
} from '../env/index.ts';
import { encodePeerFile, logPathOf, PROTOCOL } from '../protocol/index.ts';
import { Servers } from './servers.ts';

interface Fixture {
  readonly env: Env;
  readonly servers: Servers;
  /** Announces a server; returns the function that ends it. */
  announce(name: string, onStatus?: () => Promise<void>): Promise<() => Promise<void>>;
  scan(): Promise<void>;
  context(): RequestContext;
  readonly clock: ManualClock;
  /** Calls of the lock service whose next answer is lost. */
  readonly losing: Set<keyof LockService>;
  /** The calls of the lock service, by method. */
  readonly lockCalls: (keyof LockService)[];
}

async function fixture(): Promise<Fixture> {
  const clock = new ManualClock();
  const losing = new Set<keyof LockService>();
  const memory = new MemoryLockService();
  const lockCalls: (keyof LockService)[] = [];
  const { service: lockService } = losingAnswers(memory, (_call, method) => {
    lockCalls.push(method);
    return losing.delete(method);
  });
  const requestBudget = new ByteBudget(1 << 20);
  const parts = {
    fileSystem: new MemoryFileSystem(),
    lockService,
    transport: new LocalTransport(clock),
    clock,
    random: new SeededRandom(1),
  };
  const env = { ...parts, logger: silentLogger, metrics: new Metrics(), requestBudget } as unknown as Env;
  const sessionId = await lockService.openSession();
  const lock = await lockService.tryAcquire('master', sessionId);
  assert.ok(lock);
  const servers = new Servers(env, lock, () => {});
  return {
    env,
    servers,
    losing,
    lockCalls,
    clock,
    context: () => requestContext({ budget: requestBudget }),
    scan: () => servers.scan(requestContext({ budget: requestBudget })),
    announce: async (name, onStatus) => {
      const session = await lockService.openSession();
      await lockService.tryAcquire(`servers/${name}`, session);
      await env.fileSystem.openLog(logPathOf(name));
      const handler: CallHandler = {
        call: async () => {
          await onStatus?.();
          return { name, protocol: PROTOCOL, locked: true, tablets: [] };
        },
        stream: () => assert.fail('nothing is streamed'),
      };
      await env.transport.serve(name, handler);
      await lockService.write(`servers/${name}`, encodePeerFile({ name, address: name, protocol: PROTOCOL }), {
        sessionId: session,
      });
      return () => lockService.closeSession(session);
    },
  };
}

describe('the tablet servers as the master sees them', () => {
  test('one that is found dead is fenced, and no longer live, even if it answered a scan before', async () => {
    const { env, servers, announce, scan } = await fixture();
    let dies: (() => Promise<void>) | undefined;
    const die = await announce('a', async () => {
      await dies?.();
      // the other lane finds it dead after it has died and before the scan is over
      if (dies) assert.equal(await servers.isDead('a'), true);
    });
    await scan();
    assert.deepEqual(
      servers.all().map(({ name }) => name),
      ['a'],
    );
    assert.equal(await servers.isDead('a'), false);
    dies = die;
    await scan();
    assert.deepEqual(servers.all(), []);
    assert.throws(() => servers.choose(), /no tablet server is alive/);
    await assert.rejects(env.fileSystem.openLog(logPathOf('a')));
  });

  test('the lock of one that does not answer is requested every few seconds, and immediately after it has changed', async () => {
    const { servers, announce, scan, lockCalls, clock } = await fixture();
    const die = await announce('a', () => Promise.reject(new BigtableError(Code.UNAVAILABLE, 'it does not answer')));
    const asked = (): number => lockCalls.splice(0).filter((method) => method === 'tryAcquire').length;
    asked();
    for (let i = 0; i < 5; i++) await scan();
    assert.equal(asked(), 1);
    clock.advance(2999);
    await scan();
    assert.deepEqual([asked(), servers.isSilent('a')], [0, true]);
    clock.advance(1);
    await scan();
    assert.equal(asked(), 1);
    for (const changed of [() => servers.lockChanged('a'), () => servers.watchMissed()]) {
      changed();
      await scan();
      assert.equal(asked(), 1);
    }
    await die();
    await scan();
    assert.equal(servers.isSilent('a'), false);
  });

  test('are spared as long as a commit is under way that gives them tablets', async () => {
    const { servers, announce, scan } = await fixture();
    const die = await announce('a');
    await scan();
    const [first, second] = [servers.giving(['a', 'a']), servers.giving(['a'])];
    await die();
    assert.deepEqual([...(await servers.findDead(['a']))], []);
    assert.equal(await servers.isDead('a'), true);
    first();
    assert.deepEqual([...(await servers.findDead(['a']))], []);
    second();
    assert.deepEqual([...(await servers.findDead(['a']))], ['a']);
  });

  test('the dead are remembered for as long as their logs are there', async () => {
    const { env, servers, announce, scan } = await fixture();
    for (let i = 0; i < 20; i++) {
      const die = await announce(`s${i}`);
      await scan();
      await die();
      assert.deepEqual([...(await servers.findDead([`s${i}`]))], [`s${i}`]);
      await env.fileSystem.deleteLog(logPathOf(`s${i}`));
      servers.logDeleted(`s${i}`);
      // a scan that began before the deletion may yet bring an answer of the dead
      assert.equal(servers.deadCount, 1);
      await scan();
      assert.equal(servers.deadCount, 0);
    }
    assert.throws(() => servers.logDeleted('living'), /only the logs of dead servers/);
  });

  test('one whose log is there again when it was deleted is remembered until that is deleted, too', async () => {
    const { env, servers, announce, scan } = await fixture();
    const die = await announce('a');
    let isSwept = false;
    await announce('b', async () => {
      // a sweep that lists the logs while a scan is under way
      if (isSwept) assert.deepEqual([...(await servers.findDead(['a']))], ['a']);
    });
    await scan();
    await die();
    await servers.findDead(['a']);
    await env.fileSystem.deleteLog(logPathOf('a'));
    servers.logDeleted('a');
    isSwept = true;
    await scan();
    servers.logDeleted('a');
    isSwept = false;
    await scan();
    assert.equal(servers.deadCount, 0);
  });

  test('one whose answer is on its way is remembered, though its log was deleted', async () => {
    const { env, servers, announce, scan, context } = await fixture();
    let answer = (): void => {};
    const die = await announce('a', () => new Promise((resolve) => (answer = resolve)));
    const coming = servers.come('a', context());
    await env.clock.yield();
    await die();
    await servers.findDead(['a']);
    await env.fileSystem.deleteLog(logPathOf('a'));
    servers.logDeleted('a');
    await scan();
    answer();
    await coming;
    assert.deepEqual(servers.all(), []);
    await scan();
    assert.equal(servers.deadCount, 0);
  });

  test('a call that takes long is repeated as long as its server answers a status, and joins its own work', async () => {
    const { env, servers, announce, scan, clock, context } = await fixture();
    let status = async (): Promise<void> => {};
    await announce('a', () => status());
    const handler = (env.transport as LocalTransport).handlerOf('a');
    const done = new Promise<undefined[]>((resolve) => clock.timer(23_000, () => resolve([undefined])));
    let loads = 0;
    const inner = handler.call.bind(handler);
    handler.call = (method, message, callContext) => {
      if (method !== 'load') return inner(method, message, callContext);
      loads++;
      return done;
    };
    await scan();
    const load = () =>
      inSimulatedTime(
        clock,
        servers.caller.callUntilDone({ name: 'a', address: 'a' }, 'load', { tablets: [] }, context()),
      );
    assert.deepEqual(await load(), [undefined]);
    assert.equal(loads, 5);
    status = () => new Promise(() => {});
    handler.call = (method, message, callContext) =>
      method === 'load' ? new Promise(() => {}) : inner(method, message, callContext);
    const beganMs = clock.monotonicMs();
    await assert.rejects(load(), { code: Code.DEADLINE_EXCEEDED });
    assert.equal(clock.monotonicMs() - beganMs, 6000);
  });

  test('are called at the same time, and those that do not answer are left out after a second', async () => {
    const { servers, announce, scan, clock } = await fixture();
    for (const name of ['a', 'b', 'c', 'd']) await announce(name, name < 'd' ? () => new Promise(() => {}) : undefined);
    const beganMs = clock.monotonicMs();
    await inSimulatedTime(clock, scan());
    assert.equal(clock.monotonicMs() - beganMs, 1000);
    assert.deepEqual([servers.all().map(({ name }) => name), servers.anySilent], [['d'], true]);
  });

  for (const method of ['tryAcquire', 'remove', 'release'] as const) {
    test(`one whose lock is free is dead, though the answer to ${method} is lost`, async () => {
      const { env, servers, announce, scan, losing } = await fixture();
      const die = await announce('a');
      await scan();
      await die();
      // the file of a server outlasts its lock if its session ends in between
      await env.lockService.write('servers/a', encodePeerFile({ name: 'a', address: 'nowhere', protocol: PROTOCOL }));
      losing.add(method);
      await assert.rejects(scan(), { code: Code.UNAVAILABLE });
      await scan();
      assert.equal(await env.lockService.read('servers/a'), undefined);
      assert.equal(await servers.isDead('a'), true);
      assert.equal(servers.anySilent, false);
    });
  }

  test('a fence that a full store refuses is made by the next attempt, and no server is dead before it', async () => {
    const { env, servers, announce, scan } = await fixture();
    const store = new MemorySlotStore();
    const { clock, random } = env;
    Object.assign(env, { fileSystem: withSlotLogs(new MemoryFileSystem(), store, { clock, random }) });
    const die = await announce('a');
    await scan();
    await die();
    store.freeBytes = 0;
    for (let i = 0; i < 2; i++) {
      const asked = [servers.isDead('a'), servers.findDead(['a'])];
      for (const one of asked) await assert.rejects(one, { code: Code.RESOURCE_EXHAUSTED });
      assert.equal(servers.remembersDead('a'), false);
    }
    store.freeBytes = Number.POSITIVE_INFINITY;
    assert.deepEqual([...(await servers.findDead(['a']))], ['a']);
    for (const row of ['a', 'b']) {
      const { slots } = await store.listSlots(`${logPathOf('a')}/${row}`, 0);
      assert.deepEqual(slots, [0, 1], 'the head and the fence');
    }
  });

  test('the dead get no tablets, and the log of a server that a commit under way names is kept', async () => {
    const { servers, announce, scan } = await fixture();
    const die = await announce('a');
    await scan();
    const known = servers.giving(['a']);
    await die();
    assert.equal(await servers.isDead('a'), true);
    assert.throws(() => servers.giving(['a']), /a dead server is given no tablet/);
    assert.throws(() => servers.logDeleted('a'), /a commit under way gives tablets/);
    known();
    assert.throws(known, /the end of a commit is reported once/);
    servers.logDeleted('a');
  });
});
