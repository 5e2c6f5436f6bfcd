/** Bugs of sorted logs (docs/decisions/0092-sorted-logs.md). */
import type { PlantedBug } from './bug.ts';

const SORT = 'commitlog/sort-log.ts';
const SORTED = 'commitlog/sorted-log.ts';

export const SORTED_LOG_BUGS: readonly PlantedBug[] = [
  {
    name: 'S1',
    title: 'a sorted part of a log ends an append early',
    changes: [
      {
        file: SORT,
        text: 'if (part.to !== undefined && append.position >= part.to) break;',
        wrong: 'if (part.to !== undefined && append.position >= part.to - 1) break;',
      },
    ],
  },
  {
    name: 'S2',
    title: 'a record of several rows is sorted under its first row alone',
    meeting: 'divisions beside a sweep',
    changes: [{ file: SORT, text: 'else if (span.first === span.last)', wrong: 'else if (span.first <= span.last)' }],
  },
  {
    name: 'S3',
    title: 'a sorted log leaves out the ranges of rows that were dropped',
    meeting: 'divisions beside a sweep',
    changes: [
      {
        file: SORT,
        text: "if (redo.body.kind === 'dropRows') this.drops.push(pieceOf(record, '', redo));",
        wrong: 'if (redo.body === undefined) this.drops.push(pieceOf(record, "", redo));',
      },
    ],
  },
  {
    name: 'S4',
    title: 'records of a sorted log are compared with the redo point by their numbers alone',
    changes: [
      {
        file: SORTED,
        text: 'isAfter(record, redo) && record.touches(range)',
        wrong: '(isAfter(record, redo) ? record.sequence > redo.sequence : false) && record.touches(range)',
      },
    ],
  },
  {
    name: 'S5',
    title: 'a tablet does not read the block of a sorted log that begins before it',
    changes: [
      {
        file: SORTED,
        text: 'if (!beginsBefore) return false;',
        wrong: 'if (!beginsBefore || (block.tableId === tableId && block.firstRow < range.start)) return false;',
      },
    ],
  },
  {
    name: 'S6',
    title: 'a sweep deletes a log as soon as it is sorted',
    changes: [
      {
        file: 'master/sweep.ts',
        text: 'for (const path of row.logs) logs.delete(path);',
        wrong:
          'const isSorted = (path: string): boolean => sorted.some((file) => logOfSorted(file.path) === path); for (const path of row.logs) if (!isSorted(path)) logs.delete(path);',
      },
    ],
  },
];
