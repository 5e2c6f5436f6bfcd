/**
 * Branches that no simulated cluster can take, by function, with the reason
 * (docs/decisions/0077-branches-that-no-cluster-takes.md). With `only: 'refusals'` they are those that end in a
 * `throw`, else all. scripts/coverage.mjs checks that each function exists, and that a run took none of these branches:
 * what can be taken is not listed.
 */

const UNKNOWN_BYTES =
  'refuse bytes that have the right checksum, and that no version up to this one has written: those of later versions, which the tests beside the code and the fuzzing of the formats make';
const PRIORITIES =
  'turns of calls of lower priorities: clients of a simulated cluster have no app profile that says one; the tests beside the code do';
const MANY_TABLETS =
  'rows of a new table that come without its last row: of tables with more tablets than a small cluster has; the tests beside the code make them';
const MANY_FILES =
  'writes to a tablet with so many files that they wait for a compaction: a minute of a simulated cluster makes fewer';
const BACKUP_STORE =
  'exports and imports of backups: a simulated cluster has no backup store; the tests beside the code kill its servers and masters';
const MISSING = 'only where a log is gone that METADATA lists: the judges end such a run';
const OTHER_SORTED =
  'refuse sorted files that no server makes: of a log that was not there, or with another part than their name says';
const OTHER_FORMS = 'refuse what no part of a cluster sends';
const HOLES =
  'a cluster has logs of slots, whose reader finds a missing append first: these find one in the log files of a directory';
const BY_HAND =
  'only where a file of the lock service was removed or set back by hand, which a cluster does not survive: the refusals keep its data';
const BROKEN = 'only after an assert has tripped, which is a mistake in the program: the judges end such a run';

/** @type {readonly { file: string, functions: readonly string[], only?: 'refusals', reason: string }[]} */
export const EXPLAINED = [
  {
    file: 'src/commitlog/append-decoder.ts',
    functions: ['nextEncoded', '#header', '#find', '#record'],
    only: 'refusals',
    reason: UNKNOWN_BYTES,
  },
  {
    file: 'src/commitlog/append-decoder.ts',
    functions: ['#optionalFields'],
    only: 'refusals',
    reason: UNKNOWN_BYTES,
  },
  { file: 'src/commitlog/append-reader.ts', functions: ['take'], only: 'refusals', reason: UNKNOWN_BYTES },
  { file: 'src/commitlog/append-reader.ts', functions: ['checked'], reason: UNKNOWN_BYTES },
  {
    file: 'src/commitlog/body-decoder.ts',
    functions: ['touches', 'body', '#rowRange', '#mutation', '#deleteFromColumn', '#skipMutation'],
    only: 'refusals',
    reason: UNKNOWN_BYTES,
  },
  {
    file: 'src/commitlog/append-order.ts',
    functions: ['next', 'nextPart', 'finish', '#follows'],
    only: 'refusals',
    reason: HOLES,
  },
  { file: 'src/commitlog/append-order.ts', functions: ['missing'], reason: HOLES },
  { file: 'src/commitlog/sorted-format.ts', functions: ['decodeIndex'], only: 'refusals', reason: UNKNOWN_BYTES },
  { file: 'src/commitlog/sorted-log.ts', functions: ['open'], only: 'refusals', reason: OTHER_SORTED },
  {
    file: 'src/master/assignment.ts',
    functions: ['#beginDatabase', 'createRows'],
    only: 'refusals',
    reason: BY_HAND,
  },
  { file: 'src/client/exports.ts', functions: ['listExports'], reason: BACKUP_STORE },
  { file: 'src/master/backups.ts', functions: ['export'], reason: BACKUP_STORE },
  {
    file: 'src/master/export-store.ts',
    functions: ['readExport', 'listExports', 'hasFile'],
    reason: BACKUP_STORE,
  },
  {
    file: 'src/master/exported-backups.ts',
    functions: [
      'isArriving',
      'export',
      'delete',
      'read',
      'import',
      '#readRows',
      '#copy',
      'readExportOf',
      'withPaths',
      'checkCopy',
    ],
    reason: BACKUP_STORE,
  },
  {
    file: 'src/metadata/exported-backup-file.ts',
    functions: ['encodeExport', 'decodeExport', 'decodeExportedRows', 'readLines'],
    reason: BACKUP_STORE,
  },
  { file: 'src/metadata/metadata-row.ts', functions: ['encodeBackupRow', 'decodeBackupRow'], reason: BACKUP_STORE },
  {
    file: 'src/master/table-ids.ts',
    functions: ['next'],
    only: 'refusals',
    reason: 'after four billion tables',
  },
  { file: 'src/metadata/keys.ts', functions: ['parseMetadataKey'], only: 'refusals', reason: UNKNOWN_BYTES },
  { file: 'src/metadata/metadata-row.ts', functions: ['decodeRow'], only: 'refusals', reason: UNKNOWN_BYTES },
  { file: 'src/metadata/next-table-id.ts', functions: ['decodeNextTableId'], only: 'refusals', reason: UNKNOWN_BYTES },
  {
    file: 'src/metadata/plain-json.ts',
    functions: ['parse', 'text', 'bytes', 'flag', 'whole', 'oneOf', 'texts', 'objects'],
    only: 'refusals',
    reason: UNKNOWN_BYTES,
  },
  {
    file: 'src/metadata/schema-file.ts',
    functions: ['decodeSchema', 'readRule'],
    only: 'refusals',
    reason: UNKNOWN_BYTES,
  },
  {
    file: 'src/tabletserver/call-turns.ts',
    functions: ['#note', '#turn', '#mayGo', '#lookLater', '#look'],
    reason: PRIORITIES,
  },
  { file: 'src/tabletserver/compaction-schedule.ts', functions: ['wait'], reason: MANY_FILES },
  { file: 'src/tabletserver/file-copier.ts', functions: ['copy', '#copy'], reason: BACKUP_STORE },
  {
    file: 'src/tabletserver/metadata-commits.ts',
    functions: ['coveredKeys', 'rangesAbove'],
    reason: MANY_TABLETS,
  },
  { file: 'src/tabletserver/log-replay.ts', functions: ['#readByTable'], only: 'refusals', reason: MISSING },
  { file: 'src/tabletserver/passed-calls.ts', functions: ['#door'], only: 'refusals', reason: OTHER_FORMS },
  { file: 'src/tabletserver/tablet-loader.ts', functions: ['#reopen', '#openAnew'], reason: BROKEN },
];
