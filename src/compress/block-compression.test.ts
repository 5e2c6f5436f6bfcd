import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../base/index.ts';
import type { Codecs } from '../env/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { BlockCodec, type BlockCompressor, type BlockDecompressor, type Compression } from './block-compression.ts';
import { blockCompressor } from './block-compressor.ts';
import { blockDecompressor } from './block-decompressor.ts';
import { anyBlock, KINDS, noise, sampleBlock } from './fixtures.ts';

const CODECS = nativeCodecs();
const NO_LIMIT = 2 ** 30;
const SAMPLES = Array.from({ length: 10 }, (_, i) => sampleBlock(i));

interface File {
  readonly compressor: BlockCompressor;
  readonly decompressor: BlockDecompressor;
  readonly sharedBytes: number;
}

/** Both sides of a file that was prepared with `samples`. */
function fileOf(compression: Compression, samples: readonly Uint8Array[] = SAMPLES, codecs: Codecs = CODECS): File {
  const compressor = blockCompressor(compression, codecs);
  const shared = compressor.prepare(samples);
  return { compressor, decompressor: blockDecompressor(codecs, shared), sharedBytes: shared?.length ?? 0 };
}

function roundTrip({ compressor, decompressor }: File, block: Buffer): number {
  const packed = compressor.compress(block);
  if (!packed) return block.length;
  assert.ok(decompressor.decompress(packed.codec, packed.bytes, block.length).equals(block));
  return packed.bytes.length;
}

for (const kind of KINDS) {
  describe(`compression ${kind}`, () => {
    test('returns the input, with and without shared bytes', () => {
      const files = [fileOf({ kind }), fileOf({ kind }, [])];
      fc.assert(
        fc.property(anyBlock, (block) => {
          for (const file of files) roundTrip(file, block);
        }),
        { numRuns: 10 },
      );
      for (const block of [Buffer.alloc(0), Buffer.of(1), Buffer.alloc(100), ...SAMPLES, sampleBlock(1000)])
        for (const file of files) roundTrip(file, block);
    });

    test('returns a value of more than 16 MB, and continues with ordinary blocks', () => {
      const file = fileOf({ kind });
      const value = Buffer.concat([sampleBlock(1), Buffer.alloc(17 * 1024 * 1024, sampleBlock(2)), noise(1000)]);
      roundTrip(file, value);
      roundTrip(file, sampleBlock(3));
    });

    test('stores noise as it is, and soon tries only some', () => {
      let calls = 0;
      const counted =
        <A extends unknown[], R>(work: (...args: A) => R) =>
        (...args: A): R => {
          calls++;
          return work(...args);
        };
      const { lz4, zstd } = CODECS;
      const codecs = {
        ...CODECS,
        lz4: { ...lz4, compress: counted(lz4.compress) },
        zstd: { ...zstd, compress: counted(zstd.compress) },
      };
      const { compressor } = fileOf({ kind }, SAMPLES, codecs);
      calls = 0;
      for (let i = 0; i < 100; i++) assert.equal(compressor.compress(noise(5000, i + 1)), undefined);
      assert.equal(calls, kind === 'none' ? 0 : 8 + Math.floor(92 / 16));
    });

    test('any damage of the bytes is a RangeError', () => {
      const file = fileOf({ kind });
      const blocks = [sampleBlock(2), Buffer.alloc(3000, 'ab'), sampleBlock(99)];
      fc.assert(
        fc.property(
          fc.constantFrom(...blocks),
          fc.nat(),
          fc.integer({ min: 1, max: 255 }),
          fc.nat(),
          (block, at, flip, cut) => {
            const packed = file.compressor.compress(block);
            if (!packed) return;
            const flipped = Buffer.from(packed.bytes);
            flipped[at % flipped.length] = (flipped[at % flipped.length] as number) ^ flip;
            const shorter = packed.bytes.subarray(0, cut % packed.bytes.length);
            const longer = Buffer.concat([packed.bytes, Buffer.of(flip)]);
            const damaged = [flipped, shorter, longer, noise((cut % 100) + 1, at + 1)];
            for (const bytes of damaged) mayRefuse(() => file.decompressor.decompress(packed.codec, bytes, 100_000));
          },
        ),
        { numRuns: 30 },
      );
    });

    test('more than the limit is refused', () => {
      const file = fileOf({ kind });
      const block = sampleBlock(3);
      const packed = file.compressor.compress(block) ?? { codec: BlockCodec.none, bytes: block };
      assert.throws(() => file.decompressor.decompress(packed.codec, packed.bytes, block.length - 1), RangeError);
      assert.ok(file.decompressor.decompress(packed.codec, packed.bytes, block.length).equals(block));
    });
  });
}

/**
 * In a file a checksum protects these bytes: damage that decodes to other bytes is not detected here, but no error
 * other than RangeError may be thrown.
 */
function mayRefuse(work: () => Buffer): void {
  try {
    assert.ok(work().length <= 100_000);
  } catch (error) {
    assert.ok(error instanceof RangeError, `${error}`);
  }
}

describe('compression', () => {
  test('the shared bytes pay for themselves, on blocks that were not their samples', () => {
    const others = Array.from({ length: 12 }, (_, i) => sampleBlock(100 + i));
    const size = (compression: Compression, samples = SAMPLES): number => {
      const file = fileOf(compression, samples);
      return others.reduce((sum, block) => sum + roundTrip(file, block), file.sharedBytes);
    };
    const zstd = size({ kind: 'zstd' });
    assert.ok(size({ kind: 'zstd-dict' }) < zstd * 0.9);
    assert.ok(size({ kind: 'two-pass' }) < size({ kind: 'two-pass' }, []));
    assert.ok(size({ kind: 'zstd', level: 19 }) < zstd);
    assert.ok(zstd < size({ kind: 'lz4' }));
  });

  test('blocks name their codecs, so that one decompressor reads all of a file', () => {
    const shared = blockCompressor({ kind: 'zstd-dict' }, CODECS);
    const decompressor = blockDecompressor(CODECS, shared.prepare(SAMPLES));
    const block = sampleBlock(50);
    for (const compressor of [
      shared,
      blockCompressor({ kind: 'lz4' }, CODECS),
      blockCompressor({ kind: 'zstd' }, CODECS),
    ]) {
      roundTrip({ compressor, decompressor, sharedBytes: 0 }, block);
    }
    assert.ok(decompressor.decompress(BlockCodec.none, block, NO_LIMIT).equals(block));
    assert.throws(() => decompressor.decompress(99, Buffer.from('\x05hello'), NO_LIMIT), RangeError);
  });

  test('an empty or implausible raw length is refused before memory is taken', () => {
    const decompressor = blockDecompressor(CODECS, undefined);
    for (const codec of [BlockCodec.lz4, BlockCodec.zstd, BlockCodec.twoPass]) {
      for (const bytes of ['', '00', '80', '8080808080808080', 'ffffffffffffff0f00', 'ffffffff0f'].map((hex) =>
        Buffer.from(hex, 'hex'),
      )) {
        assert.throws(
          () => decompressor.decompress(codec, bytes, 1_000_000),
          RangeError,
          `codec ${codec}, ${bytes.toString('hex')}`,
        );
      }
    }
  });

  test('a file whose shared bytes are missing or damaged refuses the blocks that need them, and no others', () => {
    const compressor = blockCompressor({ kind: 'zstd-dict' }, CODECS);
    const shared = compressor.prepare(SAMPLES);
    const packed = compressor.compress(sampleBlock(5));
    assert.ok(shared && packed);
    const plain = blockCompressor({ kind: 'zstd' }, CODECS).compress(sampleBlock(5));
    assert.ok(plain);
    const tooLong = Buffer.concat([Buffer.of(2, 0xff, 0xff, 0xff, 0xff, 0x0f), shared.subarray(4)]);
    const cases = [undefined, Buffer.alloc(0), Buffer.of(0), Buffer.of(7, 1, 2, 3), shared.subarray(0, 100), tooLong];
    for (const damaged of cases) {
      const decompressor = blockDecompressor(CODECS, damaged);
      assert.throws(() => decompressor.decompress(packed.codec, packed.bytes, NO_LIMIT), RangeError);
      assert.ok(decompressor.decompress(plain.codec, plain.bytes, NO_LIMIT).equals(sampleBlock(5)));
    }
  });

  test('a small file shares little, an empty one nothing', () => {
    const total = SAMPLES.slice(0, 3).reduce((sum, { length }) => sum + length, 0);
    for (const kind of ['zstd-dict', 'two-pass'] as const) {
      assert.equal(fileOf({ kind }, []).sharedBytes, 0);
      assert.equal(fileOf({ kind }, [noise(1000)]).sharedBytes, 0);
      const { sharedBytes } = fileOf({ kind }, SAMPLES.slice(0, 3));
      assert.ok(sharedBytes > 0 && sharedBytes <= total / 8, `${sharedBytes} of ${total}`);
    }
  });

  test('a dictionary releases its memory when its file is closed', () => {
    let open = 0;
    const zstd: Codecs['zstd'] = {
      ...CODECS.zstd,
      dictionary(bytes) {
        const dictionary = CODECS.zstd.dictionary(bytes);
        open++;
        return {
          bytes,
          close: () => {
            open--;
            dictionary.close();
          },
        };
      },
      compress: (bytes, level) => CODECS.zstd.compress(bytes, level),
      decompress: (bytes, sizeBytes) => CODECS.zstd.decompress(bytes, sizeBytes),
    };
    const file = fileOf({ kind: 'zstd-dict' }, SAMPLES, { ...CODECS, zstd });
    for (let i = 0; i < 3; i++) roundTrip(file, sampleBlock(i));
    assert.equal(open, 2);
    file.compressor.close();
    file.decompressor.close();
    assert.equal(open, 0);
  });

  test('a level that zstd does not have is refused', () => {
    for (const level of [0, 20, 2.5, Number.NaN])
      assert.throws(() => blockCompressor({ kind: 'zstd', level }, CODECS), AssertionError);
  });
});
