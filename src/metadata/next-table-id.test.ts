import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CorruptionError } from '../base/index.ts';
import { decodeNextTableId, encodeNextTableId, FIRST_TABLE_ID, LAST_TABLE_ID } from './next-table-id.ts';
import { encodeDocument } from './plain-json.ts';

test('the next table id is read back', () => {
  for (const next of [FIRST_TABLE_ID, 0x1234, LAST_TABLE_ID, LAST_TABLE_ID + 1])
    assert.equal(decodeNextTableId(encodeNextTableId(next)), next);
});

test("a number that is not the id of a user's table is corruption", () => {
  for (const next of [0, 1, FIRST_TABLE_ID - 1, LAST_TABLE_ID + 2, -1, 16.5, '17'])
    assert.throws(() => decodeNextTableId(encodeDocument({ next })), CorruptionError, `${next}`);
});
