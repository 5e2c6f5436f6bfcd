/**
 * Sizes and times of one way to compress a file's blocks. Times are of the processor, so that a loaded machine changes
 * them less.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { type BlockCodec, blockCompressor, blockDecompressor, type Compression } from '../../src/compress/index.ts';
import type { Codecs } from '../../src/env/index.ts';

/** A way to compress: prepared with a file's blocks, then block by block. */
export interface Method {
  readonly name: string;
  /** Where a method is slow, one block in this many is compressed. The shared bytes count in the same proportion. */
  readonly every: number;
  prepare(blocks: readonly Buffer[]): Prepared;
}

interface Prepared {
  readonly sharedBytes: number;
  /** Number of blocks that the shared bytes were chosen from. */
  readonly sampled: number;
  compress(block: Buffer): { readonly codec: BlockCodec; readonly bytes: Buffer };
  decompress(packed: { readonly codec: BlockCodec; readonly bytes: Buffer }, rawBytes: number): Buffer;
  close(): void;
}

export interface Measure {
  readonly ratio: number;
  /**
   * On the blocks alone that the shared bytes were not chosen from, which are counted all the same; undefined where
   * there are none.
   */
  readonly unseenRatio: number | undefined;
  readonly encodeMBs: number;
  readonly decodeMBs: number;
}

/** gzip at its level 6, as everybody has it. */
export const gzip: Method = {
  name: 'gzip -6',
  every: 1,
  prepare: () => ({
    sharedBytes: 0,
    sampled: 0,
    compress: (block) => ({ codec: 0, bytes: gzipSync(block, { level: 6 }) }),
    decompress: ({ bytes }) => gunzipSync(bytes),
    close() {},
  }),
};

/** Edubba's compression of a locality group of that kind. `shares` false: without the dictionary that blocks share. */
export function ours(
  name: string,
  compression: Compression,
  codecs: Codecs,
  { every = 1, shares = true } = {},
): Method {
  return {
    name,
    every,
    prepare(blocks) {
      const compressor = blockCompressor(compression, codecs);
      const samples: Buffer[] = [];
      let total = 0;
      for (const block of blocks) {
        if (total >= compressor.sampleBytes) break;
        samples.push(block);
        total += block.length;
      }
      const shared = shares ? compressor.prepare(samples) : undefined;
      const decompressor = blockDecompressor(codecs, shared);
      return {
        sharedBytes: shared?.length ?? 0,
        sampled: samples.length,
        compress: (block) => compressor.compress(block) ?? { codec: 0, bytes: block },
        decompress: ({ codec, bytes }, rawBytes) => decompressor.decompress(codec, bytes, rawBytes),
        close() {
          compressor.close();
          decompressor.close();
        },
      };
    },
  };
}

/** Million bytes a second of processor time that `work` takes for `bytes`. */
function speed(bytes: number, work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return bytes / (user + system);
}

const bytesOf = (blocks: readonly Buffer[]): number => blocks.reduce((sum, { length }) => sum + length, 0);

/** Compresses and decompresses all blocks; throws where one does not come back. */
export function measure(method: Method, all: readonly Buffer[]): Measure {
  const prepared = method.prepare(all);
  const chosen = all.flatMap((block, number) => (number % method.every === 0 ? [{ block, number }] : []));
  const blocks = chosen.map(({ block }) => block);
  // code is compiled before it is timed
  for (const block of blocks.slice(0, 16)) prepared.decompress(prepared.compress(block), block.length);
  const raw = bytesOf(blocks);
  const packed: ReturnType<Prepared['compress']>[] = [];
  const encodeMBs = speed(raw, () => {
    for (const block of blocks) packed.push(prepared.compress(block));
  });
  const back: Buffer[] = [];
  const decodeMBs = speed(raw, () => {
    for (const [i, one] of packed.entries()) back.push(prepared.decompress(one, (blocks[i] as Buffer).length));
  });
  for (const [i, block] of back.entries())
    if (!block.equals(blocks[i] as Buffer)) throw new Error(`${method.name}: block ${i} is not what it was`);
  const sharedPart = prepared.sharedBytes * (raw / bytesOf(all));
  const stored = (from: number): number =>
    chosen.reduce((sum, { number }, i) => (number >= from ? sum + (packed[i]?.bytes.length ?? 0) : sum), 0);
  const unseen = bytesOf(chosen.filter(({ number }) => number >= prepared.sampled).map(({ block }) => block));
  prepared.close();
  return {
    ratio: raw / (stored(0) + sharedPart),
    unseenRatio:
      unseen > 0 && prepared.sharedBytes > 0
        ? unseen / (stored(prepared.sampled) + sharedPart * (unseen / raw))
        : undefined,
    encodeMBs,
    decodeMBs,
  };
}
