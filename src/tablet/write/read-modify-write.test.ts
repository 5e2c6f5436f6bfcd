import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { clockOfShortSlices } from '../../../test/simulated-time.ts';
import { Code, int64, int64Bytes, readInt64BE, asBuffer, type Int64 } from '../../base/index.ts';
import { type Cell, columnKey, type ReadModifyWriteRule } from '../../model/index.ts';
import { CellChanges, type ReadModifyWriteResult } from './read-modify-write.ts';

const MIB = 1024 * 1024;

const increment = (qualifier: string, amount: Int64): ReadModifyWriteRule => ({
  family: 'f',
  qualifier,
  change: { kind: 'increment', amount },
});
const append = (qualifier: string, text: string): ReadModifyWriteRule => ({
  family: 'f',
  qualifier,
  change: { kind: 'append', suffix: Buffer.from(text) },
});
const cell = (qualifier: string, value: Uint8Array, timestamp: Int64 = 5): Cell => ({
  family: 'f',
  qualifier,
  timestamp,
  value,
});
const newest = (...cells: Cell[]): Map<string, Cell> =>
  new Map(cells.map((one) => [columnKey(one.family, one.qualifier), one]));
const number = (bytes: Uint8Array | undefined): Int64 => readInt64BE(asBuffer(bytes as Uint8Array), 0);

function readModifyWrite(
  rules: readonly ReadModifyWriteRule[],
  cells: Map<string, Cell>,
  now: Int64,
  valueBytes = 1000,
): ReadModifyWriteResult {
  return new CellChanges(rules, cells, now, valueBytes).result();
}

describe('read-modify-write', () => {
  test('an absent cell counts as 0 and as nothing', () => {
    const { cells } = readModifyWrite([increment('n', 3), append('s', 'ab')], newest(), 100);
    assert.equal(number(cells[0]?.value), 3);
    assert.equal(Buffer.from(cells[1]?.value as Uint8Array).toString(), 'ab');
  });

  test('rules see the results of those before them, and return one cell a column', () => {
    const { cells, mutations } = readModifyWrite(
      [increment('n', 3), append('s', 'a'), increment('n', 4), append('s', 'b')],
      newest(cell('n', int64Bytes(10))),
      100,
    );
    assert.deepEqual(
      cells.map((one) => one.qualifier),
      ['n', 's'],
    );
    assert.equal(number(cells[0]?.value), 17);
    assert.equal(mutations.length, 2);
  });

  test('the new timestamp is the later of now and the old one', () => {
    assert.equal(
      readModifyWrite([increment('n', 1)], newest(cell('n', int64Bytes(1), 5)), 100).cells[0]?.timestamp,
      100,
    );
    assert.equal(
      readModifyWrite([increment('n', 1)], newest(cell('n', int64Bytes(1), 500)), 100).cells[0]?.timestamp,
      500,
    );
    assert.equal(
      readModifyWrite([increment('n', 1)], newest(cell('n', int64Bytes(1), 2n ** 60n)), 100).cells[0]?.timestamp,
      2n ** 60n,
    );
  });

  test('only 8 bytes can be incremented', () => {
    for (const bytes of [0, 1, 7, 9]) {
      const refused = { code: Code.FAILED_PRECONDITION, message: new RegExp(`f:"n".*${bytes} bytes`) };
      assert.throws(
        () => readModifyWrite([append('s', 'a'), increment('n', 1)], newest(cell('n', Buffer.alloc(bytes, 1))), 1),
        refused,
      );
    }
    assert.throws(
      () => readModifyWrite([append('n', ''), increment('n', 1)], newest(), 1),
      { code: Code.FAILED_PRECONDITION },
      'a value that an append left empty exists',
    );
  });

  test('increments add as 64-bit integers do', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        (a, b) => {
          const { cells } = readModifyWrite([increment('n', int64(b))], newest(cell('n', int64Bytes(int64(a)))), 1);
          assert.equal(number(cells[0]?.value), int64(BigInt.asIntN(64, a + b)));
        },
      ),
    );
  });

  test('appending costs the bytes appended, not the value each time', () => {
    const value = Buffer.alloc(512 * 1024, 'v');
    const rules = Array.from({ length: 100_000 }, () => append('s', 'x'));
    const concat = Buffer.concat;
    let copied = 0;
    Buffer.concat = (pieces, length) => {
      const all = concat(pieces as Uint8Array[], length);
      copied += all.length;
      return all;
    };
    try {
      const { cells } = readModifyWrite(rules, newest(cell('s', value)), 1, 10 * 1024 * 1024);
      assert.equal(cells[0]?.value.length, value.length + 100_000);
      assert.equal(copied, value.length + 100_000, 'bytes copied');
    } finally {
      Buffer.concat = concat;
    }
  });

  test('a large value is copied with pauses', async () => {
    const value = Buffer.alloc(10 * MIB, 'v');
    const sliced = clockOfShortSlices();
    const changes = new CellChanges([append('s', 'x'), append('t', 'x')], newest(cell('s', value)), 1, 100 * MIB);
    assert.ok(changes.bytes > value.length);
    await changes.joinLarge(sliced.clock);
    assert.ok(sliced.pauses >= 10, `${sliced.pauses} pauses`);
    const { cells } = changes.result();
    assert.ok(Buffer.concat([value, Buffer.from('x')]).equals(cells[0]!.value));
    assert.equal(cells[1]!.value.length, 1);
    const small = new CellChanges([append('s', 'x')], newest(cell('s', Buffer.from('y'))), 1, 100);
    assert.equal(small.joinLarge(sliced.clock), undefined);
  });

  test('a value does not grow beyond the limit', () => {
    assert.equal(
      readModifyWrite([append('s', 'ab')], newest(cell('s', Buffer.from('c'))), 1, 3).cells[0]?.value.length,
      3,
    );
    assert.throws(() => readModifyWrite([append('s', 'ab')], newest(cell('s', Buffer.from('cd'))), 1, 3), {
      code: Code.FAILED_PRECONDITION,
      message: /f:"s" would hold 4 bytes: the limit of a value is 3/,
    });
  });
});
