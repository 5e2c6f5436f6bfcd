/** Blocks of many kinds, for the tests of this room. */
import fc from 'fast-check';
import type { CompressionKind } from './block-compression.ts';

export const KINDS: readonly CompressionKind[] = ['none', 'lz4', 'zstd', 'zstd-dict', 'two-pass'];

const WORDS = [
  'table',
  'tablet',
  'memtable',
  'SSTable',
  'row',
  'column family',
  'locality group',
  'compaction',
  '<td class="cell">',
  '</td>\n',
  ' ',
  ', ',
  '. ',
];

const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 2000 }).map((words) => Buffer.from(words.join('')));
const random = fc.uint8Array({ maxLength: 5000 }).map((bytes) => Buffer.from(bytes));
const repetitive = fc
  .tuple(fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.nat(20_000))
  .map(([piece, length]) => Buffer.alloc(length, piece));

/** Random, text-like and repetitive blocks, and such blocks one behind the other. */
export const anyBlock: fc.Arbitrary<Buffer> = fc
  .array(fc.oneof(text, random, repetitive), { maxLength: 4 })
  .map((parts) => Buffer.concat(parts));

/**
 * A page of a site: `page` and `version` decide its text, the frame is the same for all of a site. Always the same
 * bytes.
 */
export function samplePage(page: number, version = 0): Buffer {
  const lines = [
    `<!DOCTYPE html><html><head><title>Page ${page} of the manual</title><link rel="stylesheet" href="/static/style.css"></head><body class="manual">`,
  ];
  for (let i = 0; i < 60; i++) {
    const number = (page * 7919 + i * 104_729) % 9973;
    lines.push(
      `<p id="p${number}">Paragraph ${number} says that ${WORDS[number % 8]} and ${WORDS[(number >> 3) % 8]} are of ${number * (version + 1)} bytes.</p>`,
    );
    lines.push(
      '<div class="navigation"><a href="/index.html">Index</a> <a href="/contents.html">Table of contents</a> <a href="/search.html">Search</a></div>',
    );
  }
  lines.push(
    '<footer>Written by the people who wrote the program, and kept beside it. Corrections are welcome at the usual address.</footer></body></html>',
  );
  return Buffer.from(lines.join('\n'));
}

/** Four pages a block. */
export const sampleBlock = (number: number, version = 0): Buffer =>
  Buffer.concat([0, 1, 2, 3].map((page) => samplePage(number * 4 + page, version)));

/** Bytes that no codec makes smaller; always the same. */
export function noise(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    // xorshift32
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state >>> 11;
  }
  return bytes;
}
