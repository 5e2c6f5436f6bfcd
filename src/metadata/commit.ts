/**
 * Conditional commits on METADATA: the only way its rows change. One commit changes one row or two of one METADATA
 * tablet in one instant, and only if each row is still as its writer saw it.
 *
 * Invariant: a commit may be sent any number of times. Once it was applied its id is in the rows it wrote, and a
 * repeated one changes nothing; once a row has moved on it is refused for ever.
 */
import { assert, type ByteString } from '../base/index.ts';
import type { Mutation } from '../model/index.ts';
import { keyBeforeBoundary, type MetadataKey, METADATA_TABLE_ID, ROOT_KEY } from './keys.ts';
import { mergedFiles } from './merged-files.ts';
import { encodeRow, keyOfRow, type MetadataRow, type ServerLocation, type TabletEvent } from './metadata-row.ts';
import { mergedOwners, withPastOwner } from './past-owners.ts';
import { assertPartition } from './partition.ts';

export interface RowState {
  readonly epoch: number;
  readonly version: number;
}

export interface RowCommit {
  readonly key: MetadataKey;
  /** The state that the row must have now; undefined = it must not exist. */
  readonly expected: RowState | undefined;
  /** The new state; undefined = deleted. Its version is the expected one plus 1, its commit id that of the commit. */
  readonly row: MetadataRow | undefined;
}

export interface MetadataCommit {
  readonly id: string;
  readonly event: TabletEvent;
  readonly rows: readonly RowCommit[];
}

export type Verdict = 'apply' | 'done' | 'refused';

/**
 * A commit of one row: `next` follows `now`, or is new if that is undefined; an undefined `next` deletes. Version and
 * id are filled in.
 */
export function commitOfRow(
  id: string,
  event: TabletEvent,
  key: MetadataKey,
  now: MetadataRow | undefined,
  next: MetadataRow | undefined,
): MetadataCommit {
  assert(next === undefined || keyOfRow(next) === key, 'a commit puts the row of a tablet under its own key');
  if (now !== undefined && next !== undefined) {
    assert(next.epoch >= now.epoch, 'a commit never sets the epoch of a tablet back');
    assert(!isBehind(next.redo, now.redo), 'a commit never sets the redo point of a tablet back');
  }
  const row = next && { ...next, version: (now?.version ?? 0) + 1, commitId: id };
  return { id, event, rows: [{ key, expected: now && stateOf(now), row }] };
}

/**
 * The row under its next assignment: the tablet is given to that server, at a new epoch, and lists the server's log
 * before that holds a record of it. `atMicros`: the time of the commit.
 */
export function givenTo(
  row: MetadataRow,
  { name, address }: ServerLocation,
  log: string,
  atMicros: number,
): MetadataRow {
  return {
    ...withPastOwner(row, atMicros),
    server: { name, address },
    // a tablet that was restored has files of another's epochs, and what is written to it now is newer
    epoch: Math.max(row.epoch, row.redo.epoch) + 1,
    logs: row.logs.includes(log) ? row.logs : [...row.logs, log],
  };
}

/**
 * The row of a tablet that the server of that log has released: nothing of the tablet is in the log, though a load that
 * was cut short leaves it in the row. The server may live on and write to the log, and who replays a log keeps it for
 * other tablets: so no row of another owner lists it.
 */
export function withoutLog(row: MetadataRow, log: string): MetadataRow {
  return row.logs.includes(log) ? { ...row, logs: row.logs.filter((each) => each !== log) } : row;
}

/** The row without a server, at a new epoch. */
export function releasedAt(row: MetadataRow, atMicros: number): MetadataRow {
  return { ...withPastOwner(row, atMicros), server: undefined, epoch: row.epoch + 1 };
}

/** The differences between the two tablets of a split. */
export type TabletPart = Pick<MetadataRow, 'range' | 'files' | 'clips' | 'lastServerMicros'>;

/**
 * Replaces one row by two in one instant: a new one for the low part; the former row, whose key is the end that stays,
 * is the high part's.
 */
export function commitOfSplit(
  id: string,
  atMicros: number,
  now: MetadataRow,
  [low, high]: readonly [TabletPart, TabletPart],
): MetadataCommit {
  assertPartition([low.range, high.range], now.range);
  if (now.tableId === METADATA_TABLE_ID) {
    assert(keyOfRow(now) !== ROOT_KEY, 'the root tablet is never split');
    keyBeforeBoundary(high.range.start);
  }
  const part = ({ range, files, clips, lastServerMicros }: TabletPart, version: number): MetadataRow => ({
    ...now,
    range,
    files,
    clips,
    lastServerMicros,
    version,
    commitId: id,
  });
  const [lowRow, highRow] = [part(low, 1), part(high, now.version + 1)];
  return {
    id,
    event: { kind: 'split', atMicros },
    rows: [
      { key: keyOfRow(lowRow), expected: undefined, row: lowRow },
      { key: keyOfRow(now), expected: stateOf(now), row: highRow },
    ],
  };
}

/**
 * Replaces two rows of neighbours, both without a server and with nothing to be replayed, by one in one instant: that
 * of the upper.
 */
export function commitOfMerge(id: string, atMicros: number, low: MetadataRow, high: MetadataRow): MetadataCommit {
  assert(
    low.tableId === high.tableId && low.range.end !== undefined && low.range.end === high.range.start,
    'only neighbours are merged',
  );
  for (const { server, logs } of [low, high])
    assert(
      server === undefined && logs.length === 0,
      'tablets are merged when they are released, with nothing to be replayed',
    );
  const row: MetadataRow = {
    ...high,
    range: { start: low.range.start, end: high.range.end },
    epoch: Math.max(low.epoch, high.epoch) + 1,
    version: high.version + 1,
    commitId: id,
    redo: isBehind(low.redo, high.redo) ? high.redo : low.redo,
    lastServerMicros: Math.max(low.lastServerMicros ?? 0, high.lastServerMicros ?? 0),
    ...mergedFiles(low, high),
    ...mergedOwners(low, high),
  };
  return {
    id,
    event: { kind: 'merged', atMicros },
    rows: [
      { key: keyOfRow(low), expected: stateOf(low), row: undefined },
      { key: keyOfRow(high), expected: stateOf(high), row },
    ],
  };
}

/** The outcome of the commit if its rows are now `current`. */
export function judge(commit: MetadataCommit, current: (key: MetadataKey) => MetadataRow | undefined): Verdict {
  if (commit.rows.every(({ key, expected }) => isExpected(current(key), expected))) return 'apply';
  return commit.rows.every(({ key, row }) => (row ? current(key)?.commitId === commit.id : current(key) === undefined))
    ? 'done'
    : 'refused';
}

/** The mutations that apply the commit, by row. */
export function mutationsOf(commit: MetadataCommit): [ByteString, readonly Mutation[]][] {
  return commit.rows.map(({ key, row }) => [key, row ? encodeRow(row, commit.event) : [{ kind: 'deleteFromRow' }]]);
}

function stateOf({ epoch, version }: MetadataRow): RowState {
  return { epoch, version };
}

function isBehind(a: MetadataRow['redo'], b: MetadataRow['redo']): boolean {
  return a.epoch < b.epoch || (a.epoch === b.epoch && a.sequence < b.sequence);
}

function isExpected(row: MetadataRow | undefined, expected: RowState | undefined): boolean {
  if (!row || !expected) return row === expected;
  return row.epoch === expected.epoch && row.version === expected.version;
}
