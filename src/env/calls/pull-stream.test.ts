import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangedStream, PullStream, pullStreamOf } from './pull-stream.ts';

class Counting extends PullStream<number> {
  ends = 0;
  #next = 0;
  readonly #count: number;

  constructor(count: number) {
    super();
    this.#count = count;
  }

  /** Every other value has to be waited for. */
  pull(): number | undefined | Promise<number | undefined> {
    if (this.#next >= this.#count) return undefined;
    const value = this.#next++;
    return value % 2 === 0 ? value : Promise.resolve(value);
  }

  end(): void {
    this.ends++;
  }
}

async function all(values: AsyncIterable<number>): Promise<number[]> {
  const seen: number[] = [];
  for await (const value of values) seen.push(value);
  return seen;
}

describe('pull streams', () => {
  test('are read by pulls, and as async iterables', async () => {
    assert.deepEqual(await all(new Counting(4)), [0, 1, 2, 3]);
    const stream = new Counting(2);
    assert.equal(stream.pull(), 0);
    assert.equal(await stream.pull(), 1);
    assert.equal(stream.pull(), undefined);
  });

  test('leaving an iteration ends the stream', async () => {
    const stream = new Counting(4);
    for await (const value of stream) if (value === 1) break;
    assert.equal(stream.ends, 1);
  });

  test('a stream is returned unchanged; any other iterable of values becomes one', async () => {
    const stream = new Counting(1);
    assert.equal(pullStreamOf(stream), stream);
    let left = false;
    const generated = pullStreamOf(
      (async function* () {
        try {
          for (let i = 0; ; i++) yield i;
        } finally {
          left = true;
        }
      })(),
    );
    assert.deepEqual([await generated.pull(), await generated.pull()], [0, 1]);
    await generated.end();
    assert.equal(left, true);
    assert.equal(await generated.pull(), undefined);
  });

  test('after an error the stream has ended', async () => {
    const failing = pullStreamOf(
      (async function* () {
        yield 1;
        throw new Error('as planned');
      })(),
    );
    assert.equal(await failing.pull(), 1);
    await assert.rejects(async () => failing.pull(), /as planned/);
    assert.equal(await failing.pull(), undefined);
  });

  test('are changed value by value', async () => {
    const counting = new Counting(4);
    const stream = new ChangedStream(counting, (value) => (value as number) * 10);
    assert.equal(stream.pull(), 0);
    assert.equal(await stream.pull(), 10);
    assert.deepEqual(await all(stream), [20, 30]);
  });

  test('end where a change throws', () => {
    const counting = new Counting(4);
    const stream = new ChangedStream<number>(counting, () => {
      throw new Error('no number');
    });
    assert.throws(() => stream.pull(), /no number/);
    assert.equal(counting.ends, 1);
  });
});
