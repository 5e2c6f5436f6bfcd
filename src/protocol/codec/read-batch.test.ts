import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code, type Int64 } from '../../base/index.ts';
import type { Cell, ReadBatch } from '../../model/index.ts';
import {
  byteString,
  bytes,
  count,
  flag,
  integer,
  list,
  listOf,
  message,
  optional,
  required,
  text,
} from '../../protobuf/index.ts';
import { readBatch } from './read-batch.ts';

interface PlainCell {
  readonly column: number;
  readonly timestamp: Int64;
  readonly value: Uint8Array;
  readonly labels?: readonly string[];
}

interface PlainBatch {
  readonly columns: readonly { readonly family: string; readonly qualifier: string }[];
  readonly fragments: readonly { readonly row: string; readonly last: boolean; readonly cells: readonly PlainCell[] }[];
  readonly scannedTo?: string;
}

const CELL = message<PlainCell>('BatchCell', {
  column: required(1, count),
  timestamp: required(2, integer),
  value: required(3, bytes),
  labels: optional(4, listOf('Labels', text)),
});
/** The same message, all of fields. */
const BY_FIELDS = message<PlainBatch>('ReadBatch', {
  columns: list(
    1,
    message<PlainBatch['columns'][number]>('BatchColumn', {
      family: required(1, text),
      qualifier: required(2, byteString),
    }),
  ),
  fragments: list(
    2,
    message<PlainBatch['fragments'][number]>('BatchFragment', {
      row: required(1, byteString),
      last: required(2, flag),
      cells: list(3, CELL),
    }),
  ),
  scannedTo: optional(3, byteString),
});

function plain({ fragments, ...rest }: ReadBatch): PlainBatch {
  const columns: PlainBatch['columns'][number][] = [];
  const numberOf = ({ family, qualifier }: Cell): number => {
    const known = columns.findIndex((column) => column.family === family && column.qualifier === qualifier);
    return known >= 0 ? known : columns.push({ family, qualifier }) - 1;
  };
  const numbered = fragments.map(({ row, last, cells }) => ({
    row,
    last,
    cells: cells.map((cell) => {
      const { family: _family, qualifier: _qualifier, ...more } = cell;
      return { column: numberOf(cell), ...more };
    }),
  }));
  return { columns, fragments: numbered, ...rest };
}

const byteText = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 40 });
const cell: fc.Arbitrary<Cell> = fc
  .record({
    family: fc.constantFrom('f', 'g', 'family', 'é'.repeat(20)),
    qualifier: fc.oneof(fc.constantFrom('', 'q'), byteText),
    timestamp: fc.oneof(
      fc.maxSafeInteger(),
      fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }),
      fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
    ),
    value: fc.tuple(fc.oneof(fc.nat(5), fc.constantFrom(127, 128, 16_383, 16_384, 40_000)), fc.nat(255)),
    labels: fc.option(fc.array(fc.constantFrom('a', 'label'), { maxLength: 3 }), { nil: undefined, freq: 5 }),
  })
  .map(({ value: [length, fill], labels, ...more }) => ({
    ...more,
    value: Buffer.alloc(length, fill),
    ...(labels !== undefined && { labels }),
  }));
const fragment = fc
  .tuple(byteText, fc.boolean(), fc.array(cell, { maxLength: 5 }))
  .map(([row, last, cells]) => ({ row, last, cells }));
const batch: fc.Arbitrary<ReadBatch> = fc
  .record({ fragments: fc.array(fragment, { maxLength: 6 }), scannedTo: fc.option(byteText, { nil: undefined }) })
  .map(({ fragments, scannedTo }) => (scannedTo === undefined ? { fragments } : { fragments, scannedTo }));

describe('batches of reads written and read by hand', () => {
  test('are the bytes that fields make of them, in one part and in several', () => {
    fc.assert(
      fc.property(batch, (value) => {
        const expected = BY_FIELDS.encode(plain(value));
        assert.ok(readBatch.encode(value).equals(expected));
        const parts = readBatch.encodeParts(value);
        assert.ok(Buffer.concat(Buffer.isBuffer(parts) ? [parts] : parts).equals(expected));
        assert.deepStrictEqual(readBatch.decode(expected), value);
      }),
    );
  });

  test('are read with their fields in any order', () => {
    const value: ReadBatch = {
      fragments: [
        { row: 'r', last: true, cells: [{ family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.of(1) }] },
      ],
    };
    const { columns, fragments } = plain(value);
    const reordered = [BY_FIELDS.encode({ columns: [], fragments }), BY_FIELDS.encode({ columns, fragments: [] })];
    assert.deepStrictEqual(readBatch.decode(Buffer.concat(reordered)), value);
  });

  test('lack none of their fields, and no column', () => {
    const whole = {
      columns: [{ family: 'f', qualifier: 'q' }],
      fragments: [{ row: 'r', last: true, cells: [{ column: 0, timestamp: 1, value: Buffer.of(1) }] }],
    };
    const refuses = (value: PlainBatch, problem: string): void =>
      assert.throws(() => readBatch.decode(BY_FIELDS.encode(value)), {
        code: Code.INVALID_ARGUMENT,
        message: problem,
      });
    refuses({ ...whole, columns: [] }, 'invalid batch of a read: it has no column 0');
    const loose = message<{ readonly fragments: readonly Uint8Array[] }>('Loose', { fragments: list(2, bytes) });
    const lacks = (part: Buffer, problem: string): void =>
      assert.throws(() => readBatch.decode(loose.encode({ fragments: [part] })), {
        code: Code.INVALID_ARGUMENT,
        message: `invalid protobuf message: ${problem}`,
      });
    lacks(Buffer.alloc(0), 'BatchFragment lacks its field row');
    // a row, and a cell without anything
    lacks(Buffer.of(1 * 8 + 2, 0, 3 * 8 + 2, 0), 'BatchCell lacks its field column');
    lacks(Buffer.of(1 * 8 + 2, 0, 3 * 8 + 2, 2, 1 * 8, 0), 'BatchCell lacks its field timestamp');
    lacks(Buffer.of(1 * 8 + 2, 0, 3 * 8 + 2, 4, 1 * 8, 0, 2 * 8, 0), 'BatchCell lacks its field value');
    lacks(Buffer.of(1 * 8 + 2, 0), 'BatchFragment lacks its field last');
  });
});
