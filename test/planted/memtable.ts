import { EntryTreeEdit } from '../../src/memtable/entry-tree.ts';
import { insertAt } from '../../src/memtable/insert-at.ts';
import { cellEntry } from '../../src/memtable/mem-entry.ts';
import { Memtable } from '../../src/memtable/memtable.ts';
import { ValueArena, valueAt } from '../../src/memtable/value-arena.ts';
import { EntryKind, type Mutation } from '../../src/model/index.ts';
import type { Fault } from './fault.ts';

const noAggregate = (): undefined => undefined;
const VALUE = Buffer.from('value');
const SET: readonly Mutation[] = [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: VALUE }];

function arenaWithValue(): ValueArena {
  const arena = new ValueArena();
  arena.add(VALUE);
  return arena;
}

export const MEMTABLE_FAULTS: readonly Fault[] = [
  {
    fault: 'a frozen memtable is written to',
    message: /frozen/,
    run: (planted) => {
      const memtable = new Memtable();
      if (planted) memtable.freeze();
      memtable.apply('row', SET, noAggregate);
    },
  },
  {
    fault: 'a row changes while a change of it is under way',
    message: /not changed by others/,
    run: (planted) => {
      const memtable = new Memtable();
      const change = memtable.edit('row', noAggregate);
      change.add(SET);
      memtable.apply(planted ? 'row' : 'other', SET, noAggregate);
      change.commit();
    },
  },
  {
    fault: 'a cell has no timestamp',
    message: /final timestamps/,
    run: (planted) =>
      new Memtable().apply(
        'row',
        [{ kind: 'setCell', family: 'f', qualifier: 'q', value: VALUE, ...(!planted && { timestamp: 1 }) }],
        noAggregate,
      ),
  },
  {
    fault: 'a cursor is read that stands on no entry',
    message: /stands on an entry/,
    run: (planted) => {
      const memtable = new Memtable();
      memtable.apply('row', SET, noAggregate);
      const cursor = memtable.cursor();
      cursor.seekRow(planted ? 'row\0' : 'row');
      return cursor.column;
    },
  },
  {
    fault: 'a value is released twice',
    message: /below 0/,
    run: (planted) => {
      const arena = arenaWithValue();
      const { slab } = arena;
      arena.release(slab, VALUE.length);
      if (planted) arena.release(slab, VALUE.length);
    },
  },
  {
    fault: 'a value is read after its slab was given to another memtable',
    message: /before its memtable is recycled/,
    run: (planted) => {
      const { slab, offset } = arenaWithValue();
      slab.isRecycled = planted;
      valueAt(slab, offset, VALUE.length);
    },
  },
  {
    fault: 'a change of a row ends twice',
    message: /ends once/,
    run: (planted) => {
      const edit = new EntryTreeEdit([], true);
      edit.end();
      if (planted) edit.end();
    },
  },
  {
    fault: 'a change of a row goes on after its end',
    message: /after its end/,
    run: (planted) => {
      const edit = new EntryTreeEdit([], true);
      if (planted) edit.end();
      const { slab, offset } = arenaWithValue();
      edit.put(cellEntry('f\0q', EntryKind.put, 1, slab, offset, VALUE.length));
    },
  },
  {
    fault: 'an insertion leaves a hole in a node',
    message: /inside the array/,
    run: (planted) => insertAt(['a', 'b'], planted ? 3 : 2, 'c'),
  },
];
