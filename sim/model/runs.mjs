/**
 * The runs: bugs planted in the protocol, each of which the search must find, and the protocol as it is, which must be
 * clean. A few bugs prove harmless, because another rule covers them; they are kept for that.
 */
import { hotRows } from './hot-rows.mjs';
import { metadataSplits } from './metadata-splits.mjs';
import { serving } from './serving.mjs';
import { slots } from './slots.mjs';
import { structure } from './structure.mjs';
import { tables } from './tables.mjs';

/** The models, and the faults and moves that a run may allow. `fault:2` in a run allows it twice. */
const MODELS = {
  A: { model: serving, faults: 'lapse expire crash mc dup lost trim master move back gc sweep' },
  B: { model: slots, faults: 'lapse time sw flush' },
  C: { model: structure, faults: 'expire put comp split merge master sweep lose backup copy unbackup' },
  D: { model: hotRows, faults: 'refuse error crash lapse gone' },
  E: { model: tables, faults: 'create master crash lost move' },
  F: { model: metadataSplits, faults: 'msplit split release merge comp expire lost sweep' },
};

const WRITES = { ops: ['w', 'w'] };
const WRITE = { ops: ['w'] };
const READ_TOO = { ops: ['w', 'w', 'r'] };
const THREE = { servers: 3 };
const HARMLESS = { harmless: true };
const TWO_TABLETS = { K: 4, ends: [2, 4] };
const UNLOADED_OWN = { unloaded: 1, compOne: 1, own: 1 };
const NOT_LOADED = { ...TWO_TABLETS, unloaded: 1 };

/** [title, model, planted bugs, faults and moves allowed, options]. */
export const PLANTED = [
  ['A01 lease checked before the append, not after', 'A', 'leaseBefore', 'lapse expire gc mc', WRITES],
  ['A02 no fence (lease check after the append kept)', 'A', 'noFence', 'lapse expire', WRITES],
  ['A03 tablet assigned before the fence', 'A', 'fenceLate', 'lapse expire', WRITES],
  ['A04 log trimmed before the METADATA commit', 'A', 'redoEarly', 'lapse expire mc', WRITE],
  [
    'A05 server commits to METADATA unconditionally',
    'A',
    'uncondCommit',
    'lapse:2 expire:2 mc:2',
    { ...WRITES, ...THREE },
  ],
  ['A06 commit conditional on the epoch only', 'A', 'epochOnly', 'mc:2 dup sweep', WRITES],
  [
    'A07 master assigns unconditionally (old master continues)',
    'A',
    'uncondAssign',
    'lapse expire master',
    { ...WRITE, ...THREE },
  ],
  ["A08 load replays the last owner's log only", 'A', 'lastLogOnly', 'lapse:2 expire:2', { ...WRITE, ...THREE }],
  ['A09 assignment overwrites the list of logs', 'A', 'clearLogs', 'lapse:2 expire:2', { ...WRITE, ...THREE }],
  [
    "A10 new owner's log not listed until its first flush",
    'A',
    'noLogAdd',
    'lapse:2 expire:2',
    { ...WRITES, ...THREE },
  ],
  [
    "A11 replay ordered by the servers' own sequence numbers",
    'A',
    'seqOrder',
    'lapse:2 expire:2',
    { ops: ['w', 'w', 'w'], ...THREE },
  ],
  ['A12 redo points are (log, sequence) pairs', 'A', 'pairRedo', 'move:2 mc', WRITES],
  ["A13 session expires before the holder's lease lapses (drift)", 'A', 'drift', 'expire', READ_TOO],
  ['A14 reads do not check the lease', 'A', 'readNoLease', 'lapse expire', READ_TOO],
  ['A15 memtable changed before the append is durable', 'A', 'applyBefore', 'lapse expire', READ_TOO],
  ['A16 move without the second compaction, logs taken off', 'A', 'moveNoSecond', 'move mc', WRITES],
  ['A17 unload does not wait for the append in flight', 'A', 'noDrain', 'move', WRITES],
  [
    'A18 "not serving" answered while a load is under way',
    'A',
    'noFloor',
    'move master lapse expire',
    { ops: [], ...THREE },
  ],
  [
    "A19 dead server's log deleted once its tablets are loaded",
    'A',
    'logGoneAfterLoad',
    'lapse:2 expire:2 gc',
    { ...WRITE, ...THREE },
  ],
  ['A20 live server trims its last slot too', 'A', 'trimAll', 'lapse expire mc trim', WRITES],
  ['A21 commit that timed out is taken for failed, file dropped', 'A', 'timeoutIsFailure', 'mc dup', WRITE],
  ['A22 sweep without asking the servers', 'A', 'sweepNoAsk', 'mc sweep', WRITE],
  [
    "A23 sweep while a dead server's tablets keep their epoch",
    'A',
    'sweepDeadInFlight',
    'mc sweep lapse expire',
    WRITE,
  ],
  ['A24 sweep scans METADATA before it asks', 'A', 'sweepScanFirst', 'mc:2 sweep move', WRITE],
  [
    'A25 load trusts the call, does not check the row (and no floor)',
    'A',
    'loadNoCheck noFloor',
    'move:2',
    { ops: [], ...THREE },
  ],
  [
    'A26 load does not check the row, floor kept',
    'A',
    'loadNoCheck',
    'move:2 lapse expire',
    { ...WRITE, ...THREE, max: 120000, harmless: true },
  ],
  ['A27 unload without the epoch', 'A', 'unloadNoEpoch', 'move:2 master', { ops: [], wedge: true, harmless: true }],
  [
    'A33 a server takes back unconditionally what it has released',
    'A',
    'uncondBack',
    'move back',
    { ops: [], ...THREE },
  ],
  [
    'A28 two levels: assignment overwrites the list of logs',
    'A',
    'clearLogs',
    'lapse:2 expire:2',
    { ...WRITE, depth: 2, ...THREE },
  ],
  ['A29 two levels: assignment before the fence', 'A', 'fenceLate', 'lapse expire', { ...WRITE, depth: 2 }],
  [
    'A30 two levels: log deleted once its tablets are loaded',
    'A',
    'logGoneAfterLoad',
    'lapse:2 expire:2 gc',
    { ...WRITE, depth: 2, ...THREE },
  ],
  [
    'A31 two levels: commits conditional on the epoch only',
    'A',
    'epochOnly',
    'mc:2 dup:1 sweep',
    { ...WRITES, depth: 2 },
  ],
  [
    "A32 two levels: master's one job waits for METADATA, whose recovery waits for the master",
    'A',
    'masterWaits',
    'lapse expire move',
    { ...WRITE, depth: 2, wedge: true },
  ],
  ['B01 next slot sent before the last one is known', 'B', 'pipeline', 'lapse time sw flush', {}],
  ['B02 slot skipped after a time-out', 'B', 'skipSlot', 'lapse time sw flush', {}],
  ['B03 time-out answered as a failure', 'B', 'timeoutIsFailure', 'lapse time sw', {}],
  ['B04 "exists" on a retry is taken for success', 'B', 'existsIsOk', 'lapse time sw', {}],
  ['B05 "exists" on a retry is taken for the fence', 'B', 'existsIsFence', 'lapse time sw', {}],
  ["B06 only one of the two writers' logs is fenced", 'B', 'fenceOne', 'lapse time sw', {}],
  [
    'B07 switch drops the pending records',
    'B',
    'switchDropsPending',
    'lapse sw',
    { N: 2, wedge: true, harmless: true },
  ],
  [
    'B08 replay stops at the first hole; a late duplicate re-creates a trimmed slot',
    'B',
    'stopAtHole',
    'lapse time:2 flush',
    { N: 3 },
  ],
  ['C01 split = insert of one row', 'C', 'splitOneRow', 'expire put split', {}],
  ['C02 split records the shrunken parent first', 'C', 'splitUpperFirst splitOneRow', 'split', {}],
  ['C03 split during a commit in flight, epoch only', 'C', 'splitDuringCommit epochOnly', 'put split', {}],
  [
    'C04 split during a commit in flight, epoch + version',
    'C',
    'splitDuringCommit',
    'expire put:2 comp split',
    { harmless: true },
  ],
  ['C05 compaction commit unconditional', 'C', 'uncond', 'expire put:2', {}],
  ['C06 merge without intent, in two steps', 'C', 'mergeNoIntent', 'merge put', { two: 1 }],
  ['C07 merge with intent in the upper row', 'C', 'mergeSteps', 'merge put', { two: 1 }],
  [
    'C08 the same, masters heed the intent, an assignment sent before it arrives late',
    'C',
    'mergeSteps mergeSmart',
    'merge put master',
    { two: 1 },
  ],
  [
    'C09 sweep goes on where the rows that it read do not meet',
    'C',
    'sweepGaps',
    'comp split sweep',
    { unloaded: 1, compOne: 1 },
  ],
  [
    'C10 sweep scans downwards, merge in steps',
    'C',
    'mergeSteps sweepDescending',
    'merge comp sweep',
    { two: 1, compOne: 1 },
  ],
  [
    'C11 the same as C09: a merge and a split take a file past the scan',
    'C',
    'sweepGaps',
    'merge split sweep',
    { apart: 1 },
  ],
  ['C12 a backup is made while a sweep runs', 'C', 'backupDuringSweep', 'backup comp sweep', UNLOADED_OWN],
  ['C13 a sweep does not read the rows of backups', 'C', 'sweepSkipsBackups', 'backup comp sweep', UNLOADED_OWN],
  [
    'C14 a server deletes what it wrote, though a backup lists it',
    'C',
    'backupKeepsOwn',
    'backup comp:2',
    UNLOADED_OWN,
  ],
  [
    'C15 rows of backups are committed by a master that was replaced',
    'C',
    'backupNoFence',
    'backup comp sweep master',
    UNLOADED_OWN,
  ],
  ['C16 a sweep asks the servers only once', 'C', 'sweepOnceAsked', 'backup comp sweep master', UNLOADED_OWN],
  [
    'C17 a master copies a backup before any server has met it',
    'C',
    'copyUnmet',
    'backup copy unbackup comp sweep master',
    { compOne: 1, own: 1 },
  ],
  ['D01 a change is answered before it is durable', 'D', 'earlyAnswer', 'crash', { ops: ['i', 'i'] }],
  [
    'D02 a check that writes nothing is answered before what it saw is durable',
    'D',
    'earlyCheck',
    'crash',
    { ops: ['i', 'c'] },
  ],
  ['D03 a refused append fails its own records only', 'D', 'refusedAlone', 'refuse', { ops: ['i', 'i'] }],
  [
    'D04 a refused append fails its own records only, those of plain writes',
    'D',
    'refusedAlone',
    'refuse',
    { ops: ['w', 'i'] },
  ],
  ['D05 a transaction writes though what it saw was refused', 'D', 'unchecked', 'refuse', { ops: ['i', 'i'] }],
  ['D06 a check answers though what it saw was refused', 'D', 'unchecked', 'refuse', { ops: ['i', 'c'] }],
  ['D07 a plain read sees pending values', 'D', 'readPending', 'crash', { ops: ['i', 'r'] }],
  ['D08 a transaction does not see pending values', 'D', 'pendingUnseen', '', { ops: ['i', 'i'] }],
  ['D09 a transaction does not see pending plain writes', 'D', 'plainUnseen', '', { ops: ['w', 'i'] }],
  ['D10 the lease is not checked after the append', 'D', 'leaseBefore', 'lapse gone', { ops: ['i', 'r'] }],
  [
    'D11 the lease is not checked for a check that writes nothing',
    'D',
    'leaseBefore',
    'lapse gone',
    { ops: ['w', 'c', 'r'] },
  ],
  [
    'E01 a master that was replaced removes rows, and METADATA takes what it sends',
    'E',
    'noCheck noFence',
    'create master',
    {},
  ],
  [
    'E02 a master that was replaced removes rows, and the epoch of the next one is forgotten when METADATA moves',
    'E',
    'noCheck loadNoEpoch',
    'create master move',
    {},
  ],
  ['E03 rows are removed without a look at the lock, fence kept', 'E', 'noCheck', 'create:2 master crash', HARMLESS],
  ['E04 METADATA does not compare epochs, look at the lock kept', 'E', 'noFence', 'create:2 master crash', HARMLESS],
  ['E05 the lost answer to the write of a schema is taken for a failure', 'E', 'unknownIsFailure', 'create lost', {}],
  ['E06 a schema is written without the lock', 'E', 'noGuard', 'create master', {}],
  ['F01 METADATA is split at the key of a row, not after it', 'F', 'atKey', 'msplit', TWO_TABLETS],
  [
    'F02 METADATA is split after a row that a merge has removed meanwhile',
    'F',
    'noRecheck',
    'msplit release:2 merge',
    TWO_TABLETS,
  ],
  ['F03 METADATA is split after a key that has no row', 'F', 'anyKey', 'msplit', TWO_TABLETS],
  [
    'F04 each tablet of METADATA takes its part of a commit that lies apart',
    'F',
    'half',
    'msplit release:2 merge',
    TWO_TABLETS,
  ],
  [
    'F05 a commit that lies apart is refused without a look at its rows',
    'F',
    'refusedApart',
    'msplit split lost',
    TWO_TABLETS,
  ],
  [
    'F06 a commit that lies apart is sent again and again',
    'F',
    'waitsApart',
    'msplit release:2 merge',
    { ...TWO_TABLETS, wedge: true },
  ],
  ['F07 the scan fixes the next key, reads the row later', 'F', 'peek', 'split comp sweep', NOT_LOADED],
  [
    'F08 a read beyond the end of a tablet of METADATA is answered with what the tablet has',
    'F',
    'shortRead',
    'msplit comp sweep',
    NOT_LOADED,
  ],
  ["F09 commits go on between a METADATA tablet's last flush and its split", 'F', 'noLock', 'msplit comp', TWO_TABLETS],
];

/** [title, model, faults and moves allowed, options]. */
export const SOUND = [
  ['serving, recovery twice', 'A', 'lapse:2 expire:2', { ...READ_TOO, ...THREE, wedge: true }],
  [
    'serving + minor compaction + duplicates + lost answers',
    'A',
    'lapse expire mc:2 dup lost trim',
    { ...WRITES, wedge: true },
  ],
  ['log deletion', 'A', 'lapse expire mc gc trim', { ...WRITES, wedge: true }],
  ['recovery twice + compaction + log deletion', 'A', 'lapse:2 expire:2 mc:1 gc:2', { ...WRITES, ...THREE }],
  ['move + two masters', 'A', 'move master lapse expire', { ...WRITE, ...THREE }],
  ['move there and back', 'A', 'move:2 mc lost', { ...WRITES, wedge: true }],
  ['move + two masters, no death', 'A', 'move:2 master', { ...WRITE, wedge: true }],
  ['move, taken back', 'A', 'move:2 back:2 mc lost', { ...WRITES, wedge: true }],
  ['move, taken back by one that dies', 'A', 'move back lapse expire gc', { ...WRITES, wedge: true }],
  ['move, taken back + two masters', 'A', 'move back master lapse expire', { ...WRITE, ...THREE }],
  ['METADATA taken back', 'A', 'move back lapse expire', { ...WRITE, depth: 2, wedge: true }],
  ['sweep', 'A', 'mc:2 sweep move lapse expire', WRITE],
  ['crashes', 'A', 'crash lapse expire mc lost', { ...READ_TOO, wedge: true }],
  ['METADATA tablet recovered, then the user tablet', 'A', 'lapse expire', { ...WRITE, depth: 2, wedge: true }],
  ['METADATA recovered with a user commit in its log', 'A', 'lapse expire mc', { ...WRITE, depth: 2, wedge: true }],
  ['METADATA moved, user tablet recovered', 'A', 'lapse expire move', { ...WRITE, depth: 2, wedge: true }],
  ['METADATA recovered twice', 'A', 'lapse:2 expire:2', { ...WRITE, depth: 2, ...THREE, wedge: true }],
  ['METADATA recovered, two masters', 'A', 'lapse expire master', { ...WRITE, depth: 2, wedge: true }],
  ['slots', 'B', 'lapse time:2 sw:2 flush', { N: 2, wedge: true }],
  ['slots, three records', 'B', 'lapse time:2 sw:1 flush', { N: 3 }],
  ['split, compaction, death', 'C', 'expire put:2 comp split', { wedge: true }],
  ['split + sweep', 'C', 'expire comp:2 split sweep', { unloaded: 1, compOne: 1 }],
  ['split + sweep + two masters', 'C', 'comp split sweep:2 master put', { unloaded: 1, compOne: 1 }],
  ['merge + two masters', 'C', 'merge master put', { two: 1, wedge: true }],
  ['merge + death + lost calls', 'C', 'merge expire put lose', { two: 1 }],
  ['merge + split + sweep', 'C', 'merge split comp sweep', { two: 1, compOne: 1, K: 3 }],
  ['merge + split + sweep, each tablet has a file of its own', 'C', 'merge split sweep expire', { apart: 1 }],
  ['backup + compaction + sweep', 'C', 'backup put comp:2 sweep expire', UNLOADED_OWN],
  ['backup + split + sweep', 'C', 'backup split comp sweep expire', UNLOADED_OWN],
  ['backup + sweep + two masters', 'C', 'backup comp sweep:2 master', UNLOADED_OWN],
  ['backup, copy, deletion + sweep', 'C', 'backup copy unbackup comp sweep:2', UNLOADED_OWN],
  ['backup, copy, deletion + two masters', 'C', 'backup copy unbackup comp sweep master', { compOne: 1, own: 1 }],
  ['tables, two masters', 'E', 'create:2 master', { wedge: true }],
  ['tables, two masters, lost answers, METADATA moved', 'E', 'create master lost move', { wedge: true }],
  ['tables, masters that crash and lose the lock', 'E', 'create:2 master crash lost', {}],
  ['METADATA split, splits, lost answers', 'F', 'msplit:2 split:2 lost', { ...TWO_TABLETS, wedge: true }],
  ['METADATA split, merge, split', 'F', 'msplit:2 split release:2 merge', { ...TWO_TABLETS, wedge: true }],
  ['METADATA split, death, compaction', 'F', 'msplit:2 split expire comp', { ...TWO_TABLETS, wedge: true }],
  ['METADATA split, sweep', 'F', 'msplit:2 split comp sweep', NOT_LOADED],
  ['METADATA split, merge, sweep', 'F', 'msplit release:2 merge sweep', NOT_LOADED],
  ['hot row, full disk twice', 'D', 'refuse:2', { ops: ['i', 'i', 'i', 'w', 'c'], wedge: true }],
  ['hot row, crash', 'D', 'refuse crash', { ops: ['i', 'i', 'w', 'c', 'r'] }],
  ['hot row, append of unknown outcome', 'D', 'refuse error', { ops: ['i', 'i', 'w', 'c', 'r'] }],
  ['hot row, lease lapses', 'D', 'lapse gone', { ops: ['i', 'w', 'c', 'r'] }],
  ['hot row, all faults', 'D', 'refuse error crash lapse gone', { ops: ['i', 'w', 'c', 'r'], wedge: true }],
];

/** The configuration of a run of the model. */
export function configuration(name, bugs, allowed, options) {
  const { model, faults } = MODELS[name];
  const bud = Object.fromEntries(faults.split(' ').map((fault) => [fault, 0]));
  for (const word of allowed.split(' ').filter(Boolean)) {
    const [fault, times = '1'] = word.split(':');
    bud[fault] = Number(times);
  }
  return { model, cfg: { ...options, bugs: new Set(bugs.split(' ').filter(Boolean)), bud } };
}
