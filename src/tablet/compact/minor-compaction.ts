/**
 * A minor compaction (paper section 5.4): a frozen memtable becomes one SSTable for each locality group of which it holds anything. Only writes
 * and opens files; committing the list to METADATA is the tablet's part.
 *
 * Deletions of columns and families go where their family goes; deletions of rows to every group that has older files or gets some from a
 * compaction under way, since a file's deletions of rows speak of its own group alone.
 */
import { assert } from '../../base/index.ts';
import { isAfter } from '../../commitlog/index.ts';
import { type Env, labelled, Pacer } from '../../env/index.ts';
import type { Memtable } from '../../memtable/index.ts';
import type { RowRange, RowRangeDeletion } from '../../model/index.ts';
import { type RecordPoint, writeSsTable } from '../../sstable/index.ts';
import { CompactionStream } from './compaction-stream.ts';
import type { FileOpener } from '../layers/file-opener.ts';
import { COMPACTION_BOUNDS_MS } from '../contract/compaction-job.ts';
import { writeOptions } from './group-files.ts';
import type { Grouping } from '../layers/grouping.ts';
import { coveredTables } from '../layers/layer-set.ts';
import type { TabletFile } from '../layers/tablet-file.ts';

export interface MinorCompaction {
  readonly env: Env;
  readonly opener: FileOpener;
  readonly blockSizeBytes: number;
  readonly grouping: Grouping;
  readonly memtable: Memtable;
  /** The SSTables there are, newest first. */
  readonly tables: readonly TabletFile[];
  /** Groups into which a compaction under way writes, below what is written here. None may begin before this is in METADATA. */
  readonly groupsBeingWritten: readonly string[];
  /** A path for a new file; each is asked for once. */
  readonly newPath: () => string;
  readonly tableId: string;
  readonly range: RowRange;
  /** The last record in the memtable. */
  readonly newest: RecordPoint;
  /** The last record in the files there are. */
  readonly since: RecordPoint;
  /** The newest time that a server has given in the tablet. */
  readonly lastServerMicros: number;
}

/** The new files. Where it fails, those that were written are not in use. */
export async function compactMemtable(work: MinorCompaction): Promise<TabletFile[]> {
  const { env, memtable, tables, grouping } = work;
  assert(memtable.isFrozen, 'a memtable takes no writes while it is written to files');
  assert(!isAfter(work.since, work.newest), 'a memtable is newer than the files there are');
  const deletions = memtable.rowRangeDeletions();
  const covered = coveredTables(tables, deletions);
  const older = tables.filter((table) => !covered.includes(table));
  const written: TabletFile[] = [];
  const startMs = env.clock.monotonicMs();
  env.metrics.add('tablet.minorCompactions');
  // a group that has no family any more may have files still, or get one from the compaction under way
  const withOlder = new Set([...older.map((table) => table.group), ...work.groupsBeingWritten]);
  for (const group of new Set([...grouping.names, ...withOlder])) {
    const hasOlder = withOlder.has(group);
    const table = await writeGroup(work, group, { any: older.length > 0, ofRows: hasOlder }, hasOlder ? deletions : []);
    if (table === undefined) continue;
    assert(table.group === group, 'a file says of itself which group it is of');
    env.metrics.add('tablet.minorCompactedBytes', table.sizeBytes);
    written.push(table);
  }
  const ms = env.clock.monotonicMs() - startMs;
  env.metrics.histogram(labelled('tablet.compactionMs', 'minor'), COMPACTION_BOUNDS_MS).observe(ms);
  env.logger.debug('a memtable was written to files', {
    tableId: work.tableId,
    files: written.length,
    ms: Math.round(ms),
  });
  return written;
}

async function writeGroup(
  {
    env,
    opener,
    memtable,
    grouping,
    newPath,
    tableId,
    range,
    newest,
    since,
    lastServerMicros,
    blockSizeBytes,
  }: MinorCompaction,
  group: string,
  deletions: { readonly any: boolean; readonly ofRows: boolean },
  rowRangeDeletions: readonly RowRangeDeletion[],
): Promise<TabletFile | undefined> {
  const { fileSystem, codecs, clock } = env;
  const pacer = new Pacer(clock);
  const source = memtable.copyCursor();
  try {
    const stream = new CompactionStream(source, {
      range,
      wants: (stored) => grouping.groupOf(stored) === group,
      rowDeletions: deletions.ofRows,
      deletions: deletions.any,
      kept: undefined,
      seeks: true,
      pacer,
    });
    const path = newPath();
    const lineage = { tableId, range, since, families: grouping.familiesIn(group) };
    const options = writeOptions(group, grouping.tuning(group), blockSizeBytes);
    const file = await writeSsTable(
      { fileSystem, codecs, clock, ...options, path, newest, lineage, lastServerMicros, pacer },
      stream,
      rowRangeDeletions,
    );
    return file && (await opener.open(path, grouping.tuning(group), range));
  } finally {
    source.close();
  }
}
