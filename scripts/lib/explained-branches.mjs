/**
 * Branches that no simulated cluster can take, by function, with the reason
 * (docs/decisions/0077-branches-that-no-cluster-takes.md). With `only: 'refusals'` they are those that end in a
 * `throw`, else all. scripts/coverage.mjs checks that each function exists, and that a run took none of these branches:
 * what can be taken is not listed.
 */

const UNKNOWN_BYTES =
  'refuse bytes that have the right checksum, and that no version up to this one has written: those of later versions, which the tests beside the code and the fuzzing of the formats make';
const OPTIONAL = 'records have optional fields in the format, and no role writes one yet';
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
  { file: 'src/commitlog/append-decoder.ts', functions: ['#optionalFields'], reason: OPTIONAL },
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
  { file: 'src/tabletserver/log-replay.ts', functions: ['#readByTable'], only: 'refusals', reason: MISSING },
  { file: 'src/tabletserver/passed-calls.ts', functions: ['#door'], only: 'refusals', reason: OTHER_FORMS },
  { file: 'src/tabletserver/tablet-loader.ts', functions: ['#reopen', '#openAnew'], reason: BROKEN },
];
