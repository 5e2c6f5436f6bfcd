import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inParallel } from './in-parallel.ts';

/** Work that ends when the test calls `end`. */
function heldWork(): {
  begun: number[];
  end: Map<number, (error?: Error) => void>;
  work: (i: number) => Promise<void>;
} {
  const begun: number[] = [];
  const end = new Map<number, (error?: Error) => void>();
  const work = (i: number): Promise<void> => {
    begun.push(i);
    return new Promise((resolve, reject) => end.set(i, (error) => (error ? reject(error) : resolve())));
  };
  return { begun, end, work };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('work in parallel', () => {
  test('is begun in order, a number of items at the same time', async () => {
    const { begun, end, work } = heldWork();
    const all = inParallel([0, 1, 2, 3, 4], 2, work);
    assert.deepEqual(begun, [0, 1]);
    end.get(1)!();
    await settled();
    assert.deepEqual(begun, [0, 1, 2]);
    for (const i of [0, 2, 3, 4]) {
      end.get(i)!();
      await settled();
    }
    await all;
    assert.deepEqual(begun, [0, 1, 2, 3, 4]);
  });

  test('begins no more after a failure, and ends with it once the others are over', async () => {
    const { begun, end, work } = heldWork();
    let failure: unknown;
    const all = inParallel([0, 1, 2, 3], 2, work).catch((error: unknown) => (failure = error));
    end.get(0)!(new Error('first'));
    await settled();
    assert.deepEqual([begun, failure], [[0, 1], undefined]);
    end.get(1)!(new Error('second'));
    await all;
    assert.deepEqual([begun, (failure as Error).message], [[0, 1], 'first']);
  });

  test('of nothing is over immediately', () => inParallel([], 3, async () => assert.fail('there is nothing')));
});
