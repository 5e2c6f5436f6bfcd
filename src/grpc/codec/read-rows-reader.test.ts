import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { ManualClock, Pacer } from '../../env/index.ts';
import { normalizeRanges } from '../../model/index.ts';
import { filterMessage } from '../convert/filter.ts';
import { rowFilter, rowKey, rowRange } from '../convert/fixtures.ts';
import { rowKeyRangeOf } from '../convert/row-range.ts';
import { rowSetMessage } from '../convert/row-set.ts';
import {
  ReadRowsRequest_RequestStatsView as StatsView,
  ReadRowsRequestSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { RowFilterSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { RequestDecoder } from './request-decoder.ts';
import { ReadRowsReader } from './read-rows-reader.ts';

const decoder = new RequestDecoder(new ManualClock());
before(() => decoder.load());

async function read(init: MessageInitShape<typeof ReadRowsRequestSchema>) {
  const bytes = Buffer.from(toBinary(ReadRowsRequestSchema, create(ReadRowsRequestSchema, init)));
  return new ReadRowsReader(bytes, decoder, new Pacer(new ManualClock())).read();
}

describe('ReadRowsRequest', () => {
  test('every field that a client sets arrives', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            rowRange,
            rowKey.map((key) => rowKeyRangeOf(key, 0)),
          ),
          { maxLength: 5 },
        ),
        fc.option(rowFilter, { nil: undefined }),
        fc.nat(),
        fc.boolean(),
        fc.boolean(),
        async (ranges, filter, rowsLimit, reversed, fullStats) => {
          const call = await read({
            tableName: 't',
            authorizedViewName: 'av',
            materializedViewName: 'mv',
            appProfileId: 'app',
            rows: rowSetMessage(ranges),
            rowsLimit: BigInt(rowsLimit),
            reversed,
            ...(filter && { filter: filterMessage(filter) }),
            requestStatsView: fullStats ? StatsView.REQUEST_STATS_FULL : StatsView.REQUEST_STATS_NONE,
          });
          assert.deepEqual(normalizeRanges(call.request.ranges ?? []), normalizeRanges(ranges));
          assert.equal(call.request.ranges?.length, ranges.length);
          assert.deepEqual({ ...call.request, ranges: [] }, { table: 't', ranges: [], filter, rowsLimit, reversed });
          assert.deepEqual(
            { ...call, request: undefined },
            { request: undefined, authorizedView: 'av', materializedView: 'mv', appProfile: 'app', fullStats },
          );
        },
      ),
    );
  });

  test('an empty request reads all rows of no table', async () => {
    const call = await read({});
    assert.deepEqual(call.request, { table: '', ranges: [], filter: undefined, rowsLimit: 0, reversed: false });
    assert.equal(call.fullStats, false);
  });

  test('limits above the largest number count as the largest', async () => {
    assert.equal((await read({ rowsLimit: 2n ** 63n - 1n })).request.rowsLimit, Number.MAX_SAFE_INTEGER);
    await assert.rejects(read({ rowsLimit: -1n }), { code: 3, message: /-1/ });
    await assert.rejects(read({ rowsLimit: -(2n ** 63n) }), { code: 3 });
  });

  test('a filter of 20,480 bytes passes, a longer one does not', async () => {
    const regex = (length: number) => filterMessage({ kind: 'valueRegex', regex: 'x'.repeat(length) });
    assert.equal((await read({ filter: regex(20_476) })).request.filter?.kind, 'valueRegex');
    await assert.rejects(read({ filter: regex(20_477) }), { code: 3, message: /20481 bytes.*limit is 20480/ });
  });

  test('filters nested too deep are refused', async () => {
    let filter = filterMessage({ kind: 'passAll' });
    for (let depth = 0; depth < 200; depth++)
      filter = create(RowFilterSchema, { filter: { case: 'chain', value: { filters: [filter] } } });
    await assert.rejects(read({ filter }), { code: 3 });
  });

  test('row keys and ranges are checked', async () => {
    await assert.rejects(read({ rows: { rowKeys: [Buffer.from('a'), Buffer.alloc(0)] } }), {
      code: 3,
      message: /row key 1/,
    });
    const backwards = {
      startKey: { case: 'startKeyOpen', value: Buffer.from('b') },
      endKey: { case: 'endKeyOpen', value: Buffer.from('a') },
    } as const;
    await assert.rejects(read({ rows: { rowRanges: [backwards] } }), { code: 3, message: /row range 0/ });
  });

  test('a request cut off anywhere is refused or read, and never breaks', async () => {
    const message = create(ReadRowsRequestSchema, {
      tableName: 't',
      rows: rowSetMessage([
        { start: 'a', end: 'b' },
        { start: 'k', end: 'k\0' },
      ]),
      filter: filterMessage({ kind: 'passAll' }),
      rowsLimit: 300n,
    });
    const whole = Buffer.from(toBinary(ReadRowsRequestSchema, message));
    for (let length = 0; length < whole.length; length++) {
      try {
        await new ReadRowsReader(whole.subarray(0, length), decoder, new Pacer(new ManualClock())).read();
      } catch (error) {
        assert.equal((error as { readonly code: number }).code, 3);
      }
    }
  });
});
