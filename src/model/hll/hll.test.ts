import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, INT64_MAX, INT64_MIN, type Int64, int64 } from '../../base/index.ts';
import { fingerprint, fingerprintInt64 } from './fingerprint.ts';
import { checkHllInput, checkHllState, hllInput, mergeHll } from './hll.ts';
import {
  MAX_RANK,
  isSparseValue,
  PRECISION,
  REGISTERS,
  rankOf,
  registerOf,
  SPARSE_PRECISION,
  sparseIndexOf,
  sparseValueOf,
} from './register.ts';
import type { Sketch } from './sketch.ts';
import { decodeSketch, encodeSketch } from './sketch-codec.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** The state of many inputs, merged in pairs: quicker than one by one. */
function stateOf(inputs: readonly (Int64 | Uint8Array)[]): Buffer {
  let states = inputs.map(hllInput);
  while (states.length > 1) {
    const next: Buffer[] = [];
    for (let i = 0; i < states.length; i += 2) {
      const [a, b] = [states[i]!, states[i + 1]];
      next.push(b === undefined ? a : mergeHll(a, b));
    }
    states = next;
  }
  return states[0]!;
}

/** Strings of 0 to 199 bytes: every branch of the hash. */
const strings = numbers(200).map((length) => Buffer.from(numbers(length).map((j) => (length * 7 + j * 3) % 256)));
const integers = [-15, 42, 0, INT64_MAX, INT64_MIN];
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/**
 * The number of distinct inputs: linear counting while registers are free, else the harmonic mean (Heule et al.,
 * without the bias tables).
 */
function estimate({ data }: Sketch): number {
  if ('sparse' in data) {
    const slots = 2 ** SPARSE_PRECISION;
    return slots * Math.log(slots / (slots - data.sparse.length));
  }
  const zeros = data.registers.filter((rank) => rank === 0).length;
  if (zeros > 0) return REGISTERS * Math.log(REGISTERS / zeros);
  const sum = data.registers.reduce((total, rank) => total + 2 ** -rank, 0);
  return ((0.7213 / (1 + 1.079 / REGISTERS)) * REGISTERS * REGISTERS) / sum;
}

describe('hash', () => {
  test('known values', () => {
    assert.equal(fingerprint(Buffer.alloc(0)), 0x23ad7c904aa665e3n);
    assert.equal(fingerprint(Buffer.from('foo')), 0xd0bcbfe261b36504n);
    assert.equal(fingerprint(Buffer.from('foobar')), 0x36a1e57a138e4467n);
    assert.equal(fingerprint(Buffer.from('Z\u00fcrich')), 0x27efc00f7d2ce548n);
    assert.equal(fingerprintInt64(0), 0x853a22bd6e14a48fn);
    assert.equal(fingerprintInt64(42), 0x583b2b9df8e0eb60n);
    assert.equal(fingerprintInt64(-15), 0x539414f287f11e37n);
  });

  test('is of 64 bits, whatever the length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) =>
        assert.equal(BigInt.asUintN(64, fingerprint(bytes)), fingerprint(bytes)),
      ),
    );
  });

  test('does not depend on where the bytes lie', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(9), (bytes, before) => {
        const larger = Buffer.concat([Buffer.alloc(before, 1), bytes, Buffer.alloc(3, 2)]);
        assert.equal(fingerprint(larger.subarray(before, before + bytes.length)), fingerprint(bytes));
      }),
    );
  });
});

describe('registers', () => {
  /** Straight from the definition, on the hash's digits. */
  function byDigits(hash: bigint): { register: number; rank: number } {
    const digits = hash.toString(2).padStart(64, '0');
    const rest = digits.slice(PRECISION);
    const firstOne = rest.indexOf('1');
    return {
      register: Number.parseInt(digits.slice(0, PRECISION), 2),
      rank: firstOne < 0 ? MAX_RANK : firstOne + 1,
    };
  }
  // many leading zeros after the index are rare by chance alone
  const hashes = fc
    .tuple(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.nat(64))
    .map(([hash, low]) => (hash >> BigInt(64 - 15)) * 2n ** 49n + BigInt.asUintN(Math.max(0, 49 - low), hash));

  test('a sparse value contains register and rank', () => {
    fc.assert(
      fc.property(hashes, (hash) => {
        const value = sparseValueOf(hash);
        assert.ok(isSparseValue(value), `${value}`);
        assert.deepEqual({ register: registerOf(value), rank: rankOf(value) }, byDigits(hash));
      }),
      { numRuns: 1000 },
    );
  });

  test('the rank does not change the index of a value', () => {
    const index = 0x123n << 49n;
    assert.equal(sparseIndexOf(sparseValueOf(index)), sparseIndexOf(sparseValueOf(index | 1n)));
    assert.ok(sparseValueOf(index) > sparseValueOf(index | 1n), 'the higher rank is the higher value');
    assert.notEqual(sparseIndexOf(sparseValueOf(index | (1n << 44n))), sparseIndexOf(sparseValueOf(index)));
  });
});

// states that another implementation of the format (zetasketch-py 0.1.3, precisions 15 and 20) wrote for the same
// inputs
const GOLDEN = {
  integers: 'CHAQBRgCIAiCBxcQBRgPIBQyD8HyFPGUAafTBcnMBb34Cw==',
  hundred:
    'CHAQZBgCIAiCB+YBEGQYDyAUMt0B/WyUPdo/owjJFpwT8HTHX52AAdw1lwbbK6Qci5QBoG+QfvUuggHjG9gk1SO1qAKqOpYFH9DFAYN81Bb5c/wqm+YB8A3kYYI8u3SWVrwsiRXzWKcfwUKPTduMAcwtrZEBxVucGoOiAZ9Orq8BtUqriQGr' +
    'OPYqlY0DsCqyFpVsmVuzFPcK8EXXxQG8N/vsAavrAfQ0hgmiVOAZ0gGRIeQ6nCr8C4kI9XjERbrPAYdfgfwB/iWfQpYsrVDpSq0f6i3gFoMTrXqkJbki79EB+qYCpDyumk6AwkPA9QyArxs=',
};

describe('states', () => {
  test('are to the byte what another implementation writes', () => {
    assert.equal(stateOf(integers.map(int64)).toString('base64'), GOLDEN.integers);
    assert.equal(stateOf(numbers(100)).toString('base64'), GOLDEN.hundred);
    assert.equal(sha256(stateOf(strings)), '3092bda1268d6f004624923b78999660ed7b7b77f073816fa5020017fed4af77');
    assert.equal(
      sha256(stateOf(numbers(20_000))),
      '5987d3db673afc7ced400fe933fa4ce818866fa262da691da694de560abfe4af',
      'a long list',
    );
  });

  test('of any hash are read back as they were written', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), { minLength: 1, maxLength: 50 }),
        (inputs) => {
          const state = stateOf(inputs.map(int64));
          checkHllState(state, 'int64');
          assert.deepEqual(encodeSketch(decodeSketch(state)), state);
        },
      ),
    );
  });

  test('of registers are read back as they were written, and stay bounded', () => {
    const registers = Uint8Array.from({ length: REGISTERS }, (_, i) => i % (MAX_RANK + 1));
    const state = encodeSketch({ inputs: Number.MAX_SAFE_INTEGER, valueType: 11, data: { registers } });
    const back = decodeSketch(state);
    assert.ok('registers' in back.data);
    assert.deepEqual(Uint8Array.from(back.data.registers), registers);
    assert.ok(mergeHll(state, state).length <= REGISTERS + 64);
    assert.equal(
      decodeSketch(mergeHll(state, state)).inputs,
      Number.MAX_SAFE_INTEGER,
      'the count of inputs stays at its end',
    );
  });

  test('an empty one is a state, and changes nothing', () => {
    const empty = encodeSketch({ inputs: 0, valueType: 0, data: { sparse: new Uint32Array(0) } });
    const some = stateOf(numbers(10));
    checkHllState(empty, 'int64');
    checkHllState(empty, 'bytes');
    assert.deepEqual(mergeHll(empty, some), some);
    assert.deepEqual(mergeHll(some, empty), some);
  });
});

describe('merging', () => {
  const large = stateOf(numbers(30_000));
  const some = fc.oneof(
    { weight: 8, arbitrary: fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 20 }).map(stateOf) },
    { weight: 1, arbitrary: fc.constant(large) },
  );

  test('is commutative and associative to the byte', () => {
    fc.assert(
      fc.property(some, some, some, (a, b, c) => {
        assert.deepEqual(mergeHll(a, b), mergeHll(b, a));
        assert.deepEqual(mergeHll(mergeHll(a, b), c), mergeHll(a, mergeHll(b, c)));
      }),
      { numRuns: 30 },
    );
  });

  test('ends in the same bytes where a list turns into registers, whatever the order', () => {
    const parts = [0, 1, 2, 3].map((part) => stateOf(numbers(26_000).filter((n) => n % 4 === part)));
    const [a, b, c, d] = parts as [Buffer, Buffer, Buffer, Buffer];
    const state = mergeHll(mergeHll(mergeHll(a, b), c), d);
    assert.ok('registers' in decodeSketch(state).data && 'sparse' in decodeSketch(mergeHll(a, b)).data);
    assert.deepEqual(mergeHll(mergeHll(d, a), mergeHll(c, b)), state);
    assert.deepEqual(mergeHll(d, mergeHll(c, mergeHll(b, a))), state);
  });

  test('counts an input once, however often it came', () => {
    const data = (state: Buffer): Sketch['data'] => decodeSketch(state).data;
    const once = stateOf(numbers(50));
    assert.deepEqual(data(mergeHll(once, once)), data(once));
    assert.equal(decodeSketch(mergeHll(once, once)).inputs, 100);
  });

  for (const [count, percent] of [
    [1, 0.1],
    [100, 0.5],
    [5_000, 1],
    [20_000, 1.5],
    [60_000, 3],
  ] as const) {
    test(`${count} distinct inputs are estimated within ${percent} %`, () => {
      const inputs = numbers(count).map((i) => i * 7919 + 1);
      const estimated = estimate(decodeSketch(stateOf(inputs)));
      assert.ok(Math.abs(estimated - count) <= (count * percent) / 100, `${estimated}`);
    });
  }
});

describe('refused are', () => {
  const refused = (state: Uint8Array, words: RegExp): void =>
    assert.throws(() => checkHllState(state), { code: Code.INVALID_ARGUMENT, message: words });
  const good = stateOf(numbers(3));
  /** The state with some bytes of its encoding replaced. */
  const altered = (from: string, to: string): Buffer => {
    const text = good.toString('hex');
    assert.ok(text.includes(from), text);
    return Buffer.from(text.replace(from, to), 'hex');
  };

  test('inputs of another type than the family counts', () => {
    checkHllInput(5, 'int64');
    checkHllInput(Buffer.from('x'), 'bytes');
    assert.throws(() => checkHllInput(Buffer.alloc(8), 'int64'), { code: Code.INVALID_ARGUMENT });
    assert.throws(() => checkHllInput(5, 'bytes'), { code: Code.INVALID_ARGUMENT });
  });

  test('states over another type', () => {
    assert.throws(() => checkHllState(good, 'bytes'), { code: Code.INVALID_ARGUMENT, message: /type number 8/ });
    assert.throws(() => checkHllState(stateOf([Buffer.from('x')]), 'int64'), { code: Code.INVALID_ARGUMENT });
    checkHllState(altered('2008', '2004'), 'int64');
    assert.deepEqual(
      mergeHll(altered('2008', '2004'), good),
      mergeHll(good, good),
      'both numbers of 64-bit integers are one type',
    );
  });

  test('other aggregators, versions and precisions', () => {
    refused(altered('0870', '0864'), /the aggregator must be 112, not 100/);
    refused(altered('1802', '1801'), /encoding version must be 2, not 1/);
    refused(altered('180f', '180e'), /precision must be 15, not 14/);
    refused(altered('2014', '2019'), /sparse precision must be 20, not 25/);
    refused(Buffer.from([0, 0, 0, 0, 0, 0, 0, 5]), /unknown field/);
    refused(Buffer.alloc(0), /the aggregator/);
  });

  test('lists that are out of order, too short, too long or of values that no hash has', () => {
    const listed = (sparse: readonly number[]): Buffer =>
      encodeSketch({ inputs: 1, valueType: 8, data: { sparse: Uint32Array.from(sparse) } });
    refused(listed([5, 5]), /does not come after/);
    refused(listed([32]), /not a sparse value/);
    refused(listed([2 ** 21 + 46]), /not a sparse value/);
    refused(listed([2 ** 21 + 3, 2 ** 21 + 4]), /does not come after/);
    refused(listed([2 ** 22]), /not a sparse value/);
    refused(altered('1003180f', '1002180f'), /length of the sparse list/);
    refused(altered('1003180f', '107f180f'), /cannot be in/);
  });

  test('registers that are too few, too high, or next to a list', () => {
    const dense = (registers: Uint8Array): Buffer => encodeSketch({ inputs: 1, valueType: 8, data: { registers } });
    refused(dense(new Uint8Array(REGISTERS - 1)), /number of registers must be 32768/);
    refused(dense(new Uint8Array(REGISTERS).fill(MAX_RANK + 1, 7)), /register 7 holds 51/);
    checkHllState(dense(new Uint8Array(REGISTERS).fill(MAX_RANK)));
  });

  test('any bytes: a state, or refused with INVALID_ARGUMENT; never another error', () => {
    const changed = fc.tuple(fc.nat(good.length - 1), fc.nat(255)).map(([at, byte]) => {
      const bytes = Buffer.from(good);
      bytes[at] = byte;
      return bytes;
    });
    const cut = fc.nat(good.length).map((length) => good.subarray(0, length));
    fc.assert(
      fc.property(fc.oneof(changed, cut, fc.uint8Array({ maxLength: 60 })), (bytes) => {
        try {
          checkHllState(bytes);
        } catch (error) {
          assert.equal((error as { code?: Code }).code, Code.INVALID_ARGUMENT);
          return;
        }
        checkHllState(mergeHll(bytes, good));
      }),
      { numRuns: 2000 },
    );
  });
});
