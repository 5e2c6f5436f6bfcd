import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type GroupLayout, LIMITS } from '../model/index.ts';
import { checkGroupLayout } from './check-groups.ts';

describe('locality groups', () => {
  test('valid layouts pass', () => {
    checkGroupLayout({}, LIMITS.default);
    checkGroupLayout(
      {
        default: { compression: { kind: 'zstd', level: 19 }, blockSizeBytes: 1024 },
        meta: { families: ['a', 'b'], inMemory: true, bloomFilter: 'row-column' },
        pages: {
          families: ['c'],
          compression: { kind: 'two-pass' },
          blockSizeBytes: 16 << 20,
          bloomFilter: 'none',
          inMemory: false,
        },
      },
      LIMITS.default,
    );
  });

  const wrong: readonly [string, unknown, RegExp][] = [
    [
      'a family in two groups',
      { x: { families: ['a'] }, y: { families: ['a'] } },
      /"a" is put into two locality groups, x and y/,
    ],
    ['a group without families', { x: {} }, /"x" has no column family/],
    ['a name that is none', { 'x y': { families: ['a'] } }, /"x y" must be named by 1 to 64/],
    ['a family that is none', { x: { families: ['a b'] } }, /column family "a b"/],
    ['blocks too small', { default: { blockSizeBytes: 1023 } }, /from 1024 to 16777216, not 1023/],
    ['blocks of no size', { default: { blockSizeBytes: 'large' } }, /not large/],
    [
      'an unknown compression',
      { default: { compression: { kind: 'gzip' } } },
      /one of none, lz4, zstd, zstd-dict, two-pass, not gzip/,
    ],
    [
      'a compression that is a number',
      { default: { compression: 5 } },
      /compression must be an object \{ kind \}, or its kind as text, not number 5/,
    ],
    [
      'a misspelt level',
      { default: { compression: { kind: 'zstd', leevl: 9 } } },
      /unknown option "leevl" \(did you mean level\?\); there are kind, level/,
    ],
    ['a level too high', { default: { compression: { kind: 'zstd', level: 20 } } }, /from 1 to 19, not 20/],
    ['an unknown filter', { default: { bloomFilter: 'column' } }, /none, row, row-column, not column/],
    ['a flag that is none', { default: { inMemory: 1 } }, /true or false, not 1/],
    [
      'an unknown option',
      { default: { blockSize: 1 } },
      /unknown option "blockSize" \(did you mean blockSizeBytes\?\); there are families, blockSizeBytes/,
    ],
    [
      'too many',
      Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`g${i}`, { families: [`f${i}`] }])),
      /at most 32 locality groups, not 33/,
    ],
  ];
  for (const [what, layout, message] of wrong) {
    test(`${what} is refused`, () =>
      assert.throws(() => checkGroupLayout(layout as GroupLayout, LIMITS.default), {
        name: 'BigtableError',
        code: 3,
        message,
      }));
  }
});
