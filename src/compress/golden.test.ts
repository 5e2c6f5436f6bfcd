import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { examplesOf, goldenFile } from '../../test/golden/golden-file.ts';
import type { Codecs } from '../env/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { type CompressionKind, BlockCodec } from './block-compression.ts';
import { blockCompressor } from './block-compressor.ts';
import { blockDecompressor } from './block-decompressor.ts';
import { sampleBlock } from './fixtures.ts';
import { plainLz4 } from './lz4.ts';

/** To be written anew on a Node whose zlib has zstd. */
const GOLDEN = 'compression-v1.json';
const KINDS: readonly CompressionKind[] = ['lz4', 'zstd', 'zstd-dict', 'two-pass'];

interface GoldenBlock {
  readonly kind: CompressionKind;
  readonly writer: string;
  readonly codec: number;
  /** Base64. */
  readonly shared?: string;
  readonly block: string;
}

/** The codecs that write and read: with native code, and without any. */
const CODECS: Readonly<Record<string, Codecs>> = {
  native: nativeCodecs(),
  'without native code': { ...nativeCodecs({ zstd: () => undefined }), lz4: plainLz4 },
};

const BLOCK = sampleBlock(40);
const SAMPLES = Array.from({ length: 24 }, (_, i) => sampleBlock(i));

function write(kind: CompressionKind, writer: string): GoldenBlock {
  const compressor = blockCompressor({ kind }, CODECS[writer] as Codecs);
  const shared = compressor.prepare(SAMPLES);
  const packed = compressor.compress(BLOCK);
  assert.ok(packed);
  return {
    kind,
    writer,
    codec: packed.codec,
    ...(shared ? { shared: shared.toString('base64') } : {}),
    block: packed.bytes.toString('base64'),
  };
}

describe('the format of compressed blocks', () => {
  test('is that of the golden blocks, for all codecs that write and read them', () => {
    const now = KINDS.flatMap((kind) => Object.keys(CODECS).map((writer) => write(kind, writer)));
    const written = Buffer.from(`${JSON.stringify(now, undefined, 1)}\n`);
    const golden: GoldenBlock[] = JSON.parse(goldenFile(GOLDEN, written).toString());
    assert.equal(golden.length, 8);
    for (const { kind, writer, codec, shared, block } of golden) {
      for (const [reader, codecs] of Object.entries(CODECS)) {
        const decompressor = blockDecompressor(
          codecs,
          shared === undefined ? undefined : Buffer.from(shared, 'base64'),
        );
        assert.ok(
          decompressor.decompress(codec, Buffer.from(block, 'base64'), BLOCK.length).equals(BLOCK),
          `${kind}, written ${writer}, read ${reader}`,
        );
        decompressor.close();
      }
    }
  });

  test('is that of the example in its page', () => {
    const [shared, block] = examplesOf('compression.md');
    assert.ok(shared && block, 'the page has an example');
    const decompressor = blockDecompressor(CODECS.native as Codecs, shared);
    const text =
      'In 2006: the quick brown fox jumps over the lazy dog, twice a day: the quick brown fox jumps over the lazy dog.';
    assert.equal(decompressor.decompress(BlockCodec.twoPass, block, 1000).toString(), text);
  });
});
