import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { chooseMoves, type Move, type ServerLoad, type TabletLoad } from './balance.ts';

const MIB = 1024 * 1024;

function tablet(key: string, sizeMib: number, requestRate = 0): TabletLoad {
  return { key, epoch: 1, sizeBytes: sizeMib * MIB, requestRate };
}

function server(name: string, ...sizes: readonly number[]): ServerLoad {
  return { name, tablets: sizes.map((size, i) => tablet(`${name}${i}`, size)) };
}

function busy(name: string, ...rates: readonly number[]): ServerLoad {
  return { name, tablets: rates.map((rate, i) => tablet(`${name}${i}`, 1, rate)) };
}

/** The servers after the moves; each is checked to be possible. */
function after(servers: readonly ServerLoad[], moves: readonly Move[]): ServerLoad[] {
  const tablets = new Map(servers.map((one) => [one.name, new Map(one.tablets.map((each) => [each.key, each]))]));
  for (const { tablet: moved, from, to } of moves) {
    assert.ok(tablets.get(from)?.delete(moved.key), `${from} has ${moved.key}`);
    tablets.get(to)?.set(moved.key, moved);
  }
  return [...tablets].map(([name, own]) => ({ name, tablets: [...own.values()] }));
}

const numbers = (servers: readonly ServerLoad[]): number[] => servers.map(({ tablets }) => tablets.length);
const unevenness = (servers: readonly ServerLoad[]): number =>
  Math.max(...numbers(servers)) - Math.min(...numbers(servers));
const rateOf = ({ tablets }: ServerLoad): number => tablets.reduce((sum, { requestRate }) => sum + requestRate, 0);
const sizeOf = ({ tablets }: ServerLoad): number => tablets.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
const average = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The number of moves that even numbers take. */
function leastForNumbers(servers: readonly ServerLoad[]): number {
  const total = numbers(servers).reduce((sum, number) => sum + number, 0);
  const least = Math.floor(total / servers.length);
  const roundedUp = total - least * servers.length;
  return [...numbers(servers)]
    .sort((a, b) => b - a)
    .reduce((sum, number, i) => sum + Math.max(0, number - least - (i < roundedUp ? 1 : 0)), 0);
}

/**
 * No fewer moves than these bring every server to its number, and below its limits: each takes away one tablet of one
 * server.
 */
function leastForAll(servers: readonly ServerLoad[]): number {
  const total = numbers(servers).reduce((sum, number) => sum + number, 0);
  const isUneven = unevenness(servers) > Math.max(1, Math.floor((0.1 * total) / servers.length));
  const limits = {
    rate: 1.25 * average(servers.map(rateOf)) + 100,
    size: 1.25 * average(servers.map(sizeOf)) + 64 * MIB,
  };
  const needed = (one: ServerLoad, limit: number, of: (each: TabletLoad) => number): number => {
    let load = one.tablets.reduce((sum, each) => sum + of(each), 0);
    const largestFirst = one.tablets.map(of).sort((a, b) => b - a);
    let count = 0;
    while (load > limit && count < largestFirst.length) load -= largestFirst[count++]!;
    return count;
  };
  return servers.reduce((sum, one) => {
    const byNumber = isUneven ? Math.max(0, one.tablets.length - Math.ceil(total / servers.length)) : 0;
    return (
      sum +
      Math.max(
        byNumber,
        needed(one, limits.rate, ({ requestRate }) => requestRate),
        needed(one, limits.size, ({ sizeBytes }) => sizeBytes),
      )
    );
  }, 0);
}

/** Balances until there is nothing to do; returns all moves. */
function balanced(servers: readonly ServerLoad[]): { readonly servers: ServerLoad[]; readonly moves: Move[] } {
  let now = [...servers];
  const all: Move[] = [];
  for (let round = 0; ; round++) {
    const moves = chooseMoves(now);
    if (moves.length === 0) return { servers: now, moves: all };
    assert.ok(round < 2, 'the moves of the first round are enough');
    now = after(now, moves);
    all.push(...moves);
  }
}

describe('balance', () => {
  test('one server, no server and equal servers have no moves', () => {
    assert.deepEqual(chooseMoves([]), []);
    assert.deepEqual(chooseMoves([server('a', 1, 2, 3)]), []);
    assert.deepEqual(chooseMoves([server('a', 1, 2), server('b', 1, 2)]), []);
    assert.deepEqual(chooseMoves([server('a', 1, 2), server('b', 1)]), [], 'a difference of one is even');
  });

  test('a new server gets its share, in no more moves than that takes', () => {
    const servers = [server('old', 1, 1, 1, 1, 1, 1), server('new')];
    const moves = chooseMoves(servers);
    assert.equal(moves.length, 3);
    assert.deepEqual(numbers(after(servers, moves)), [3, 3]);
  });

  test('a difference of a tenth of the average is even', () => {
    const many = (name: string, count: number): ServerLoad => server(name, ...new Array<number>(count).fill(1));
    assert.deepEqual(chooseMoves([many('a', 105), many('b', 95)]), []);
    assert.equal(chooseMoves([many('a', 106), many('b', 94)]).length, 6);
  });

  test('the tablet goes that leaves the bytes most even', () => {
    const [move] = chooseMoves([server('a', 1, 500, 1000), server('b', 400)]);
    assert.equal(move?.tablet.sizeBytes, 500 * MIB);
  });

  test('of two servers with about as many tablets, one with many more bytes gives one away, one with few more does not', () => {
    const [move] = chooseMoves([server('a', 300, 100), server('b', 10)]);
    assert.deepEqual([move?.from, move?.to], ['a', 'b']);
    assert.deepEqual(chooseMoves([server('a', 30, 30), server('b', 10)]), []);
  });

  test('a server with many more requests gives a tablet away, and keeps one that takes most of them alone', () => {
    const servers = [busy('a', 500, 500, 500, 1), busy('b', 1, 1, 1)];
    const { servers: then, moves } = balanced(servers);
    assert.equal(moves.length, 1);
    assert.equal(moves[0]?.tablet.requestRate, 500);
    assert.ok(rateOf(then[0]!) < rateOf(servers[0]!));
    assert.deepEqual(chooseMoves([busy('a', 2000, 1), busy('b', 1)]), []);
  });

  test('a tablet that is larger than the difference stays: the other server would only become the full one', () => {
    assert.deepEqual(chooseMoves([server('a', 1000, 1), server('b', 100)]), []);
  });

  test('a tablet that is fixed counts and stays', () => {
    const { name, tablets } = server('old', 1, 1, 1, 1);
    const fixed = tablets.map((one, i) => ({ ...one, isFixed: i > 0 }));
    const moves = chooseMoves([{ name, tablets: fixed }, server('new')]);
    assert.deepEqual(
      moves.map(({ tablet: { key } }) => key),
      ['old0'],
    );
  });

  test('half as many servers again are filled by the least number of moves', () => {
    const old = Array.from({ length: 20 }, (_, i) => server(`old${i}-`, ...new Array<number>(300).fill(200)));
    const servers = [...old, ...Array.from({ length: 10 }, (_, i) => server(`new${i}-`))];
    const { servers: then, moves } = balanced(servers);
    assert.equal(moves.length, leastForNumbers(servers));
    assert.equal(moves.length, 10 * 200);
    assert.equal(unevenness(then), 0);
  });

  test('from any loads, balancing ends in even numbers, and no tablet moves twice', () => {
    const load = fc.record({ size: fc.integer({ min: 0, max: 1000 }), rate: fc.integer({ min: 0, max: 2000 }) });
    const loads = fc.array(fc.array(load, { maxLength: 40 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(loads, (all) => {
        const servers = all.map((own, i) => ({
          name: `s${i}`,
          tablets: own.map(({ size, rate }, j) => tablet(`${i}-${j}`, size, rate)),
        }));
        const { servers: then, moves } = balanced(servers);
        assert.equal(new Set(moves.map(({ tablet: { key } }) => key)).size, moves.length);
        assert.ok(unevenness(then) <= Math.max(1, Math.floor(0.1 * average(numbers(then)))));
      }),
      { numRuns: 500 },
    );
  });

  test('from any loads of many tablets, it takes at most a tenth more than the least number of moves', () => {
    const kinds = fc.constantFrom('even', 'skewed');
    const sides = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(sides, kinds, fc.infiniteStream(fc.integer({ min: 1, max: 100 })), (counts, kind, draw) => {
        const next = (): number => draw.next().value as number;
        const servers = counts.map((count, i) => ({
          name: `s${i}`,
          tablets: Array.from({ length: count }, (_, j) =>
            // of a skewed one a few tablets have most of the requests
            tablet(`${i}-${j}`, next(), kind === 'even' ? 5 : next() > 95 ? 300 : 3),
          ),
        }));
        const { moves } = balanced(servers);
        // the least is a lower bound, which no plan reaches in some cases: 1 in 1500 needs more than one move besides
        assert.ok(moves.length <= 1.1 * leastForAll(servers) + 3, `${moves.length} of ${leastForAll(servers)}`);
      }),
      { numRuns: 300 },
    );
  });
});
