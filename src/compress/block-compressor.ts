/**
 * The compressor of one file's blocks: an encoder, with what all kinds share: the frame, and the decision to store a
 * block uncompressed. Two kinds replace their encoder once they have samples.
 */
import { assert } from '../base/index.ts';
import type { Codecs } from '../env/index.ts';
import { Attempts } from './attempts.ts';
import { BlockCodec, type BlockCompressor, type Compression } from './block-compression.ts';
import { frameBlock } from './block-frame.ts';
import { chooseSegments } from './segments.ts';
import { encodeShared } from './shared-bytes.ts';
import { TwoPassEncoder } from './two-pass.ts';

const DEFAULT_ZSTD_LEVEL = 3;
const MAX_ZSTD_LEVEL = 19;
/** The compressed form is kept only if it is at most this share of the raw size. */
const MAX_COMPRESSED_SHARE = 7 / 8;
/** A larger block is stored uncompressed: encoders hold several times a block in memory. */
const MAX_BLOCK_BYTES = 128 * 1024 * 1024;

/**
 * Bytes of samples before the first block is compressed. More hardly improves the dictionary; the reference gains by
 * them.
 */
const DICTIONARY_SAMPLE_BYTES = 4 * 1024 * 1024;
const REFERENCE_SAMPLE_BYTES = 8 * 1024 * 1024;
/** zstd prepares its dictionary for every block, so a large one costs more time than it saves bytes. */
const MAX_DICTIONARY_BYTES = 112 * 1024;
const MAX_REFERENCE_BYTES = 1024 * 1024;
/** Part of a small file's samples: shared bytes are stored, too. */
const DICTIONARY_PART = 1 / 16;
const REFERENCE_PART = 1 / 8;
const SEGMENT_BYTES = 512;
/** zstd refuses shorter dictionaries. */
const MIN_SHARED_BYTES = 8;
/** Fingerprints of the reference are computed by words. */
const WORD_BYTES = 4;
/** zstd reads a dictionary that begins with this as one of its own format. */
const ZSTD_DICTIONARY_MAGIC = 0xec30_a437;

interface Encoder {
  readonly codec: BlockCodec;
  encode(block: Uint8Array): Uint8Array;
  close(): void;
}

/** How a kind derives shared bytes from samples, and the encoder that uses them. */
interface Preparation {
  readonly sampleBytes: number;
  prepare(samples: readonly Uint8Array[]): { readonly shared: Buffer; readonly encoder: Encoder } | undefined;
}

const NO_PREPARATION: Preparation = { sampleBytes: 0, prepare: () => undefined };

class FileCompressor implements BlockCompressor {
  readonly sampleBytes: number;
  readonly #preparation: Preparation;
  readonly #attempts: Attempts;
  #encoder: Encoder;

  /** `encoder` is used until there are samples, and if nothing comes of them. */
  constructor(encoder: Encoder, isDoubtful: boolean, preparation = NO_PREPARATION) {
    this.#attempts = new Attempts(isDoubtful);
    this.#encoder = encoder;
    this.#preparation = preparation;
    this.sampleBytes = preparation.sampleBytes;
  }

  prepare(samples: readonly Uint8Array[]): Buffer | undefined {
    const prepared = this.#preparation.prepare(samples);
    if (!prepared) return undefined;
    this.#encoder.close();
    this.#encoder = prepared.encoder;
    return prepared.shared;
  }

  compress(block: Uint8Array): { readonly codec: BlockCodec; readonly bytes: Buffer } | undefined {
    if (block.length === 0 || block.length > MAX_BLOCK_BYTES || !this.#attempts.shouldTry()) return undefined;
    const bytes = frameBlock(block.length, this.#encoder.encode(block));
    const shrank = bytes.length <= block.length * MAX_COMPRESSED_SHARE;
    this.#attempts.record(shrank);
    return shrank ? { codec: this.#encoder.codec, bytes } : undefined;
  }

  close(): void {
    this.#encoder.close();
  }
}

/** Stores every block uncompressed. */
const noCompressor: BlockCompressor = {
  sampleBytes: 0,
  prepare: () => undefined,
  compress: () => undefined,
  close() {},
};

const noResources = (): void => {};

const totalBytes = (samples: readonly Uint8Array[]): number => samples.reduce((sum, { length }) => sum + length, 0);

function dictionaryOf(samples: readonly Uint8Array[]): Buffer {
  const budgetBytes = Math.min(MAX_DICTIONARY_BYTES, Math.floor(totalBytes(samples) * DICTIONARY_PART));
  const content = chooseSegments(samples, { budgetBytes, segmentBytes: SEGMENT_BYTES });
  return content.length >= 4 && content.readUInt32LE() === ZSTD_DICTIONARY_MAGIC ? content.subarray(1) : content;
}

function withDictionary({ zstd }: Codecs, level: number): Preparation {
  return {
    sampleBytes: DICTIONARY_SAMPLE_BYTES,
    prepare(samples) {
      const content = dictionaryOf(samples);
      if (content.length < MIN_SHARED_BYTES) return undefined;
      const dictionary = zstd.dictionary(content);
      const encoder: Encoder = {
        codec: BlockCodec.zstdDict,
        encode: (block) => zstd.compress(block, level, dictionary),
        close: () => dictionary.close(),
      };
      return { shared: encodeShared(content, zstd), encoder };
    },
  };
}

const twoPasses = ({ lz4 }: Codecs, reference: Buffer): Encoder => {
  const encoder = new TwoPassEncoder(lz4, reference);
  return { codec: BlockCodec.twoPass, encode: (block) => encoder.encode(block), close: noResources };
};

function withReference(codecs: Codecs): Preparation {
  return {
    sampleBytes: REFERENCE_SAMPLE_BYTES,
    prepare(samples) {
      const budgetBytes = Math.min(MAX_REFERENCE_BYTES, Math.floor(totalBytes(samples) * REFERENCE_PART));
      const content = chooseSegments(samples, { budgetBytes, segmentBytes: SEGMENT_BYTES });
      const reference = content.subarray(0, content.length - (content.length % WORD_BYTES));
      if (reference.length < MIN_SHARED_BYTES) return undefined;
      return { shared: encodeShared(reference, codecs.zstd), encoder: twoPasses(codecs, reference) };
    },
  };
}

/**
 * The compressor of one new file. `level` must be 1 to 19. `isDoubtful`: files of the same contents did not shrink, so
 * fewer blocks are tried.
 */
export function blockCompressor(
  { kind, level = DEFAULT_ZSTD_LEVEL }: Compression,
  codecs: Codecs,
  isDoubtful = false,
): BlockCompressor {
  assert(
    Number.isInteger(level) && level >= 1 && level <= MAX_ZSTD_LEVEL,
    `a zstd level is 1 to ${MAX_ZSTD_LEVEL}, not ${level}`,
  );
  const { lz4, zstd } = codecs;
  const plainZstd: Encoder = {
    codec: BlockCodec.zstd,
    encode: (block) => zstd.compress(block, level),
    close: noResources,
  };
  switch (kind) {
    case 'none':
      return noCompressor;
    case 'lz4':
      return new FileCompressor(
        { codec: BlockCodec.lz4, encode: (block) => lz4.compress(block), close: noResources },
        isDoubtful,
      );
    case 'zstd':
      return new FileCompressor(plainZstd, isDoubtful);
    case 'zstd-dict':
      return new FileCompressor(plainZstd, isDoubtful, withDictionary(codecs, level));
    case 'two-pass':
      return new FileCompressor(twoPasses(codecs, Buffer.alloc(0)), isDoubtful, withReference(codecs));
  }
}
