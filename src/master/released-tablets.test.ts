import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { metadataKey, type MetadataRow } from '../metadata/index.ts';
import { ReleasedTablets } from './released-tablets.ts';

const key = metadataKey('00000010', undefined);

function row(epoch: number): MetadataRow {
  return {
    tableId: '00000010',
    range: { start: '', end: undefined },
    server: undefined,
    epoch,
    version: 1,
    commitId: '',
    files: {},
    redo: { epoch: 0, sequence: 0 },
    logs: [],
  };
}

describe('released tablets', () => {
  test('are those whose row still shows the epoch', () => {
    const released = new ReleasedTablets();
    released.add({ key, epoch: 3 });
    assert.deepEqual(
      [2, 3, 4].map((epoch) => released.has(row(epoch))),
      [false, true, false],
    );
    released.delete(key);
    assert.equal(released.has(row(3)), false);
  });

  test('are dropped when all rows were read and none confirms them', () => {
    const released = new ReleasedTablets();
    for (let i = 0; i < 100; i++)
      released.add({ key: metadataKey(i.toString(16).padStart(8, '0'), undefined), epoch: 1 });
    released.add({ key, epoch: 3 });
    released.begin();
    assert.ok(released.has(row(3)));
    // while the rows are read: its row may have been passed already
    const late = metadataKey('0000ffff', undefined);
    released.add({ key: late, epoch: 1 });
    released.end();
    assert.equal(released.size, 2);
    assert.ok(released.has(row(3)));
    released.begin();
    assert.equal(released.has(row(4)), false);
    released.end();
    assert.equal(released.size, 0);
  });

  test('a scan that was cut short drops nothing', () => {
    const released = new ReleasedTablets();
    released.add({ key, epoch: 3 });
    released.begin();
    released.begin();
    assert.ok(released.has(row(3)));
    released.end();
    assert.equal(released.size, 1);
  });

  test('a scan that ends without having begun is a bug: it would drop entries that it has not checked', () => {
    const released = new ReleasedTablets();
    assert.throws(() => released.end(), /a walk over all rows ends when it has begun/);
    released.begin();
    released.end();
    assert.throws(() => released.end(), /a walk over all rows ends when it has begun/);
  });
});
