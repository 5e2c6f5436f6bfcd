import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SeededRandom } from './seeded-random.ts';

const MASK_64 = 2n ** 64n - 1n;
const MASK_32 = 2n ** 32n - 1n;

/** PCG32 as its paper writes it, in whole numbers. */
function* pcg32(seed: number): Generator<number, never> {
  let state = 0n;
  const step = (): void => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & MASK_64;
  };
  step();
  state = (state + BigInt.asUintN(64, BigInt(seed))) & MASK_64;
  step();
  for (;;) {
    const old = state;
    step();
    const mixed = (((old >> 18n) ^ old) >> 27n) & MASK_32;
    const turn = old >> 59n;
    yield Number(((mixed >> turn) | (mixed << (-turn & 31n))) & MASK_32);
  }
}

describe('SeededRandom', () => {
  test('draws what PCG32 draws', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (seed) => {
        const expected = pcg32(seed);
        const random = new SeededRandom(seed);
        for (let i = 0; i < 8; i++) {
          const name = Array.from({ length: 4 }, () => expected.next().value.toString(16).padStart(8, '0')).join('');
          assert.equal(random.uniqueName(), name);
          const high = expected.next().value >>> 5;
          const low = expected.next().value >>> 6;
          assert.equal(random.float(), (high * 2 ** 26 + low) / 2 ** 53);
        }
      }),
    );
  });

  test('equal seeds draw alike, neighbouring ones do not', () => {
    const draw = (seed: number): number[] => {
      const random = new SeededRandom(seed);
      return Array.from({ length: 20 }, () => random.float());
    };
    assert.deepEqual(draw(42), draw(42));
    assert.notDeepEqual(draw(42), draw(43));
    assert.notDeepEqual(draw(1), draw(1 + 2 ** 32));
  });

  test('floats lie in [0, 1) and spread evenly', () => {
    const random = new SeededRandom(3);
    const buckets = new Array<number>(10).fill(0);
    for (let i = 0; i < 20_000; i++) {
      const drawn = random.float();
      assert.ok(drawn >= 0 && drawn < 1);
      const bucket = Math.floor(drawn * 10);
      buckets[bucket] = buckets[bucket]! + 1;
    }
    for (const count of buckets) assert.ok(count > 1800 && count < 2200, `${buckets}`);
  });

  test('names are 32 hexadecimal digits and differ', () => {
    const random = new SeededRandom(9);
    const names = Array.from({ length: 1000 }, () => random.uniqueName());
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.match(name, /^[0-9a-f]{32}$/);
  });
});
