import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { ByteBudget, CallContext, ManualClock, Owner, type Reservation } from '../../env/index.ts';
import { holdArriving } from './single-request.ts';
import { type SlowCall, SlowCalls } from './slow-calls.ts';

const LIMIT = 16_000;
const COMMON = (LIMIT * 11) / 16;

class Call implements SlowCall {
  readonly reservation: Reservation;
  listIndex = -1;
  endedWith: Code | undefined;
  slowFromMs: number;

  constructor(budget: ByteBudget, slowFromMs: number, owner?: Owner) {
    this.reservation = budget.reservation(owner);
    this.slowFromMs = slowFromMs;
  }

  isTooSlow(nowMs: number): boolean {
    return nowMs >= this.slowFromMs;
  }

  endEarly({ code }: { readonly code: Code }): void {
    this.endedWith = code;
    this.reservation.release();
  }
}

function fixture() {
  const clock = new ManualClock();
  const requestBudget = new ByteBudget(LIMIT);
  return { clock, budget: requestBudget, slow: new SlowCalls({ clock, requestBudget }) };
}

describe('slow calls', () => {
  test('while a call waits, those that hold most are ended first, and no more than needed', async () => {
    const { clock, budget, slow } = fixture();
    const calls = [2000, 5000, 4000].map((bytes) => {
      const call = new Call(budget, 1000);
      assert.ok(call.reservation.tryGrow(bytes));
      slow.add(call);
      return call;
    });
    clock.advance(5000);
    assert.deepEqual(
      calls.map(({ endedWith }) => endedWith),
      [undefined, undefined, undefined],
      'no call waits',
    );
    await budget.reservation().grow(4000);
    assert.deepEqual(
      calls.map(({ endedWith }) => endedWith),
      [undefined, Code.UNAVAILABLE, undefined],
    );
    slow.close();
  });

  test('those that become too slow while a call waits are ended then', async () => {
    const { clock, budget, slow } = fixture();
    const call = new Call(budget, 3000);
    call.reservation.tryGrow(COMMON);
    slow.add(call);
    let isDone = false;
    const waiting = budget
      .reservation()
      .grow(4000)
      .then(() => (isDone = true));
    clock.advance(2900);
    await Promise.resolve();
    assert.deepEqual([call.endedWith, isDone], [undefined, false]);
    clock.advance(500);
    await waiting;
    assert.equal(call.endedWith, Code.UNAVAILABLE);
    slow.close();
  });

  test('a request that is found too slow when more of it comes ends no others', () => {
    const { clock, budget, slow } = fixture();
    const context = new CallContext({ budget, owner: new Owner() });
    const call: SlowCall = {
      reservation: context.reservation,
      listIndex: -1,
      isTooSlow: () => true,
      endEarly: (error) => {
        context.interrupt(error);
        context.reservation.release();
        slow.remove(call);
      },
    };
    const others = [1, 2].map(() => new Call(budget, Number.POSITIVE_INFINITY, new Owner()));
    assert.ok(context.reservation.tryArrive(300));
    for (const { reservation } of others) assert.ok(reservation.tryArrive(700));
    for (const one of [call, ...others]) slow.add(one);
    budget.reservation().force(LIMIT);
    clock.advance(5000);
    assert.throws(() => holdArriving({ context, makeSpace: () => slow.makeSpace(context.reservation.owner) }, 500), {
      code: Code.UNAVAILABLE,
    });
    assert.deepEqual(
      others.map(({ endedWith }) => endedWith),
      [undefined, undefined],
    );
    slow.close();
  });

  test('the caller that holds most arriving bytes gives way, and never to itself', () => {
    const { budget, slow } = fixture();
    const principals = [new Owner(), new Owner()];
    const owners = [new Owner(principals[0]), new Owner(principals[0]), new Owner(principals[1])];
    const [greedy, modest, other] = owners.map((owner, i) => {
      const call = new Call(budget, Number.POSITIVE_INFINITY, owner);
      assert.ok(call.reservation.tryArrive([800, 300, 900][i] as number));
      slow.add(call);
      return call;
    }) as [Call, Call, Call];
    assert.equal(slow.makeSpace(owners[0]), false);
    assert.equal(slow.makeSpace(owners[2]), true);
    assert.deepEqual([greedy.endedWith, modest.endedWith, other.endedWith], [Code.UNAVAILABLE, undefined, undefined]);
    slow.remove(greedy);
    assert.equal(slow.makeSpace(owners[1]), true);
    assert.equal(other.endedWith, Code.UNAVAILABLE);
    for (const call of [modest, other]) slow.remove(call);
    assert.deepEqual([slow.makeSpace(owners[2]), modest.listIndex, other.listIndex], [false, -1, -1]);
    slow.close();
  });
});
