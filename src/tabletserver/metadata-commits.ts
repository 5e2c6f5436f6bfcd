/**
 * Carries out conditional commits on the rows of a METADATA tablet (a commit is a write like any other: logged, fenced,
 * lease-checked). Commits sent together are judged one after another, in one instant and one record of the log.
 *
 * Invariant: a row is created only where no other row covers its range. The condition of a creation is that the row
 * does not exist, and that may become true once more: a creation that is repeated because its answer was lost may
 * arrive after the row was merged with its neighbour (docs/decisions/0096-creations-that-arrive-again.md). Rows that
 * come with the last one of their table are created in one instant, so if that one exists they were removed since.
 * For others the rows above them are read: the row that has taken the range of one lies in the same tablet of
 * METADATA, since rows in two of these are not merged.
 */
import { assert, type ByteString, BigtableError, Code, successor } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import {
  decodeLocation,
  decodeRow,
  judge,
  keyOfRow,
  keysOfTable,
  type MetadataCommit,
  metadataKey,
  type MetadataKey,
  type MetadataRow,
  mutationsOf,
} from '../metadata/index.ts';
import { intersectRanges, isEmptyRange, type Mutation, type RowRange } from '../model/index.ts';
import { RowCollector } from '../locator/index.ts';
import type { CommitOutcome } from '../protocol/index.ts';
import type { TabletApi } from '../tablet/index.ts';
import { LOCATION_ONLY } from './metadata-boundary.ts';

/** Without the events: no commit is judged by them. */
const JUDGED_FAMILIES = { kind: 'familyNameRegex', regex: 'location|files' } as const;

/** Commits of one tablet that remove rows. */
interface Removals {
  /** Judged, and not yet durable: a read does not see them. */
  underWay: number;
  done: number;
}

export class MetadataCommits {
  readonly #removals = new WeakMap<TabletApi, Removals>();

  /** All rows must be in the tablet. UNAVAILABLE, to be repeated, if it creates rows while others are being removed. */
  async commit(
    tablet: TabletApi,
    commits: readonly MetadataCommit[],
    context: RequestContext,
  ): Promise<CommitOutcome[]> {
    const removals = this.#removals.get(tablet) ?? { underWay: 0, done: 0 };
    this.#removals.set(tablet, removals);
    const created = byTable(commits.flatMap((commit) => createdRow(commit) ?? []));
    const parts = new Map([...created].filter(([, rows]) => !hasLast(rows)));
    const { done } = removals;
    const covered = parts.size === 0 ? undefined : await coveredKeys(tablet, parts, context);
    const outcomes: CommitOutcome[] = [];
    const keys = commits.flatMap(({ rows }) => rows.map(({ key }) => key));
    let removes = false;
    try {
      await tablet.transact(context, keys, JUDGED_FAMILIES, (cells) => {
        if (covered !== undefined && (removals.underWay > 0 || removals.done !== done))
          throw new BigtableError(Code.UNAVAILABLE, 'rows of METADATA are being removed, while others are created');
        const rows = new Map<MetadataKey, MetadataRow | undefined>();
        for (const [key, ofRow] of cells) rows.set(key, decodeRow(key, ofRow));
        assert(outcomes.length === 0, 'commits are judged once');
        const gone = new Set([...(covered ?? []), ...goneKeys(created, rows)]);
        const writes = judgeAll(commits, rows, gone, outcomes);
        removes = [...rows].some(([key, row]) => row === undefined && writes.has(key));
        if (removes) removals.underWay++;
        return writes;
      });
    } finally {
      if (removes) {
        removals.underWay--;
        removals.done++;
      }
    }
    assert(outcomes.length === commits.length, 'each commit was judged');
    return outcomes;
  }
}

/** Judges the commits on those rows, which become what they are afterwards, and returns what is to be written. */
function judgeAll(
  commits: readonly MetadataCommit[],
  rows: Map<MetadataKey, MetadataRow | undefined>,
  gone: ReadonlySet<MetadataKey>,
  outcomes: CommitOutcome[],
): Map<ByteString, readonly Mutation[]> {
  const writes = new Map<ByteString, readonly Mutation[]>();
  for (const commit of commits) {
    assert(
      commit.rows.every(({ key }) => rows.has(key)),
      'a commit is judged by a row that was read',
    );
    const verdict = judge(commit, (key) => rows.get(key));
    const isGone = verdict === 'apply' && createdRow(commit) !== undefined && gone.has(commit.rows[0]!.key);
    outcomes.push(
      verdict === 'refused' || isGone
        ? { kind: 'refused', rows: commit.rows.map(({ key }) => rows.get(key)) }
        : { kind: 'done' },
    );
    if (verdict !== 'apply' || isGone) continue;
    for (const { key, row } of commit.rows) rows.set(key, row);
    for (const [key, mutations] of mutationsOf(commit)) writes.set(key, [...(writes.get(key) ?? []), ...mutations]);
  }
  return writes;
}

/** The row of a commit that creates one, and changes no other. */
function createdRow({ rows }: MetadataCommit): MetadataRow | undefined {
  const [one] = rows;
  return rows.length === 1 && one!.expected === undefined ? one!.row : undefined;
}

/** True if the table's last row is one of them: it exists as long as the table. */
function hasLast(rows: readonly MetadataRow[]): boolean {
  return rows.some(({ range }) => range.end === undefined);
}

/** The keys of rows that came with the last one of their table, which exists: they were removed since. */
function goneKeys(
  created: ReadonlyMap<string, readonly MetadataRow[]>,
  now: ReadonlyMap<MetadataKey, MetadataRow | undefined>,
): MetadataKey[] {
  return [...created].flatMap(([tableId, rows]) =>
    now.get(metadataKey(tableId, undefined)) === undefined
      ? []
      : rows.map(keyOfRow).filter((key) => now.get(key) === undefined),
  );
}

/** The keys of those of the rows whose ranges are covered by others in the tablet, in part at least. */
async function coveredKeys(
  tablet: TabletApi,
  created: ReadonlyMap<string, readonly MetadataRow[]>,
  context: RequestContext,
): Promise<Set<MetadataKey>> {
  const covered = new Set<MetadataKey>();
  for (const [tableId, rows] of created) {
    const ranges = await rangesAbove(tablet, tableId, rows, context);
    for (const row of rows)
      if (ranges.some((range) => range.end !== row.range.end && !isEmptyRange(intersectRanges(range, row.range))))
        covered.add(keyOfRow(row));
  }
  return covered;
}

function byTable(rows: readonly MetadataRow[]): Map<string, MetadataRow[]> {
  const tables = new Map<string, MetadataRow[]>();
  for (const row of rows) {
    const others = tables.get(row.tableId);
    if (others === undefined) tables.set(row.tableId, [row]);
    else others.push(row);
  }
  return tables;
}

/** The ranges of the table's tablets whose keys are above the lowest of the rows, up to the first above all of them. */
async function rangesAbove(
  tablet: TabletApi,
  tableId: string,
  rows: readonly MetadataRow[],
  context: RequestContext,
): Promise<RowRange[]> {
  const keys = rows.map(keyOfRow).sort();
  const above = { ...keysOfTable(tableId), start: successor(keys[0]!) };
  const request = {
    ranges: [intersectRanges(above, tablet.state.range)],
    filter: LOCATION_ONLY,
    rowsLimit: 0,
    reversed: false,
  };
  const ranges: RowRange[] = [];
  const collector = new RowCollector();
  for await (const batch of tablet.read(context, request)) {
    collector.add(batch);
    for (const { row, cells } of collector.take()) {
      const location = decodeLocation(row, cells);
      if (location === undefined) continue;
      ranges.push(location.range);
      if (row > keys.at(-1)!) return ranges;
    }
  }
  return ranges;
}
