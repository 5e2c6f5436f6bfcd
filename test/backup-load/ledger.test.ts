/** The judge of backups under load: it takes what a backup may be, and finds what it may not be. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { open, type Row, RowMutation } from '../../src/embedded/index.ts';
import { Ledger } from './ledger.ts';

const ROWS = 3;

async function rowsAfter(mutations: readonly RowMutation[]): Promise<Row[]> {
  await using database = await open(':memory:');
  const table = await database.createTable('t', { families: { a: {}, b: {} } });
  for (const mutation of mutations) await table.apply(mutation);
  return table.scan({ versions: 1 }).toArray();
}

describe('the judge of backups', () => {
  test('takes any write between the bounds of a row, and a row that may be absent', async () => {
    const ledger = new Ledger(ROWS);
    const writes = Array.from({ length: 9 }, () => ledger.begin(0));
    const bounds = (least: number, most: number) => ({
      least: Uint32Array.of(least, 0, 0),
      most: Uint32Array.of(most, 0, 0),
    });
    assert.deepEqual(ledger.judge(await rowsAfter(writes.slice(0, 5)), bounds(5, 5)), []);
    assert.deepEqual(ledger.judge(await rowsAfter(writes.slice(0, 5)), bounds(3, 9)), []);
    assert.deepEqual(ledger.judge([], bounds(0, 3)), [], 'none was acknowledged');
    assert.deepEqual(ledger.judge([], bounds(4, 9)), [], 'the ninth deletes');
    assert.deepEqual(ledger.judge(await rowsAfter(writes), bounds(9, 9)), []);
  });

  test('finds rows that are lost, too old, too new, torn or of no write', async () => {
    const ledger = new Ledger(ROWS);
    const [first, second] = [ledger.begin(1), ledger.begin(1)] as const;
    const [row] = await rowsAfter([first]);
    const bounds = { least: Uint32Array.of(0, 2, 0), most: Uint32Array.of(0, 2, 0) };
    const early = { least: Uint32Array.of(0, 0, 0), most: Uint32Array.of(0, 0, 0) };
    assert.match(ledger.judge([], bounds).join(), /row-000001: is lost; .* 2 to 2/);
    assert.match(ledger.judge([row!], bounds).join(), /shows write 1, and not 2, which was acknowledged before/);
    assert.match(ledger.judge([row!], early).join(), /shows write 1, which began after the backup/);
    const older = row!.get('b:three')!.value;
    const [newer] = await rowsAfter([first, second]);
    const [mixed] = await rowsAfter([second, new RowMutation('row-000001').set('b:three', older, 9000n)]);
    assert.match(ledger.judge([mixed!], bounds).join(), /is torn: it shows 2, 2, 1/);
    const [half] = await rowsAfter([second, new RowMutation('row-000001').delete('a:one')]);
    assert.match(ledger.judge([half!], bounds).join(), /is torn: it shows nothing, 2, 2/);
    const [other] = await rowsAfter([new RowMutation('other').set('a:one', '1')]);
    assert.match(ledger.judge([newer!, newer!], bounds).join(), /there twice/);
    assert.match(ledger.judge([other!], early).join(), /other is no row/);
    assert.deepEqual(ledger.judge([newer!], bounds), []);
  });
});
