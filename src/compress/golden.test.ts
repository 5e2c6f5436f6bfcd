import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Codecs } from '../env/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { type CompressionKind, BlockCodec } from './block-compression.ts';
import { blockCompressor } from './block-compressor.ts';
import { blockDecompressor } from './block-decompressor.ts';
import { sampleBlock } from './fixtures.ts';
import { plainLz4 } from './lz4.ts';

/** WRITE_GOLDEN=1 in the environment writes it anew, on a Node whose zlib has zstd. */
const GOLDEN = 'test/golden/compression-v1.json';
const PAGE = 'docs/formats/compression.md';

interface GoldenBlock {
  readonly kind: CompressionKind;
  readonly writer: string;
  readonly codec: number;
  /** Base64. */
  readonly shared?: string;
  readonly block: string;
}

/** What may write and read: with native code, and without any. */
const CODECS: Readonly<Record<string, Codecs>> = {
  native: nativeCodecs(),
  'without native code': { ...nativeCodecs({ zstd: () => undefined }), lz4: plainLz4 },
};

const BLOCK = sampleBlock(40);
const SAMPLES = Array.from({ length: 24 }, (_, i) => sampleBlock(i));

function repository(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, PAGE))) folder = dirname(folder);
  return folder;
}

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

/** From a hex dump of a page: the bytes between the offset and the text. */
const hexDump = (dump: string): Buffer =>
  Buffer.from(
    dump
      .split('\n')
      .map((line) => line.slice(6, 54).replaceAll(' ', ''))
      .join(''),
    'hex',
  );

describe('the format of compressed blocks', () => {
  test('is that of the golden blocks, by whichever codecs they were written and are read', () => {
    const path = join(repository(), GOLDEN);
    if (process.env.WRITE_GOLDEN === '1') {
      const kinds: readonly CompressionKind[] = ['lz4', 'zstd', 'zstd-dict', 'two-pass'];
      writeFileSync(
        path,
        `${JSON.stringify(
          kinds.flatMap((kind) => Object.keys(CODECS).map((writer) => write(kind, writer))),
          undefined,
          1,
        )}\n`,
      );
    }
    const golden: GoldenBlock[] = JSON.parse(readFileSync(path, 'utf8'));
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
    const example = readFileSync(join(repository(), PAGE), 'utf8').split('## Example')[1] ?? '';
    const [shared, block] = [...example.matchAll(/```\n([^`]*)```/g)].map((match) => hexDump(match[1] as string));
    assert.ok(shared && block, 'the page has an example');
    const decompressor = blockDecompressor(CODECS.native as Codecs, shared);
    const text =
      'In 2006: the quick brown fox jumps over the lazy dog, twice a day: the quick brown fox jumps over the lazy dog.';
    assert.equal(decompressor.decompress(BlockCodec.twoPass, block, 1000).toString(), text);
  });
});
