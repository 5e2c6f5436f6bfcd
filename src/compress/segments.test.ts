import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyBlock, noise, sampleBlock } from './fixtures.ts';
import { chooseSegments } from './segments.ts';

describe('chooseSegments', () => {
  test('stays within its budget, takes only bytes of the samples, and is the same for the same samples', () => {
    fc.assert(
      fc.property(
        fc.array(anyBlock, { maxLength: 6 }),
        fc.integer({ min: 16, max: 4000 }),
        fc.integer({ min: 16, max: 600 }),
        (samples, budgetBytes, segmentBytes) => {
          const chosen = chooseSegments(samples, { budgetBytes, segmentBytes });
          assert.ok(chosen.length <= budgetBytes, `${chosen.length} of ${budgetBytes} bytes`);
          assert.ok(chooseSegments(samples, { budgetBytes, segmentBytes }).equals(chosen));
        },
      ),
      { numRuns: 6 },
    );
  });

  test('nothing is worth sharing in one block, or in blocks that have nothing in common', () => {
    const options = { budgetBytes: 10_000, segmentBytes: 256 };
    assert.equal(chooseSegments([], options).length, 0);
    assert.equal(chooseSegments([Buffer.alloc(3)], options).length, 0);
    assert.equal(chooseSegments([sampleBlock(1)], options).length, 0);
    assert.ok(chooseSegments([noise(1000, 1), noise(1000, 2)], options).length < 100);
  });

  test('strings of all blocks come last, strings of two before them, those of one are left out', () => {
    const [common, pair, alone] = [noise(300, 11), noise(300, 12), noise(300, 13)];
    const filler = (seed: number): Buffer => noise(100, seed);
    const samples = [1, 2, 3, 4, 5, 6].map((i) =>
      Buffer.concat([
        filler(20 + i),
        common,
        filler(40 + i),
        ...(i <= 2 ? [pair] : []),
        ...(i === 3 ? [alone] : []),
        filler(60 + i),
      ]),
    );
    const chosen = chooseSegments(samples, { budgetBytes: 1000, segmentBytes: 320 });
    const at = (piece: Buffer): number => chosen.indexOf(piece.subarray(200, 240));
    assert.ok(at(common) > at(pair) && at(pair) >= 0, `${at(common)}, ${at(pair)}`);
    assert.equal(at(alone), -1);
  });

  test('a string that many blocks have is taken once', () => {
    const common = noise(200, 5);
    const samples = [1, 2, 3, 4].map((i) => Buffer.concat([noise(400, i), common, noise(400, i + 10)]));
    const chosen = chooseSegments(samples, { budgetBytes: 2000, segmentBytes: 256 });
    assert.equal(chosen.indexOf(common.subarray(0, 64)), chosen.lastIndexOf(common.subarray(0, 64)));
    assert.ok(chosen.length < 300, `${chosen.length} bytes`);
  });
});
