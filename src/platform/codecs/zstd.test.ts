import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../../base/index.ts';
import type { Zstd } from '../../env/index.ts';
import { nativeCodecs } from './native-codecs.ts';
import { nodeZstd } from './node-zstd.ts';
import { wasmZstd } from './wasm-zstd.ts';

/** The adapters that the running Node has. */
const ADAPTERS = new Map<string, Zstd>([['WebAssembly', wasmZstd()]]);
const ofNode = nodeZstd();
if (ofNode) ADAPTERS.set('node:zlib', ofNode);
const PAIRS = [...ADAPTERS].flatMap(([from, writer]) =>
  [...ADAPTERS].map(([to, reader]) => ({ name: `${from} to ${to}`, writer, reader })),
);

const TEXT = Buffer.from(Array.from({ length: 3000 }, (_, i) => `line ${(i * 7919) % 1000} of the text\n`).join(''));
const DICTIONARY = TEXT.subarray(1000, 9000);

for (const { name, writer, reader } of PAIRS) {
  describe(`zstd, ${name}`, () => {
    test('decompresses its own frames, with and without a dictionary, at every level', () => {
      const [mine, theirs] = [writer.dictionary(DICTIONARY), reader.dictionary(DICTIONARY)];
      for (const level of [1, 3, 9, 19]) {
        for (const block of [Buffer.alloc(0), Buffer.of(7), TEXT, Buffer.alloc(300_000)]) {
          assert.ok(reader.decompress(writer.compress(block, level), block.length).equals(block));
          assert.ok(reader.decompress(writer.compress(block, level, mine), block.length, theirs).equals(block));
        }
      }
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 3000 }), (bytes) => {
          assert.ok(reader.decompress(writer.compress(bytes, 3, mine), bytes.length, theirs).equals(bytes));
        }),
        { numRuns: 40 },
      );
      mine.close();
      theirs.close();
    });

    test('refuses another size, the wrong dictionary, and damage', () => {
      const dictionary = writer.dictionary(DICTIONARY);
      const packed = writer.compress(TEXT, 3);
      const withDictionary = writer.compress(TEXT, 3, dictionary);
      const other = reader.dictionary(Buffer.alloc(5000, 'other'));
      for (const size of [0, 1, TEXT.length - 1, TEXT.length + 1])
        assert.throws(() => reader.decompress(packed, size), RangeError, `${size} bytes`);
      assert.throws(() => reader.decompress(withDictionary, TEXT.length), RangeError);
      assert.throws(() => reader.decompress(packed.subarray(0, -1), TEXT.length), RangeError);
      assert.throws(() => reader.decompress(Buffer.from('no frame at all'), 100), RangeError);
      assert.throws(() => reader.decompress(Buffer.alloc(0), 100), RangeError);
      for (const one of [dictionary, other]) one.close();
    });

    test('works after damage', () => {
      const packed = Buffer.from(writer.compress(TEXT, 3));
      for (let at = 0; at < packed.length; at += 7) {
        const damaged = Buffer.from(packed);
        damaged[at] = damaged[at]! ^ 0x55;
        try {
          assert.equal(reader.decompress(damaged, TEXT.length).length, TEXT.length);
        } catch (error) {
          assert.ok(error instanceof RangeError, `${error}`);
        }
      }
      assert.ok(reader.decompress(packed, TEXT.length).equals(TEXT));
    });
  });
}

describe('zstd', () => {
  test('in WebAssembly keeps no memory of finished calls, nor of closed dictionaries', () => {
    const zstd = wasmZstd();
    const large = Buffer.alloc(1_000_000, 'dictionary');
    const round = (): void => {
      const dictionary = zstd.dictionary(large);
      const packed = zstd.compress(TEXT, 3, dictionary);
      assert.ok(zstd.decompress(packed, TEXT.length, dictionary).equals(TEXT));
      dictionary.close();
    };
    // the module's memory ends at 2 GB: three times that would not fit
    for (let i = 0; i < 50; i++) round();
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 300; i++) round();
    assert.ok(process.memoryUsage().rss - before < 150_000_000);
  });

  test('in WebAssembly refuses a dictionary that is closed or not its own', () => {
    const zstd = wasmZstd();
    const closed = zstd.dictionary(DICTIONARY);
    closed.close();
    closed.close();
    assert.throws(() => zstd.compress(TEXT, 3, closed), AssertionError);
    assert.throws(() => zstd.compress(TEXT, 3, { bytes: DICTIONARY, close() {} }), AssertionError);
  });

  test('a frame that requests a window above 8 MiB gets no memory', { skip: !ofNode }, () => {
    // magic, no content size, window descriptor of 2^31 bytes, then an RLE block of 1 byte
    const frame = Buffer.from('28b52ffd00a80b000041', 'hex');
    assert.throws(() => ofNode!.decompress(frame, 1), /zstd/);
  });

  test('is loaded when it is first used', () => {
    let loads = 0;
    const codecs = nativeCodecs({
      zstd: () => {
        loads++;
        return undefined;
      },
    });
    assert.equal(loads, 0);
    for (let i = 0; i < 2; i++)
      assert.ok(codecs.zstd.decompress(codecs.zstd.compress(TEXT, 3), TEXT.length).equals(TEXT));
    assert.equal(loads, 1);
  });

  test('LZ4 works without native code', () => {
    const plain = nativeCodecs({
      lz4: () => {
        throw new Error('no binary for this machine');
      },
    });
    assert.ok(plain.lz4.decompress(nativeCodecs().lz4.compress(TEXT), TEXT.length).equals(TEXT));
    assert.ok(nativeCodecs().lz4.decompress(plain.lz4.compress(TEXT), TEXT.length).equals(TEXT));
  });
});
