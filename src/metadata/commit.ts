/**
 * Conditional commits on METADATA: the only way its rows change. One commit changes one row or two of one METADATA tablet in
 * one instant, and only where each row is still what its writer saw.
 *
 * Invariant: a commit may be sent any number of times. Once it was applied its id stands in the rows it wrote, and sending it again changes
 * nothing; once a row has moved on it is refused for ever.
 */
import type { ByteString } from '../base/index.ts';
import type { Mutation } from '../model/index.ts';
import type { MetadataKey } from './keys.ts';
import { encodeRow, type MetadataRow, type TabletEvent } from './metadata-row.ts';

export interface RowState {
  readonly epoch: number;
  readonly version: number;
}

export interface RowCommit {
  readonly key: MetadataKey;
  /** What the row must be now; undefined = there must be none. */
  readonly expected: RowState | undefined;
  /** What it becomes; undefined = it is deleted. Its version is the expected one plus 1, its commit id that of the commit. */
  readonly row: MetadataRow | undefined;
}

export interface MetadataCommit {
  readonly id: string;
  readonly event: TabletEvent;
  readonly rows: readonly RowCommit[];
}

export type Verdict = 'apply' | 'done' | 'refused';

/** A commit of one row: `next` follows `now`, or is new where there is none; undefined deletes. Version and id are filled in. */
export function commitOfRow(id: string, event: TabletEvent, key: MetadataKey, now: MetadataRow | undefined, next: MetadataRow | undefined): MetadataCommit {
  const row = next && { ...next, version: (now?.version ?? 0) + 1, commitId: id };
  return { id, event, rows: [{ key, expected: now && { epoch: now.epoch, version: now.version }, row }] };
}

/** What becomes of the commit where its rows are now `current`. */
export function judge(commit: MetadataCommit, current: (key: MetadataKey) => MetadataRow | undefined): Verdict {
  if (commit.rows.every(({ key, expected }) => isExpected(current(key), expected))) return 'apply';
  return commit.rows.every(({ key, row }) => (row ? current(key)?.commitId === commit.id : current(key) === undefined)) ? 'done' : 'refused';
}

/** The mutations that apply the commit, by row. */
export function mutationsOf(commit: MetadataCommit): [ByteString, readonly Mutation[]][] {
  return commit.rows.map(({ key, row }) => [key, row ? encodeRow(row, commit.event) : [{ kind: 'deleteFromRow' }]]);
}

function isExpected(row: MetadataRow | undefined, expected: RowState | undefined): boolean {
  if (!row || !expected) return row === expected;
  return row.epoch === expected.epoch && row.version === expected.version;
}
