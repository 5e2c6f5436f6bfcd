import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ChunkedBytes } from './chunked-bytes.ts';

describe('ChunkedBytes', () => {
  test('any range reads as it does in the whole', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 12 }), fc.nat(), fc.nat(), (parts, a, b) => {
        const chunked = new ChunkedBytes();
        for (const part of parts) chunked.append(part);
        const whole = Buffer.concat(parts);
        assert.equal(chunked.length, whole.length);
        const offset = a % (whole.length + 1);
        const length = b % (whole.length - offset + 1);
        assert.deepEqual(chunked.slice(offset, length), whole.subarray(offset, offset + length));
      }),
    );
  });

  test('appended bytes may be reused, and read ones changed', () => {
    const chunked = new ChunkedBytes();
    const part = Buffer.from('abc');
    chunked.append(part);
    part.fill(0);
    chunked.slice(0, 3).fill(0);
    assert.equal(chunked.slice(0, 3).toString(), 'abc');
  });

  test('one byte flips alone', () => {
    const chunked = new ChunkedBytes();
    for (const part of ['ab', '', 'cd', 'e']) chunked.append(Buffer.from(part));
    chunked.flip(3);
    chunked.flip(4);
    chunked.flip(4);
    assert.deepEqual([...chunked.slice(0, 5)], [0x61, 0x62, 0x63, 0x64 ^ 0xff, 0x65]);
  });
});
