import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { BigtableError, Code, invalidArgument, toBytes } from '../../base/index.ts';
import { cell, rowKey } from '../convert/fixtures.ts';
import { rowMessage } from '../convert/row.ts';
import {
  CheckAndMutateRowResponseSchema,
  MutateRowsResponseSchema,
  ReadModifyWriteRowResponseSchema,
  ReadRowsResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { StatusSchema } from '../generated/google/rpc/status_pb.ts';
import { GENERATED_CODEC } from './generated-codec.ts';
import { statusBytes } from '../rpc/status.ts';
import { checkAndMutateAnswer, mutateRowsAnswer, oneCellAnswer, scannedAnswer } from './answers.ts';

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

  test('ReadModifyWriteRow, of one cell and of several', () => {
    fc.assert(
      fc.property(rowKey, fc.array(cell, { maxLength: 3 }), (row, cells) => {
        const expected = create(ReadModifyWriteRowResponseSchema, { row: rowMessage(row, cells) });
        assert.deepEqual(
          fromBinary(
            ReadModifyWriteRowResponseSchema,
            oneCellAnswer(row, cells) ?? GENERATED_CODEC.rowAnswer(row, cells),
          ),
          fromBinary(
            ReadModifyWriteRowResponseSchema,
            Buffer.from(toBinary(ReadModifyWriteRowResponseSchema, expected)),
          ),
        );
      }),
    );
  });
});
