/** The arithmetic that decides whether one build is slower than another. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { judge, quantile, type Round, summed } from '../../bench/compare/verdict.ts';

/** Nine rounds of a machine whose speed drifts by a factor of three, with a build that costs `ratio` times as much. */
const rounds = (ratio: number, noise: readonly number[] = [0]): Round[] =>
  Array.from({ length: 9 }, (_, i) => ({
    before: 10 + (i * 20) / 9,
    now: (10 + (i * 20) / 9) * (ratio + (noise[i % noise.length] as number)),
  }));

describe('the verdict on two builds', () => {
  test('quantiles lie between neighbours in proportion', () => {
    assert.equal(quantile([3, 1, 2], 0.5), 2);
    assert.equal(quantile([1, 2, 3, 4], 0.5), 2.5);
    assert.equal(quantile([1, 2, 3, 4, 5], 0.25), 2);
  });

  test('the drift of the machine does not count, and equal builds pass', () => {
    const { passes, meanRatio, lines } = judge(
      new Map([
        ['scan', rounds(1)],
        ['get', rounds(1.01)],
      ]),
    );
    assert.equal(passes, true);
    assert.ok(Math.abs(meanRatio - Math.sqrt(1.01)) < 1e-9);
    assert.deepEqual(
      lines.map(({ line }) => line),
      ['scan', 'get'],
    );
  });

  test('3 % more in all lines fails by the mean, though no line fails alone', () => {
    const { passes, lines } = judge(
      new Map([
        ['scan', rounds(1.03)],
        ['get', rounds(1.03)],
      ]),
    );
    assert.equal(passes, false);
    assert.ok(lines.every((line) => line.passes));
  });

  test('one line 8 % worse fails, though the mean passes', () => {
    const { passes, meanRatio } = judge(
      new Map([
        ['scan', rounds(1.08)],
        ['get', rounds(0.9)],
      ]),
    );
    assert.ok(meanRatio < 1);
    assert.equal(passes, false);
  });

  test('a line whose spread is wider than the difference passes', () => {
    const noise = [0, 0.3, -0.3, 0.2, -0.2, 0.1, -0.1, 0.25, -0.25];
    const { lines } = judge(new Map([['cold', rounds(1.08, noise)]]));
    assert.equal(lines[0]?.passes, true);
  });

  test('writes that follow one another are judged by their sum, and shown no more alone', () => {
    const all = new Map([
      ['scan', rounds(1)],
      ['write', rounds(1.6)],
      ['cam', rounds(0.4)],
    ]);
    const together = summed(all, 'all writes', ['write', 'cam']);
    assert.deepEqual([...together.keys()], ['scan', 'all writes']);
    assert.equal(judge(all).passes, false);
    const { passes, lines } = judge(together);
    assert.equal(passes, true);
    assert.ok(Math.abs(lines[1]!.ratio - 1) < 1e-9);
    assert.equal(judge(summed(new Map([...all, ['cam', rounds(0.8)]]), 'all writes', ['write', 'cam'])).passes, false);
  });

  test('where not all lines of a sum were measured, each is judged alone', () => {
    const some = new Map([['write', rounds(1.6)]]);
    assert.equal(summed(some, 'all writes', ['write', 'cam']), some);
  });

  test('fewer rounds than nine, or no lines, are no verdict', () => {
    assert.equal(judge(new Map([['scan', rounds(1).slice(1)]])).passes, false);
    assert.equal(judge(new Map()).passes, false);
  });
});
