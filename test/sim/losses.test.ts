/** What the judges of a run know after buffered changes may have been lost. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KnownTable } from '../../sim/world/known-table.ts';
import { EMPTY_ROW, RowStep } from '../linearizability/row.ts';
import { History } from '../linearizability/history.ts';

describe('after a loss', () => {
  test('rows of before may be there or not, deleted or not, but have the values that were written', () => {
    const table = new KnownTable('t');
    for (const row of ['a', 'b', 'c', 'd']) table.begin(row, `value of ${row}`);
    for (const row of ['a', 'b']) table.wrote(row);
    table.deleted(table.beginDeletion((row) => row === 'b'));
    const later = table.beginDeletion((row) => row === 'a');
    table.lose();
    // the answers were on their way
    table.wrote('c');
    table.deleted(later);
    const judge = (...found: [string, string][]): string | undefined => table.judge(new Map(found), () => true);
    assert.equal(judge(), undefined);
    assert.equal(judge(['a', 'value of a'], ['b', 'value of b'], ['c', 'value of c']), undefined);
    assert.match(judge(['b', 'value of a'])!, /row b of table t is read as value of a, and was written as value of b/);
  });

  test('rows that are written later must be there', () => {
    const table = new KnownTable('t');
    table.lose();
    table.begin('a', '1');
    table.wrote('a');
    assert.match(table.judge(new Map(), () => true)!, /row a of table t was written as 1 and acknowledged/);
  });

  test('a history is judged by what was answered before it', () => {
    const history = new History(EMPTY_ROW);
    const begin = (): ReturnType<History['begin']> => history.begin(new RowStep({ kind: 'read' }));
    const under = begin();
    begin().answered(EMPTY_ROW);
    history.end();
    under.answered('lost;;;');
    begin().answered('lost;;;');
    assert.equal(history.check(), undefined);
    const other = new History(EMPTY_ROW);
    other.begin(new RowStep({ kind: 'read' })).answered('wrong;;;');
    other.end();
    assert.notEqual(other.check(), undefined);
  });
});
