import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { losingAnswers } from '../../test/contracts/lost-answers.ts';
import { quickClock } from '../../test/simulated-time.ts';
import { Code, unavailable } from '../base/index.ts';
import {
  ByteBudget,
  type LockService,
  ManualClock,
  MemoryLockService,
  requestContext,
  SeededRandom,
} from '../env/index.ts';
import { OPERATION_FILES } from '../protocol/index.ts';
import { OperationFiles } from './operation-files.ts';

const context = requestContext({ budget: new ByteBudget(1000) });
const DAY_MS = 86_400_000;
const contents = (text: string): Uint8Array => Buffer.from(text);

/** Doors over one lock service. */
function doors(count: number) {
  const lockService = new MemoryLockService();
  const clock = new ManualClock();
  const make = (seed: number) => new OperationFiles({ lockService, clock, random: new SeededRandom(seed) });
  return { lockService, clock, doors: Array.from({ length: count }, (_, i) => make(i + 1)) };
}

describe('operations', () => {
  test('that one door has kept are found, listed and forgotten through another', async () => {
    const [a, b] = doors(2).doors as [OperationFiles, OperationFiles];
    const names = [];
    for (const resource of ['x/y', 'x/z']) names.push(await a.keep(context, resource, contents(resource)));
    const [y, z] = names as [string, string];
    assert.match(y, /^operations\/x\/y\/operations\/[0-9a-f]{34}$/);
    assert.deepEqual(Buffer.from((await b.find(context, y))!.contents).toString(), 'x/y');
    assert.deepEqual(
      (await b.list(context, 'operations/x/')).map(({ name }) => name),
      [y, z].sort(),
    );
    assert.deepEqual(
      (await b.list(context, 'operations/x/z/')).map(({ name }) => name),
      [z],
    );
    assert.equal(await b.forget(context, y), true);
    for (const door of [a, b]) {
      assert.equal(await door.find(context, y), undefined);
      assert.equal(await door.forget(context, y), false);
      assert.equal((await door.list(context, '')).length, 1);
    }
  });

  test('are forgotten once, though two doors forget one at the same time, and one sends its call again', async () => {
    const { lockService, doors: made } = doors(1);
    const [a] = made as [OperationFiles];
    const name = await a.keep(context, 'r', contents('1'));
    let others = Promise.resolve(false);
    let isFirst = true;
    const unreached = new Proxy(lockService, {
      get: (target, method: keyof LockService) => {
        const value = target[method] as unknown;
        if (typeof value !== 'function') return value;
        if (method !== 'write' || !isFirst) return value.bind(target) as unknown;
        return async () => {
          isFirst = false;
          others = a.forget(context, name);
          await others;
          throw unavailable('the call did not arrive');
        };
      },
    });
    const b = new OperationFiles({ lockService: unreached, clock: quickClock(), random: new SeededRandom(2) });
    assert.deepEqual([await b.forget(context, name), await others], [false, true]);
    assert.equal(await a.find(context, name), undefined);
  });

  test('of names that were never given are not found', async () => {
    const [a] = doors(1).doors as [OperationFiles];
    const name = await a.keep(context, 'r', contents('1'));
    const id = name.slice(-34);
    for (const other of [
      '',
      'x',
      `operations/q/operations/${id}`,
      `${name}0`,
      name.slice(0, -1),
      name.replace('operations/r', '/../r'),
    ])
      assert.equal(await a.find(context, other), undefined, other);
    assert.equal(await a.find(context, `operations/r/operations/zz${id.slice(2)}`), undefined);
    const last = name.endsWith('0') ? '1' : '0';
    assert.equal(await a.find(context, name.slice(0, -1) + last), undefined);
  });

  test('are limited in number: the oldest goes, and no file is deleted', async () => {
    const { lockService, clock, doors: made } = doors(2);
    const names: string[] = [];
    for (let i = 0; i < OPERATION_FILES + 20; i++) {
      clock.advance(1);
      names.push(await made[i % 2]!.keep(context, 'r', contents(String(i))));
    }
    const left = (await made[0]!.list(context, '')).map(({ name }) => name);
    assert.deepEqual(left, names.slice(20).sort());
    assert.equal((await lockService.list('operations/')).length, OPERATION_FILES);
  });

  test('are kept for a day, and their places then come first', async () => {
    const { lockService, clock, doors: made } = doors(1);
    const [a] = made as [OperationFiles];
    const name = await a.keep(context, 'r', contents('1'));
    clock.advance(DAY_MS - 1);
    assert.ok(await a.find(context, name));
    clock.advance(2);
    assert.equal(await a.find(context, name), undefined);
    assert.deepEqual(await a.list(context, ''), []);
    assert.equal(await a.forget(context, name), false);
    for (let i = 0; i < OPERATION_FILES; i++) await a.keep(context, 'r', contents('2'));
    assert.equal((await a.list(context, '')).length, OPERATION_FILES);
    assert.equal((await lockService.list('operations/')).length, OPERATION_FILES);
  });

  test('kept by many doors concurrently, with answers lost, are each kept once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer(), async (count, seed) => {
        const memory = new MemoryLockService();
        const clock = quickClock();
        const chance = new SeededRandom(seed);
        const lost = losingAnswers(memory, (_call, method) => method === 'write' && chance.float() < 0.3);
        const stores = [memory, lost.service, memory].map(
          (lockService, i) => new OperationFiles({ lockService, clock, random: new SeededRandom(seed + i) }),
        );
        const names = await Promise.all(
          Array.from({ length: count }, (_, i) => stores[i % 3]!.keep(context, 'r', contents(String(i)))),
        );
        assert.equal(new Set(names).size, count);
        assert.deepEqual(
          (await stores[0]!.list(context, '')).map(({ name }) => name),
          [...names].sort(),
        );
      }),
      { numRuns: 30 },
    );
  });

  test('a file that this program cannot read counts as free', async () => {
    const { lockService, doors: made } = doors(1);
    for (let i = 0; i < OPERATION_FILES; i++)
      await lockService.write(`operations/${i.toString(16).padStart(2, '0')}`, contents('\xff of a later version'));
    const [a] = made as [OperationFiles];
    assert.deepEqual(await a.list(context, ''), []);
    assert.ok(await a.find(context, await a.keep(context, 'r', contents('1'))));
  });

  test('wait no longer than their call', async () => {
    const { clock, lockService } = doors(1);
    const slow = new Proxy(lockService, {
      get: (target, name: keyof MemoryLockService) =>
        name === 'read' || name === 'list' ? () => new Promise(() => {}) : target[name],
    });
    const a = new OperationFiles({ lockService: slow, clock, random: new SeededRandom(1) });
    const until = requestContext({ budget: new ByteBudget(1000), deadlineMs: clock.monotonicMs() + 50 });
    const name = `operations/r/operations/${'0'.repeat(34)}`;
    const calls = [a.keep(until, 'r', contents('1')), a.find(until, name), a.list(until, ''), a.forget(until, name)];
    const outcomes = Promise.allSettled(calls);
    clock.advance(50);
    for (const outcome of await outcomes)
      assert.equal(outcome.status === 'rejected' && outcome.reason.code, Code.DEADLINE_EXCEEDED);
  });
});
