import {
  assertPartition,
  boundaryAfter,
  commitOfMerge,
  commitOfRow,
  commitOfSplit,
  encodeDocument,
  keyOfRow,
  METADATA_TABLE_ID,
  metadataKey,
  type MetadataRow,
  ROOT_RANGE,
  USER_RANGE,
} from '../../src/metadata/index.ts';
import { type Fault, ROW } from './fault.ts';

const EVENT = { kind: 'compacted', atMicros: 1 } as const;
const KEY = keyOfRow(ROW);
const LOW: MetadataRow = { ...ROW, range: { start: '', end: 'm' } };
const HIGH: MetadataRow = { ...ROW, range: { start: 'm', end: undefined } };
const METADATA_ROW: MetadataRow = { ...ROW, tableId: METADATA_TABLE_ID, range: USER_RANGE };
/** The split of a tablet of METADATA at that key. */
const splitMetadata = (row: MetadataRow, at: string) =>
  commitOfSplit('id', 1, row, [part(row.range.start, at), part(at, row.range.end)]);
const part = (start: string, end: string | undefined) => ({ ...ROW, range: { start, end } });

export const METADATA_FAULTS: readonly Fault[] = [
  {
    fault: 'the epoch of a tablet goes back',
    message: /never sets the epoch of a tablet back/,
    run: (planted) => commitOfRow('id', EVENT, KEY, ROW, { ...ROW, epoch: planted ? 2 : 4 }),
  },
  {
    fault: 'the redo point of a tablet goes back',
    message: /redo point .*back/,
    run: (planted) => commitOfRow('id', EVENT, KEY, ROW, { ...ROW, redo: { epoch: 3, sequence: planted ? 4 : 6 } }),
  },
  {
    fault: 'the row of one tablet is put under the key of another',
    message: /a commit puts the row of a tablet under its own key/,
    run: (planted) => commitOfRow('id', EVENT, planted ? metadataKey('00000010', 'm') : KEY, ROW, ROW),
  },
  {
    fault: 'the two parts of a split leave a gap between them',
    message: /the parts of a range meet/,
    run: (planted) => commitOfSplit('id', 1, ROW, [part('', 'm'), part(planted ? 'n' : 'm', undefined)]),
  },
  {
    fault: 'the two parts of a split overlap',
    message: /overlap/,
    run: (planted) => commitOfSplit('id', 1, ROW, [part('', planted ? 'n' : 'm'), part('m', undefined)]),
  },
  {
    fault: 'METADATA is split at the key of a row, so that the row is apart from those that a split adds',
    message: /METADATA is split directly after the key of a row/,
    run: (planted) => {
      const key = metadataKey('00000010', 'm');
      return splitMetadata(METADATA_ROW, planted ? key : boundaryAfter(key));
    },
  },
  {
    fault: 'the root tablet is split',
    message: /the root tablet is never split/,
    run: (planted) => {
      const at = boundaryAfter(metadataKey('00000010', 'm'));
      return planted
        ? splitMetadata({ ...METADATA_ROW, range: ROOT_RANGE }, metadataKey(METADATA_TABLE_ID, at))
        : splitMetadata(METADATA_ROW, at);
    },
  },
  {
    fault: 'the tablets of a new table do not begin at the first row',
    message: /the parts of a range make up the whole/,
    run: (planted) =>
      assertPartition(
        [
          { start: planted ? 'a' : '', end: 'm' },
          { start: 'm', end: undefined },
        ],
        ROW.range,
      ),
  },
  {
    fault: 'two tablets are merged that are not neighbours',
    message: /neighbours/,
    run: (planted) => commitOfMerge('id', 1, { ...LOW, range: { start: '', end: planted ? 'l' : 'm' } }, HIGH),
  },
  {
    fault: 'a tablet is merged whose log is still to be replayed',
    message: /released/,
    run: (planted) => commitOfMerge('id', 1, { ...LOW, logs: planted ? ['logs/s'] : [] }, HIGH),
  },
  {
    fault: 'two tablets list the files that they share in different orders',
    message: /a merge of two tablets keeps all their files, in their order/,
    run: (planted) =>
      commitOfMerge(
        'id',
        1,
        { ...LOW, files: { g: ['new', 'old'] } },
        { ...HIGH, files: { g: planted ? ['old', 'new'] : ['new', 'old'] } },
      ),
  },
  {
    fault: 'a document needs a feature that this program does not know',
    message: /a document needs features that this program can read/,
    run: (planted) => encodeDocument({}, planted ? 1 << 20 : 1),
  },
];
