/**
 * Logs the versions that a compaction drops because of garbage-collection rules, before the compaction is committed,
 * so that change streams tell of them (docs/decisions/0105-change-streams.md).
 *
 * Invariants:
 * - Such a record comes in the log after every change of its rows that the compaction has seen, and deletes nothing
 *   that was written to layers above the files of the compaction.
 * - It is not applied, since the compaction does the same. A replay applies it: the compaction may not have been
 *   committed, and streams have delivered the deletions.
 */
import { assert, type ByteString, INT64_MAX, int64, type Int64, toBigInt } from '../../base/index.ts';
import { Pacer } from '../../env/index.ts';
import {
  CursorState,
  familyOf,
  type Layer,
  type Mutation,
  qualifierOf,
  rangeOfRow,
  type RowMutations,
} from '../../model/index.ts';
import type { CollectedVersions } from '../contract/compaction-job.ts';
import { LayerNeed } from '../layers/layer-set.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import type { TabletFile } from '../layers/tablet-file.ts';
import { MergeCursor } from '../read/merge-cursor.ts';
import { ReadFamilies } from '../read/read-families.ts';
import type { RowLocks } from '../write/row-locks.ts';
import type { TabletWriter } from '../write/tablet-writer.ts';

/** Bounds of a record, whose rows are locked together. */
const RECORD_COLUMNS = 256;
const RECORD_BYTES = 64 * 1024;

export class CollectionLog {
  readonly #context: TabletContext;
  readonly #locks: RowLocks;
  readonly #writer: TabletWriter;

  constructor(context: TabletContext, locks: RowLocks, writer: TabletWriter) {
    this.#context = context;
    this.#locks = locks;
    this.#writer = writer;
  }

  /** Resolves when all is durable. `inputs`: the files of the compaction. */
  async log(versions: readonly CollectedVersions[], inputs: readonly TabletFile[]): Promise<void> {
    const below = new Set<Layer>(inputs);
    const appends: Promise<unknown>[] = [];
    try {
      for (const record of recordsOf(versions)) await this.#logRows(record, below, appends);
    } finally {
      // none may come later than the compaction ends: its tablet may be closed then
      await Promise.allSettled(appends);
    }
    await Promise.all(appends);
  }

  /** Each row is locked, so no change of it is between this look at its layers and the record. */
  async #logRows(
    columns: ReadonlyMap<ByteString, readonly CollectedVersions[]>,
    below: ReadonlySet<Layer>,
    appends: Promise<unknown>[],
  ): Promise<void> {
    const { pending } = this.#writer;
    const rows = [...columns.keys()].sort();
    const waits = rows.map((row) => this.#locks.lockExclusive(row));
    try {
      await Promise.all(waits);
      for (const row of rows) await pending.newestOf(row)?.done.catch(() => {});
      const changes: RowMutations<readonly Mutation[]>[] = [];
      for (const row of rows) {
        // of several files that are written
        const inOrder = columns.get(row)!.toSorted((a, b) => (a.column < b.column ? -1 : 1));
        changes.push({ row, mutations: await this.#deletions(row, inOrder, below) });
      }
      for (const part of partsOf(changes)) appends.push(this.#writer.logCollected(part));
    } finally {
      for (const row of rows) this.#locks.unlockExclusive(row);
    }
  }

  async #deletions(
    row: ByteString,
    columns: readonly CollectedVersions[],
    below: ReadonlySet<Layer>,
  ): Promise<readonly Mutation[]> {
    const { layers, env } = this.#context;
    const hold = layers.hold(new LayerNeed(rangeOfRow(row), row));
    try {
      const above = hold.layers.filter((layer) => !below.has(layer));
      if (above.length === 0) return columns.map((column) => deletion(column, undefined, upTo(column.timestamp)));
      const families = new ReadFamilies(this.#context.schema(), 0);
      const pacer = new Pacer(env.clock);
      const cursor = new MergeCursor(above, { aggregateOf: families.aggregateOf, pacer, row });
      try {
        cursor.seekRow(row);
        const deletions: Mutation[] = [];
        for (const column of columns) deletions.push(...(await deletionsAround(cursor, row, column)));
        return deletions;
      } finally {
        cursor.close();
      }
    } finally {
      hold.release();
    }
  }
}

/** The deletions of the versions without those that the cursor has. */
async function deletionsAround(
  cursor: MergeCursor,
  row: ByteString,
  versions: CollectedVersions,
): Promise<readonly Mutation[]> {
  const { column, timestamp } = versions;
  const deletions: Mutation[] = [];
  let end = upTo(timestamp);
  let isSought = false;
  for (;;) {
    if (cursor.state === CursorState.needsLoad) await cursor.load();
    else if (cursor.state === CursorState.done || cursor.row !== row || cursor.column > column) break;
    else if (cursor.column < column || cursor.timestamp > timestamp) {
      assert(!isSought, 'a cursor moves to the version that it seeks, or behind it');
      isSought = true;
      cursor.seekColumn(column, timestamp);
    } else {
      const start = upTo(cursor.timestamp);
      // versions come newest first
      if (start !== end) deletions.push(deletion(versions, start, end));
      end = cursor.timestamp;
      cursor.next();
    }
  }
  return [...deletions, deletion(versions, undefined, end)];
}

function deletion({ column }: CollectedVersions, start: Int64 | undefined, end: Int64 | undefined): Mutation {
  const range = start === undefined && end === undefined ? undefined : { start, end };
  return { kind: 'deleteFromColumn', family: familyOf(column), qualifier: qualifierOf(column), range };
}

/** The exclusive end of a range up to the timestamp; undefined: none is later. */
function upTo(timestamp: Int64): Int64 | undefined {
  const next = toBigInt(timestamp) + 1n;
  return next > INT64_MAX ? undefined : int64(next);
}

/** The versions as records of limited size, each by row. */
function* recordsOf(
  versions: readonly CollectedVersions[],
): Generator<ReadonlyMap<ByteString, readonly CollectedVersions[]>, void> {
  let rows = new Map<ByteString, CollectedVersions[]>();
  let count = 0;
  let bytes = 0;
  for (const version of versions) {
    const { row, column } = version;
    const columns = rows.get(row);
    if (columns === undefined) rows.set(row, [version]);
    else columns.push(version);
    count++;
    bytes += row.length + column.length;
    if (count < RECORD_COLUMNS && bytes < RECORD_BYTES) continue;
    yield rows;
    rows = new Map();
    count = 0;
    bytes = 0;
  }
  if (count > 0) yield rows;
}

/** The changes as records with a limited number of deletions: new versions in a column cut its deletion into many. */
function* partsOf(changes: readonly RowMutations<readonly Mutation[]>[]): Generator<readonly RowMutations[], void> {
  let part: RowMutations[] = [];
  let count = 0;
  for (const { row, mutations } of changes) {
    for (let from = 0; from < mutations.length; from += RECORD_COLUMNS) {
      const some = mutations.slice(from, from + RECORD_COLUMNS);
      part.push({ row, mutations: some });
      count += some.length;
      if (count < RECORD_COLUMNS) continue;
      yield part;
      part = [];
      count = 0;
    }
  }
  if (part.length > 0) yield part;
}
