/** Bugs of METADATA's own splits, and of commits and reads across its tablets (model F). */
import type { PlantedBug } from './bug.ts';

const CLIENT = 'locator/metadata-client.ts';

export const METADATA_SPLIT_BUGS: readonly PlantedBug[] = [
  {
    name: 'F01',
    title: 'METADATA is split at the key of a row, not after it',
    meeting: 'split of METADATA under commits',
    changes: [
      { file: 'metadata/keys.ts', text: 'return successor(key);', wrong: 'return key;' },
      {
        file: 'metadata/keys.ts',
        text: "assert(boundary.endsWith('\\0'), 'METADATA is split directly after the key of a row');\n  const key = boundary.slice(0, -1);",
        wrong: 'const key = boundary;',
      },
    ],
  },
  {
    name: 'F02',
    title: 'METADATA is split after a row that may have been removed meanwhile',
    meeting: 'split of METADATA under commits',
    changes: [
      {
        file: 'tabletserver/tablet-splits.ts',
        text: '!(await isAfterRow(tablet, row, serverContext()))',
        wrong: '!(await isAfterRow(tablet, row, serverContext())) && row === undefined',
      },
    ],
  },
  {
    name: 'F05',
    title: 'a commit whose rows lie apart is refused without a look at them',
    meeting: 'split of METADATA under commits',
    changes: [{ file: CLIENT, text: "judge(commit, (key) => rows.get(key)) === 'done'", wrong: 'rows.size === 0' }],
  },
  {
    name: 'F06',
    title: 'a commit whose rows lie apart is sent again and again',
    meeting: 'split in a merge',
    changes: [{ file: CLIENT, text: 'apart.push(item);\n        continue;', wrong: '' }],
  },
  {
    name: 'N20',
    title: 'a commit that may be done fails where METADATA cannot be read to find out',
    meeting: 'split of METADATA under commits',
    changes: [{ file: CLIENT, text: 'if (!progress.maybeDone) throw thrown;', wrong: 'throw thrown;' }],
  },
  {
    name: 'F08',
    title: 'a read that reaches beyond its tablet is answered with what the tablet has',
    changes: [
      {
        file: 'tabletserver/row-calls.ts',
        text: 'if (!isWithin(ranges.at(-1)?.end, served.range.end)) throw notServing(tableId, served.range.end!);\n    this.#schemaOf(served, start);\n    return served.tablet.read(context, message);',
        wrong:
          'this.#schemaOf(served, start);\n    const within = ranges.map((range) => intersectRanges(range, served.range));\n    return served.tablet.read(context, { ...message, ranges: within.filter((range) => !isEmptyRange(range)) });',
      },
      {
        file: 'tabletserver/row-calls.ts',
        text: '  rangeContains,\n',
        wrong: '  intersectRanges,\n  isEmptyRange,\n  rangeContains,\n',
      },
    ],
  },
];
