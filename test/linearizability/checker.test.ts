/** The checker against histories whose verdict is known, and against a search without any of its shortcuts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SeededRandom } from '../../src/env/index.ts';
import { Checker, type Operation } from './checker.ts';
import { EventClock, History, type Recorded, type Step } from './history.ts';
import { randomHistory, RegisterOperation, type RegisterWork } from './random-history.ts';

/** An operation from one event to another; without an answer its outcome is unknown. */
function operation(work: RegisterWork, beganAt: number, endedAt: number, answer?: string): Operation {
  const made = new RegisterOperation(work, beganAt);
  made.endedAt = endedAt;
  made.isAnswered = answer !== undefined;
  made.answer = answer ?? '';
  return made;
}

const write = (value: string, from: number, to: number): Operation => operation({ kind: 'write', value }, from, to, '');
const read = (value: string, from: number, to: number): Operation => operation({ kind: 'read' }, from, to, value);
const append = (value: string, from: number, to: number, answer: string): Operation =>
  operation({ kind: 'append', value }, from, to, answer);
const lostWrite = (value: string, from: number, to = Number.POSITIVE_INFINITY): Operation =>
  operation({ kind: 'write', value }, from, to);
const lostAppend = (value: string, from: number, to = Number.POSITIVE_INFINITY): Operation =>
  operation({ kind: 'append', value }, from, to);

const isLinearizable = (...operations: Operation[]): boolean => new Checker('').take(operations) === undefined;

describe('a history is linearizable', () => {
  const good: Record<string, Operation[]> = {
    'without operations': [],
    'one operation after the other': [write('a', 1, 2), read('a', 3, 4), append('b', 5, 6, 'ab'), read('ab', 7, 8)],
    'a read during a write sees the old value, then the new': [
      write('a', 1, 2),
      write('b', 3, 8),
      read('a', 4, 5),
      read('b', 6, 7),
    ],
    'concurrent writes in either order': [write('a', 1, 10), write('b', 2, 9), read('b', 11, 12)],
    'concurrent appends in the order that their answers tell': [append('a', 1, 10, 'ba'), append('b', 2, 9, 'b')],
    'a lost write that is never seen': [write('a', 1, 2), lostWrite('b', 3), read('a', 4, 5), read('a', 6, 7)],
    'a lost write that lands late, after others': [
      lostWrite('b', 1),
      write('a', 2, 3),
      read('a', 4, 5),
      read('b', 6, 7),
    ],
    'two lost appends that land in either order': [lostAppend('a', 1), lostAppend('b', 2), read('ba', 3, 4)],
    'a lost write that lands before the crash': [lostWrite('a', 1, 5), read('', 2, 3), read('a', 6, 7)],
    'a lost write that a crash ends': [lostWrite('a', 1, 5), read('', 6, 7), read('', 8, 9)],
    'a read that a crash ends': [operation({ kind: 'read' }, 1, 5), read('', 6, 7)],
    'a call after the crash that ended it': [lostWrite('a', 6, 5), read('', 7, 8)],
  };
  for (const [title, operations] of Object.entries(good))
    test(title, () => assert.equal(isLinearizable(...operations), true));
});

describe('a history is not linearizable', () => {
  const bad: Record<string, Operation[]> = {
    'a stale read': [write('a', 1, 2), write('b', 3, 4), read('a', 5, 6)],
    'a lost update': [append('a', 1, 4, 'a'), append('b', 2, 3, 'b')],
    'a value that no operation wrote': [read('x', 1, 2)],
    'two reads that see concurrent writes in different orders': [
      write('a', 1, 20),
      write('b', 2, 19),
      read('a', 3, 4),
      read('b', 5, 6),
      read('a', 7, 8),
    ],
    'a lost write that lands twice': [lostWrite('a', 1), read('a', 2, 3), write('b', 4, 5), read('a', 6, 7)],
    'a lost append that lands twice': [lostAppend('a', 1), read('a', 2, 3), read('aa', 4, 5)],
    'a lost write that is seen, and then is not': [lostWrite('a', 1), read('a', 2, 3), read('', 4, 5)],
    'a lost write that lands after the crash': [lostWrite('a', 1, 3), read('', 4, 5), read('a', 6, 7)],
    'an acknowledged write that a crash loses': [write('a', 1, 2), lostWrite('b', 3, 4), read('', 5, 6)],
    'a call after the crash takes effect': [lostWrite('a', 6, 5), read('a', 7, 8)],
  };
  for (const [title, operations] of Object.entries(bad))
    test(title, () => assert.equal(isLinearizable(...operations), false));
});

test('a violation names the operation, the states before it, and what was under way', () => {
  const stale = read('a', 5, 7);
  const concurrent = write('c', 6, 8);
  const violation = new Checker('').take([write('a', 1, 2), write('b', 3, 4), stale, concurrent]);
  assert.deepEqual(violation, { operation: stale, states: ['b'], concurrent: [concurrent] });
});

test('forty operations of unknown outcome are no burden while they are not seen', () => {
  const lost = Array.from({ length: 40 }, (_, i) => lostWrite(`${i}`, 1 + i));
  const checker = new Checker('');
  assert.equal(checker.take([...lost, read('', 50, 51), read('7', 52, 53), write('x', 54, 55)]), undefined);
  assert.equal(checker.take([read('11', 56, 57), read('11', 58, 59)]), undefined);
  assert.ok(checker.maxConfigurations <= 100, `${checker.maxConfigurations} configurations`);
  assert.ok(checker.take([read('7', 60, 61)]), 'each lands once');
});

test('many appends of unknown outcome are tried few at a time, and in the end all of them', () => {
  const lost = Array.from({ length: 12 }, (_, i) => lostAppend(`${i};`, 1 + i));
  const checker = new Checker('');
  assert.equal(
    checker.take([...lost, write('', 20, 21), append('x;', 22, 23, '7;x;'), read('7;x;', 24, 25)]),
    undefined,
  );
  assert.ok(checker.maxConfigurations <= 500, `${checker.maxConfigurations} configurations`);
  assert.equal(checker.take([read('7;x;3;1;0;', 26, 27)]), undefined, 'three more, in a later piece');
  assert.equal(checker.take([read('7;x;3;1;0;', 28, 29)]), undefined);
});

test('an order that was left out at first is found later', () => {
  // the write hides whether the appends before it took effect, the comparison tells that all three did
  const lost = ['a', 'b', 'c'].map((value, i) => lostAppend(value, 1 + i));
  const compared = operation({ kind: 'compareAndSet', expected: 'abc', value: 'd' }, 4, 8, 'true');
  const checker = new Checker('');
  assert.equal(checker.take([...lost, compared]), undefined);
  assert.equal(checker.take([read('d', 9, 10)]), undefined);
  assert.ok(checker.take([read('da', 11, 12)]), 'each lands once');
});

const seeds = fc.integer({ min: 0, max: 2 ** 31 });

describe('random histories', () => {
  test('that are linearizable by construction are found so, whole and in pieces', () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 1, max: 8 }), (seed, clients) => {
        const operations = randomHistory({ random: new SeededRandom(seed), clients, events: 200, hasLie: false });
        assert.equal(isLinearizable(...operations), true);
        const checker = new Checker('');
        for (const piece of pieces(operations)) assert.equal(checker.take(piece), undefined);
      }),
      { numRuns: 300 },
    );
  });

  test('get the verdict of a search that tries every order', () => {
    const verdicts = { true: 0, false: 0 };
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = new SeededRandom(seed);
        const operations = randomHistory({ random, clients: 3, events: 24, hasLie: random.float() < 0.8 });
        const expected = hasOrder(operations);
        verdicts[`${expected}`]++;
        assert.equal(isLinearizable(...operations), expected, operations.join('\n'));
        const checker = new Checker('');
        const found = pieces(operations).map((piece) => checker.take(piece));
        assert.equal(found.at(-1) === undefined, expected, 'in pieces');
      }),
      { numRuns: 3000 },
    );
    assert.ok(verdicts.true > 200 && verdicts.false > 200, JSON.stringify(verdicts));
  });
});

/** The history cut where no operation is under way, except those without an answer. */
function pieces(operations: readonly Operation[]): Operation[][] {
  const found: Operation[][] = [[]];
  let quietFrom = 0;
  for (const each of operations) {
    if (each.beganAt > quietFrom) found.push([]);
    found.at(-1)!.push(each);
    if (each.endedAt !== Number.POSITIVE_INFINITY) quietFrom = Math.max(quietFrom, each.endedAt);
  }
  return found;
}

/** True if some order of the operations explains the history: the definition, tried by brute force. */
function hasOrder(operations: readonly Operation[]): boolean {
  const isDone = operations.map(() => false);
  const visited = new Set<string>();
  const search = (state: string, time: number): boolean => {
    // an operation takes effect at or after `time`, the latest beginning of those before it
    if (operations.every(({ isAnswered }, i) => isDone[i] || !isAnswered)) return true;
    const key = `${isDone.map(Number).join('')} ${time} ${state}`;
    if (visited.has(key)) return false;
    visited.add(key);
    return operations.some((each, i) => {
      const at = Math.max(time, each.beganAt);
      if (isDone[i] || at > each.endedAt) return false;
      const effect = each.apply(state);
      if (each.isAnswered && effect.answer !== each.answer) return false;
      isDone[i] = true;
      const found = search(effect.state, at);
      isDone[i] = false;
      return found;
    });
  };
  return search('', 0);
}

describe('a recorded history', () => {
  const step = (work: RegisterWork): Step => new RegisterOperation(work, 0);
  const refusal = new Error('refused');

  async function recorded(...outcomes: [RegisterWork, unknown][]): Promise<History> {
    const history = new History('');
    for (const [work, outcome] of outcomes) {
      const made = outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      await history.record(
        step(work),
        () => made,
        (error) => error === refusal,
      );
    }
    return history;
  }

  test('an operation that failed for certain has no effect, one of unknown outcome may have', async () => {
    const lost = new Error('lost');
    const a: RegisterWork = { kind: 'write', value: 'a' };
    for (const [outcome, seen, expected] of [
      [refusal, '', true],
      [refusal, 'a', false],
      [lost, '', true],
      [lost, 'a', true],
      ['', '', false],
      ['', 'a', true],
    ] as const) {
      const history = await recorded([a, outcome], [{ kind: 'read' }, seen]);
      assert.equal(history.check() === undefined, expected, `${outcome}, then ${seen}`);
    }
  });

  test('a crash ends what has no answer, also what an earlier check took', () => {
    const history = new History('', new EventClock());
    const lost = history.begin(step({ kind: 'append', value: 'a' }));
    const underWay = history.begin(step({ kind: 'append', value: 'b' }));
    lost.unknown();
    assert.equal(history.check(), undefined);
    history.crash();
    underWay.answered('b');
    assert.equal(underWay.outcome, 'unknown', 'its first outcome counts');
    const seen = (value: string): Recorded => {
      const made = history.begin(step({ kind: 'read' }));
      made.answered(value);
      return made;
    };
    seen('b');
    assert.equal(history.check(), undefined);
    const late = seen('ba');
    const violation = history.check();
    assert.equal(violation?.violation.operation, late);
    assert.match(`${violation}`, /not linearizable.*\n.*"read".*"ba"\nPossible states before it: "b"/);
  });
});
