import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { rejectsWith } from '../../test/tables.ts';
import { Code, unavailable } from '../base/index.ts';
import {
  ByteBudget,
  deadlineExceeded,
  LocalTransport,
  type LockService,
  ManualClock,
  MemoryLockService,
  callRefused,
  type RequestContext,
  requestContext,
  SeededRandom,
  within,
} from '../env/index.ts';
import { encodePeerFile, MASTER_PATH, PROTOCOL } from '../protocol/index.ts';
import { MasterCaller } from './master-caller.ts';
import { RetryPolicy } from './router.ts';

/** Masters a and b, of which the lock service's file names one, and a caller. */
class World {
  readonly clock = new ManualClock();
  readonly lockService = new MemoryLockService();
  readonly transport = new LocalTransport(this.clock);
  readonly budget = new ByteBudget(1000);
  /** Addresses of the calls that came. */
  readonly calls: string[] = [];
  reads = 0;
  readonly caller: MasterCaller;

  constructor() {
    const { clock, transport, budget: requestBudget } = this;
    const random = new SeededRandom(1);
    this.caller = new MasterCaller({
      env: { clock, transport, requestBudget, lockService: this.#countingReads() },
      router: { retryPolicy: (context) => new RetryPolicy({ clock, random }, context, () => false) },
    });
  }

  #countingReads(): LockService {
    const { lockService } = this;
    return new Proxy(lockService, {
      get: (target, name: keyof LockService) => {
        if (name === 'read') this.reads++;
        return (target[name] as (...args: unknown[]) => unknown).bind(target);
      },
    });
  }

  async serve(address: string, answer: (context: RequestContext) => Promise<unknown>): Promise<void> {
    await this.transport.serve(address, {
      call: (_method, _message, context) => {
        this.calls.push(address);
        return answer(context);
      },
      stream: () => assert.fail(),
    });
  }

  async become(name: string, address = name): Promise<void> {
    await this.lockService.write(MASTER_PATH, encodePeerFile({ name, address, protocol: PROTOCOL }));
  }

  context(timeoutMs = Number.POSITIVE_INFINITY): RequestContext {
    return requestContext({ budget: this.budget, deadlineMs: this.clock.monotonicMs() + timeoutMs });
  }

  sweep(timeoutMs?: number): Promise<unknown> {
    return this.caller.call('sweep', {}, this.context(timeoutMs));
  }
}

const inWorld = (work: (world: World) => Promise<void>) => async () => {
  const world = new World();
  await inSimulatedTime(world.clock, work(world));
  assert.equal(world.clock.nextTimerMs(), Number.POSITIVE_INFINITY, 'no timer is left');
};

const never = (): Promise<unknown> => new Promise(() => {});

describe('a call to the master', () => {
  test(
    'ends when another master takes its place, and the next call goes to that one',
    inWorld(async (world) => {
      const { clock } = world;
      await world.serve('a', never);
      await world.serve('b', async () => 'done');
      await world.become('a');
      const call = world.sweep();
      clock.timer(7000, () => void world.become('b'));
      const beganMs = clock.monotonicMs();
      await rejectsWith(Code.UNAVAILABLE, call, /at a was replaced by that at b.*may have been carried out/);
      assert.ok(clock.monotonicMs() - beganMs < 10_500, `${clock.monotonicMs() - beganMs} ms`);
      assert.equal(await world.sweep(), 'done');
      assert.deepEqual(world.calls, ['a', 'b'], 'no call is sent twice');
    }),
  );

  test(
    'ends when a later incarnation has the address',
    inWorld(async (world) => {
      await world.serve('a', never);
      await world.become('first', 'a');
      const call = world.sweep();
      await new Promise((resolve) => setImmediate(resolve));
      await world.become('second', 'a');
      await rejectsWith(Code.UNAVAILABLE, call, /was replaced/);
    }),
  );

  test(
    'waits for a master that works long, also while its file is away',
    inWorld(async (world) => {
      const { clock } = world;
      await world.serve('a', () => new Promise((resolve) => clock.timer(60_000, () => resolve('done'))));
      await world.become('a');
      clock.timer(20_000, () => void world.lockService.remove(MASTER_PATH));
      assert.equal(await world.sweep(), 'done');
    }),
  );

  test(
    'ends by its deadline',
    inWorld(async (world) => {
      await world.serve('a', never);
      await world.become('a');
      await rejectsWith(Code.DEADLINE_EXCEEDED, world.sweep(12_000));
    }),
  );

  for (const error of [unavailable('lost'), deadlineExceeded()])
    test(
      `that fails with ${error.codeName} has the address read again for the next one`,
      inWorld(async (world) => {
        await world.serve('a', () => Promise.reject(error));
        await world.serve('b', async () => 'done');
        await world.become('a');
        await rejectsWith(error.code, world.sweep());
        await world.become('b');
        assert.equal(await world.sweep(), 'done');
        assert.deepEqual(world.calls, ['a', 'b']);
      }),
    );

  test(
    'that is cancelled, as a paused master does not answer, has the address read again for the next one',
    inWorld(async (world) => {
      const { clock } = world;
      await world.serve('a', never);
      await world.serve('b', async () => 'done');
      await world.become('a');
      const cancelled = new AbortController();
      const call = world.caller.call('sweep', {}, { ...world.context(), signal: cancelled.signal });
      clock.timer(1000, () => cancelled.abort());
      await rejectsWith(Code.CANCELLED, call);
      await world.become('b');
      assert.equal(await world.sweep(), 'done');
      assert.deepEqual(world.calls, ['a', 'b']);
    }),
  );

  test(
    'that fails otherwise does not',
    inWorld(async (world) => {
      await world.serve('a', () => Promise.reject(new Error('broken')));
      await world.become('a');
      for (let i = 0; i < 3; i++) await rejectsWith(Code.INTERNAL, world.sweep());
      assert.equal(world.reads, 1);
    }),
  );

  test(
    'that surely went nowhere is sent again',
    inWorld(async (world) => {
      const { clock } = world;
      clock.timer(3000, () => void world.become('a'));
      let refusals = 3;
      await world.serve('a', async (context) => {
        if (refusals-- > 0) throw callRefused('not yet');
        return within(Promise.resolve('done'), context, clock);
      });
      assert.equal(await world.sweep(60_000), 'done');
      assert.equal(world.calls.length, 4);
    }),
  );
});
