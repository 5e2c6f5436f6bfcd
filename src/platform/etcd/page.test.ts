import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MAX_PAGE_BYTES, type SmallFile } from '../../env/index.ts';
import { cutPage, isFull, nextLimit } from './page.ts';

/** They share their memory. */
const CONTENTS = new Uint8Array(MAX_PAGE_BYTES);
const filesOf = (...sizes: number[]): SmallFile[] =>
  sizes.map((size, i) => ({ path: `${i}`, version: i + 1, contents: CONTENTS.subarray(0, size) }));

describe('pages of a list', () => {
  test('have at most 1 MiB, but one file at least', () => {
    assert.equal(cutPage(filesOf()).length, 0);
    assert.equal(cutPage(filesOf(MAX_PAGE_BYTES)).length, 1);
    assert.equal(cutPage(filesOf(0, MAX_PAGE_BYTES, 0, 1)).length, 3);
    assert.equal(cutPage(filesOf(600_000, 600_000)).length, 1);
    assert.equal(isFull(filesOf(0, 0)), false);
    assert.equal(isFull(filesOf(600_000, 600_000)), true);
  });

  test('are filled step by step, whatever the sizes', () => {
    const sizes = fc.array(fc.oneof(fc.nat(10), fc.nat(5000), fc.nat(MAX_PAGE_BYTES)), {
      maxLength: 3000,
      size: 'max',
    });
    fc.assert(
      fc.property(sizes, (all) => {
        const files = filesOf(...all);
        let read: SmallFile[] = [];
        while (!isFull(read) && read.length < files.length) {
          const limit = nextLimit(read);
          assert.ok(limit >= 16 && limit <= 128);
          read = files.slice(0, read.length + limit);
        }
        assert.equal(cutPage(read).length, cutPage(files).length);
      }),
      { numRuns: 50 },
    );
  });
});
