import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { Code } from '../../base/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { filterMessage } from '../convert/filter.ts';
import { rowFilter } from '../convert/fixtures.ts';
import { RowFilterSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { loadRareMessages } from './rare.ts';
import { filterFrom } from './filter-reader.ts';

before(loadRareMessages);

const bytesOf = (filter: RowFilter): Buffer => Buffer.from(toBinary(RowFilterSchema, filterMessage(filter)));

describe('filters of requests', () => {
  test('come out as they were sent, the first time and again', () => {
    fc.assert(
      fc.property(rowFilter, (filter) => {
        assert.deepEqual(filterFrom(bytesOf(filter)), filter);
        assert.deepEqual(filterFrom(bytesOf(filter)), filter);
      }),
    );
  });

  test('the same bytes give the same object, unless very many others came between', () => {
    const regex = (text: string): RowFilter => ({ kind: 'valueRegex', regex: text });
    const first = filterFrom(bytesOf(regex('a')));
    assert.equal(filterFrom(bytesOf(regex('a'))), first);
    assert.notDeepEqual(filterFrom(bytesOf(regex('b'))), first);
    for (let i = 0; i < 100; i++) filterFrom(bytesOf(regex(`${i}`)));
    assert.notEqual(filterFrom(bytesOf(regex('a'))), first);
    assert.deepEqual(filterFrom(bytesOf(regex('a'))), first);
  });

  test('no bytes are no filter; broken bytes and too many of them are refused', () => {
    assert.equal(filterFrom(Buffer.alloc(0)), undefined);
    assert.throws(() => filterFrom(Buffer.from([0x0a, 0x7f])), { code: Code.INVALID_ARGUMENT });
    assert.throws(() => filterFrom(bytesOf({ kind: 'valueRegex', regex: 'x'.repeat(20_480) })), {
      code: Code.INVALID_ARGUMENT,
    });
  });
});
