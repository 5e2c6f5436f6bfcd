import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { metadataKey, type MetadataRow } from '../metadata/index.ts';
import { GivenUp } from './given-up.ts';

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

describe('tablets that were given up', () => {
  test('are those whose row still shows the epoch', () => {
    const givenUp = new GivenUp();
    givenUp.add({ key, epoch: 3 });
    assert.deepEqual(
      [2, 3, 4].map((epoch) => givenUp.has(row(epoch))),
      [false, true, false],
    );
    givenUp.delete(key);
    assert.equal(givenUp.has(row(3)), false);
  });

  test('are forgotten when all rows were looked at and none bears them out', () => {
    const givenUp = new GivenUp();
    for (let i = 0; i < 100; i++)
      givenUp.add({ key: metadataKey(i.toString(16).padStart(8, '0'), undefined), epoch: 1 });
    givenUp.add({ key, epoch: 3 });
    givenUp.begin();
    assert.ok(givenUp.has(row(3)));
    // while the rows are looked at: its row may have been passed already
    const late = metadataKey('0000ffff', undefined);
    givenUp.add({ key: late, epoch: 1 });
    givenUp.end();
    assert.equal(givenUp.size, 2);
    assert.ok(givenUp.has(row(3)));
    givenUp.begin();
    assert.equal(givenUp.has(row(4)), false);
    givenUp.end();
    assert.equal(givenUp.size, 0);
  });

  test('a look that was broken off forgets nothing', () => {
    const givenUp = new GivenUp();
    givenUp.add({ key, epoch: 3 });
    givenUp.begin();
    givenUp.begin();
    assert.ok(givenUp.has(row(3)));
    givenUp.end();
    assert.equal(givenUp.size, 1);
  });

  test('a look that ends without having begun is a bug: it would forget what nobody has looked for', () => {
    const givenUp = new GivenUp();
    assert.throws(() => givenUp.end(), /has not begun/);
    givenUp.begin();
    givenUp.end();
    assert.throws(() => givenUp.end(), /has not begun/);
  });
});
