import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { chooseMoves, type Move, type ServerLoad } from './balance.ts';

const MIB = 1024 * 1024;

function server(name: string, ...sizes: readonly number[]): ServerLoad {
  return { name, tablets: sizes.map((size, i) => ({ key: `${name}${i}`, epoch: 1, sizeBytes: size * MIB })) };
}

function after(servers: readonly ServerLoad[], moves: readonly Move[]): ServerLoad[] {
  const tablets = new Map(servers.map((one) => [one.name, [...one.tablets]]));
  for (const { tablet, from, to } of moves) {
    const left = tablets.get(from)?.filter((one) => one.key !== tablet.key) ?? [];
    assert.equal(left.length, (tablets.get(from)?.length ?? 0) - 1, `${from} has ${tablet.key}`);
    tablets.set(from, left);
    tablets.get(to)?.push(tablet);
  }
  return [...tablets].map(([name, own]) => ({ name, tablets: own }));
}

const numbers = (servers: readonly ServerLoad[]): number[] => servers.map(({ tablets }) => tablets.length);

describe('balance', () => {
  test('one server, no server and equal servers have no moves', () => {
    assert.deepEqual(chooseMoves([], 9), []);
    assert.deepEqual(chooseMoves([server('a', 1, 2, 3)], 9), []);
    assert.deepEqual(chooseMoves([server('a', 1, 2), server('b', 1, 2)], 9), []);
    assert.deepEqual(chooseMoves([server('a', 1, 2), server('b', 1)], 9), [], 'a difference of one is even');
  });

  test('a new server gets its share, in no more moves than that takes', () => {
    const servers = [server('old', 1, 1, 1, 1, 1, 1), server('new')];
    const moves = chooseMoves(servers, 9);
    assert.equal(moves.length, 3);
    assert.deepEqual(numbers(after(servers, moves)), [3, 3]);
  });

  test('at most the requested number at a time', () => {
    assert.equal(chooseMoves([server('old', ...new Array<number>(100).fill(1)), server('new')], 4).length, 4);
  });

  test('the tablet goes that leaves the bytes most even', () => {
    const [move] = chooseMoves([server('a', 1, 500, 1000), server('b', 400)], 1);
    assert.equal(move?.tablet.sizeBytes, 500 * MIB);
  });

  test('of two servers with about as many tablets, one with many more bytes gives one away, one with few more does not', () => {
    const [move] = chooseMoves([server('a', 300, 100), server('b', 10)], 9);
    assert.deepEqual([move?.from, move?.to], ['a', 'b']);
    assert.deepEqual(chooseMoves([server('a', 30, 30), server('b', 10)], 9), []);
  });

  test('a tablet that is larger than the difference stays: the other server would only become the full one', () => {
    assert.deepEqual(chooseMoves([server('a', 1000, 1), server('b', 100)], 9), []);
  });

  test('moves lead to a state without moves, and to even numbers, from any state', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(sizes, { minLength: 1, maxLength: 5 }), (loads) => {
        const servers = loads.map((load, i) => server(`s${i}-`, ...load));
        const balanced = after(servers, chooseMoves(servers, 1000));
        assert.deepEqual(chooseMoves(balanced, 1000), []);
        assert.ok(Math.max(...numbers(balanced)) - Math.min(...numbers(balanced)) <= 1);
      }),
    );
  });
});
