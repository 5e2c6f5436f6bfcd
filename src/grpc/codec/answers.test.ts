import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { BigtableError, Code, invalidArgument, toBytes } from '../../base/index.ts';
import { type Cell, columnKey } from '../../model/index.ts';
import { anyInt64, byteString, familyName, rowKey, rowMessage, value } from '../convert/fixtures.ts';
import {
  CheckAndMutateRowResponseSchema,
  MutateRowsResponseSchema,
  ReadModifyWriteRowResponseSchema,
  ReadRowsResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { StatusSchema } from '../generated/google/rpc/status_pb.ts';
import { statusBytes } from '../rpc/status.ts';
import { checkAndMutateAnswer, mutateRowsAnswer, rowAnswer, scannedAnswer } from './answers.ts';

describe('the answers of writes are what the generated codec makes of the same', () => {
  const outcome = fc.option(
    fc.constantFrom(new BigtableError(Code.UNAVAILABLE, 'später'), invalidArgument('bad', { field: 'x' })),
    { nil: undefined },
  );

  test('MutateRows, any part of it', () => {
    fc.assert(
      fc.property(fc.array(outcome, { maxLength: 300 }), fc.nat(300), fc.nat(300), (outcomes, a, b) => {
        const [from, to] = [Math.min(a, b, outcomes.length), Math.min(Math.max(a, b), outcomes.length)];
        const entries = outcomes.slice(from, to).map((error, i) => ({
          index: BigInt(from + i),
          status: error ? fromBinary(StatusSchema, statusBytes(error)) : { code: 0 },
        }));
        const expected = toBinary(MutateRowsResponseSchema, create(MutateRowsResponseSchema, { entries }));
        assert.deepEqual(mutateRowsAnswer(outcomes, from, to), Buffer.from(expected));
      }),
    );
  });

  test('CheckAndMutateRow', () => {
    for (const predicateMatched of [true, false]) {
      const expected = toBinary(
        CheckAndMutateRowResponseSchema,
        create(CheckAndMutateRowResponseSchema, { predicateMatched }),
      );
      assert.deepEqual(checkAndMutateAnswer(predicateMatched), Buffer.from(expected));
    }
  });

  test('ReadRows that reports how far it came', () => {
    fc.assert(
      fc.property(rowKey, (row) => {
        assert.deepEqual(
          scannedAnswer(row),
          Buffer.from(
            toBinary(ReadRowsResponseSchema, create(ReadRowsResponseSchema, { lastScannedRowKey: toBytes(row) })),
          ),
        );
      }),
    );
  });

  const written = fc.uniqueArray(
    fc.record({
      family: familyName,
      qualifier: byteString,
      timestamp: anyInt64,
      value: fc.oneof(
        value,
        fc.integer({ min: 65_535, max: 65_537 }).map((length) => Buffer.alloc(length, 'v')),
      ),
    }),
    { selector: ({ family, qualifier }) => columnKey(family, qualifier), maxLength: 4 },
  );
  const order = (a: Cell, b: Cell): number =>
    columnKey(a.family, a.qualifier) < columnKey(b.family, b.qualifier) ? -1 : 1;

  test('ReadModifyWriteRow, of one cell and of several', () => {
    fc.assert(
      fc.property(rowKey, written, (row, cells) => {
        const expected = create(ReadModifyWriteRowResponseSchema, { row: rowMessage(row, cells) });
        assert.deepEqual(
          wholeOf(rowAnswer(row, [...cells].sort(order))),
          Buffer.from(toBinary(ReadModifyWriteRowResponseSchema, expected)),
        );
      }),
    );
  });

  test('a large value is a part of its answer, and not copied', () => {
    const value = Buffer.alloc(1024 * 1024, 'v');
    const cells = ['a', 'b'].map((qualifier): Cell => ({ family: 'f', qualifier, timestamp: 1000, value }));
    for (const given of [cells.slice(1), cells]) {
      const parts = rowAnswer('r', given);
      assert.ok(!(parts instanceof Uint8Array));
      assert.equal(parts.filter((part) => part === value).length, given.length);
      assert.ok(wholeOf(parts).length - given.length * value.length < 100);
    }
  });
});

function wholeOf(message: Buffer | readonly Buffer[]): Buffer {
  return message instanceof Uint8Array ? message : Buffer.concat(message);
}
