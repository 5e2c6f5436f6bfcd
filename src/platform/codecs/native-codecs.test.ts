import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { crc32c } from '../../base/index.ts';
import { nativeCodecs } from './native-codecs.ts';

describe('nativeCodecs', () => {
  const { checksum } = nativeCodecs();

  test('equals the plain checksum for every length, seed and alignment', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), fc.nat(0xffff_ffff), fc.nat(50), (bytes, seed, skip) => {
        const part = bytes.subarray(skip);
        assert.equal(checksum(part, seed), crc32c(part, seed));
        assert.equal(checksum(part), crc32c(part));
        assert.equal(checksum(Buffer.from(part), seed), crc32c(part, seed));
      }),
    );
    for (const length of [0, 1, 255, 256, 257, 65_536, 1_000_001]) {
      const bytes = Buffer.alloc(length, 'pattern of nineteen');
      assert.equal(checksum(bytes, 7), crc32c(bytes, 7), `${length} bytes`);
    }
  });

  test('continues from earlier bytes, across the border between the two', () => {
    const bytes = Buffer.alloc(1000, 'abcdefg');
    for (const cut of [1, 200, 255, 256, 500, 999]) {
      assert.equal(checksum(bytes.subarray(cut), checksum(bytes.subarray(0, cut))), checksum(bytes), `cut at ${cut}`);
    }
  });

  test('the published value for nine digits', () => {
    assert.equal(checksum(Buffer.from('123456789')), 0xe3069283);
  });

  test('long inputs go to the native code, short ones do not', () => {
    const lengths: number[] = [];
    const codecs = nativeCodecs({
      checksum: () => (bytes, seed) => {
        lengths.push(bytes.length);
        return crc32c(bytes, seed);
      },
    });
    for (const length of [0, 255, 256, 70_000]) codecs.checksum(Buffer.alloc(length));
    assert.deepEqual(lengths, [256, 70_000]);
  });

  test('works without native code', () => {
    const plain = nativeCodecs({
      checksum: () => {
        throw new Error('no binary for this machine');
      },
    });
    const bytes = Buffer.alloc(5000, 'x');
    assert.equal(plain.checksum(bytes, 1), crc32c(bytes, 1));
  });
});

describe('LZ4 in native code', () => {
  const { lz4 } = nativeCodecs();
  const block = (length: number, seed: number): Buffer =>
    Buffer.from(Array.from({ length }, (_, i) => ((i >> 1) * seed) % 251));

  test('blocks of all sizes are decompressed, and stay unchanged when others follow', () => {
    const raw = [1, 100, 4096, 65_536, 131_072, 300_000].flatMap((length) => [block(length, 7), block(length, 30_011)]);
    const packed = raw.map((bytes) => lz4.compress(bytes));
    for (const order of [packed.keys(), [...packed.keys()].reverse()]) {
      const unpacked = [...order].map((i) => ({
        i,
        bytes: lz4.decompress(packed[i]!, raw[i]!.length),
      }));
      for (const { i, bytes } of unpacked) assert.ok(bytes.equals(raw[i]!), `block ${i}`);
    }
  });

  test('a block that is cut off, or of another size, is refused, and the next one is not affected', () => {
    const raw = block(50_000, 7);
    const packed = lz4.compress(raw);
    assert.throws(() => lz4.decompress(packed.subarray(0, packed.length - 20), raw.length), RangeError);
    assert.throws(() => lz4.decompress(packed, raw.length - 1), RangeError);
    assert.throws(() => lz4.decompress(packed, raw.length + 1), RangeError);
    assert.throws(() => lz4.decompress(packed.subarray(0, 100), 100 * 256), RangeError);
    assert.ok(lz4.decompress(packed, raw.length).equals(raw));
  });
});
