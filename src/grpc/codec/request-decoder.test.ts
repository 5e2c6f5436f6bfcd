import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { Code } from '../../base/index.ts';
import { ManualClock, Pacer } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { filterMessage } from '../convert/filter.ts';
import { rowFilter } from '../convert/fixtures.ts';
import {
  CheckAndMutateRowRequestSchema,
  MutateRowRequestSchema,
  MutateRowsRequestSchema,
  ReadModifyWriteRowRequestSchema,
  ReadRowsRequestSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { RowFilterSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { MutationReader } from './mutation-reader.ts';
import { ReadRowsReader } from './read-rows-reader.ts';
import { RequestDecoder } from './request-decoder.ts';

const decoder = new RequestDecoder(new ManualClock());
before(() => decoder.load());

const bytesOf = (filter: RowFilter): Buffer => Buffer.from(toBinary(RowFilterSchema, filterMessage(filter)));

describe('the generated codec', () => {
  const rowKey = Buffer.from('r');
  const deletion = { mutation: { case: 'deleteFromRow', value: {} } } as const;
  const cell = { familyName: 'f', columnQualifier: rowKey, timestampMicros: 1000n, value: rowKey };
  const setCell = { mutation: { case: 'setCell', value: cell } } as const;
  const mutations = [deletion, setCell, deletion];
  const bytesOfRequest = <Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Buffer =>
    Buffer.from(toBinary(schema, create(schema, init)));

  test('is loaded by the first request that needs it, whose reading continues where it stopped', async () => {
    const filter = { filter: { case: 'passAllFilter', value: true } } as const;
    const read = bytesOfRequest(ReadRowsRequestSchema, { filter, rowsLimit: 7n });
    const mutateRow = bytesOfRequest(MutateRowRequestSchema, { rowKey, mutations });
    const mutateRows = bytesOfRequest(MutateRowsRequestSchema, { entries: [{ rowKey, mutations }] });
    const check = bytesOfRequest(CheckAndMutateRowRequestSchema, {
      rowKey,
      predicateFilter: filter,
      trueMutations: mutations,
    });
    const rule = { familyName: 'f', columnQualifier: rowKey };
    const rules = bytesOfRequest(ReadModifyWriteRowRequestSchema, { rowKey, rules: [rule] });
    const readers = [
      async (by: RequestDecoder) => new ReadRowsReader(read, by, new Pacer(new ManualClock())).read(),
      async (by: RequestDecoder) => new MutationReader(mutateRow, by, new ManualClock()).mutateRow(),
      (by: RequestDecoder) => new MutationReader(mutateRows, by, new ManualClock()).mutateRows(),
      async (by: RequestDecoder) => new MutationReader(check, by, new ManualClock()).checkAndMutateRow(),
      async (by: RequestDecoder) => new MutationReader(rules, by, new ManualClock()).readModifyWriteRow(),
    ];
    for (const reader of readers) {
      const fresh = new RequestDecoder(new ManualClock());
      assert.equal(fresh.generated, undefined);
      const outcome = (by: RequestDecoder) => reader(by).catch((error: Error) => error.message);
      const first = await outcome(fresh);
      assert.equal(fresh.generated, decoder.generated);
      assert.deepEqual(first, await outcome(decoder));
    }
  });

  test('is not loaded for a request that does not need it', async () => {
    const fresh = new RequestDecoder(new ManualClock());
    const request = bytesOfRequest(MutateRowRequestSchema, { rowKey, mutations: [setCell] });
    assert.ok(!(new MutationReader(request, fresh, new ManualClock()).mutateRow() instanceof Promise));
    const read = bytesOfRequest(ReadRowsRequestSchema, { rowsLimit: 7n });
    assert.ok(!(new ReadRowsReader(read, fresh, new Pacer(new ManualClock())).read() instanceof Promise));
    assert.equal(fresh.generated, undefined);
  });
});

describe('filters of requests', () => {
  test('are decoded as they were sent, the first time and again', () => {
    fc.assert(
      fc.property(rowFilter, (filter) => {
        assert.deepEqual(decoder.filter(bytesOf(filter)), filter);
        assert.deepEqual(decoder.filter(bytesOf(filter)), filter);
      }),
    );
  });

  test('equal bytes decode to the same object, unless many others were decoded in between', () => {
    const regex = (text: string): RowFilter => ({ kind: 'valueRegex', regex: text });
    const first = decoder.filter(bytesOf(regex('a')));
    assert.equal(decoder.filter(bytesOf(regex('a'))), first);
    assert.notDeepEqual(decoder.filter(bytesOf(regex('b'))), first);
    for (let i = 0; i < 100; i++) decoder.filter(bytesOf(regex(`${i}`)));
    assert.notEqual(decoder.filter(bytesOf(regex('a'))), first);
    assert.deepEqual(decoder.filter(bytesOf(regex('a'))), first);
  });

  test('no bytes are no filter; broken bytes and too many of them are refused', () => {
    assert.equal(decoder.filter(Buffer.alloc(0)), undefined);
    assert.throws(() => decoder.filter(Buffer.from([0x0a, 0x7f])), { code: Code.INVALID_ARGUMENT });
    assert.throws(() => decoder.filter(bytesOf({ kind: 'valueRegex', regex: 'x'.repeat(20_480) })), {
      code: Code.INVALID_ARGUMENT,
    });
  });
});
