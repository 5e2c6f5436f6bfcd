/**
 * The work of a minor compaction (paper section 5.4), which `flusher.ts` requests: a frozen memtable becomes one
 * SSTable for each locality group of which it holds anything. Only writes and opens files.
 *
 * Tokens of writes become a file of their own group, without deletions.
 *
 * Deletions of columns and families go where their family goes. Deletions of rows go to every group that has older
 * files, or gets some from a running compaction, since the row deletions of a file apply to its own group only.
 */
import { assert } from '../../base/index.ts';
import { isAfter } from '../../commitlog/index.ts';
import { labelled, Pacer } from '../../env/index.ts';
import type { Memtable } from '../../memtable/index.ts';
import { type RowRangeDeletion, TOKEN_GROUP } from '../../model/index.ts';
import { type RecordPoint, writeSsTable } from '../../sstable/index.ts';
import { CompactionStream } from './compaction-stream.ts';
import { COMPACTION_BOUNDS_MS } from '../contract/compaction-job.ts';
import { writeOptions } from './write-options.ts';
import type { Grouping } from '../layers/grouping.ts';
import { coveredFiles } from '../layers/layer-set.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import type { TabletFile } from '../layers/tablet-file.ts';

/** A frozen memtable, and the parameters of its files. */
export interface FrozenMemtable {
  readonly grouping: Grouping;
  readonly memtable: Memtable;
  readonly tokens: Memtable | undefined;
  /**
   * Groups into which a running compaction writes files older than these. None may begin before these are in METADATA.
   */
  readonly groupsBeingWritten: readonly string[];
  /** A path for a new file; called once for each. */
  readonly newPath: () => string;
  /** The last record in the memtable. */
  readonly newest: RecordPoint;
}

/** Returns the new files. If it fails, the files that were written are not in use. */
export async function writeMemtable(context: TabletContext, frozen: FrozenMemtable): Promise<TabletFile[]> {
  const { env, state } = context;
  const { memtable, tokens, grouping } = frozen;
  const { files } = context.layers;
  assert(memtable.isFrozen, 'a memtable takes no writes while it is written to files');
  assert(!isAfter(state.redo, frozen.newest), 'a memtable is newer than the files there are');
  const deletions = memtable.rowRangeDeletions();
  const covered = coveredFiles(files, deletions);
  const older = files.filter((file) => file.group !== TOKEN_GROUP && !covered.includes(file));
  const written: TabletFile[] = [];
  const startMs = env.clock.monotonicMs();
  env.metrics.add('tablet.minorCompactions');
  // a group without families may still have files, or get one from the running compaction
  const withOlder = new Set([...older.map((file) => file.group), ...frozen.groupsBeingWritten]);
  withOlder.delete(TOKEN_GROUP);
  for (const group of new Set([...grouping.names, ...withOlder])) {
    const hasOlder = withOlder.has(group);
    const file = await writeGroup(
      context,
      frozen,
      group,
      memtable,
      { any: older.length > 0, ofRows: hasOlder },
      hasOlder ? deletions : [],
    );
    if (file !== undefined) written.push(file);
  }
  if (tokens !== undefined) {
    const file = await writeGroup(context, frozen, TOKEN_GROUP, tokens, { any: false, ofRows: false }, []);
    if (file !== undefined) written.push(file);
  }
  const ms = env.clock.monotonicMs() - startMs;
  env.metrics.histogram(labelled('tablet.compactionMs', 'minor'), COMPACTION_BOUNDS_MS).observe(ms);
  env.logger.debug('a memtable was written to files', {
    tableId: state.tableId,
    files: written.length,
    ms: Math.round(ms),
  });
  return written;
}

async function writeGroup(
  context: TabletContext,
  frozen: FrozenMemtable,
  group: string,
  memtable: Memtable,
  deletions: { readonly any: boolean; readonly ofRows: boolean },
  rowRangeDeletions: readonly RowRangeDeletion[],
): Promise<TabletFile | undefined> {
  const { env, opener, range, options } = context;
  const { grouping, newest } = frozen;
  const { fileSystem, codecs, clock } = env;
  const { tableId, redo: since } = context.state;
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
    const path = frozen.newPath();
    const lineage = { tableId, range, since, families: grouping.familiesIn(group) };
    const last = context.layers.files.find((file) => file.group === group);
    const before = last === undefined ? [] : [last];
    const written = writeOptions(group, grouping.tuning(group), options.blockSizeBytes, before);
    const isWritten = await writeSsTable(
      {
        fileSystem,
        codecs,
        clock,
        ...written,
        path,
        newest,
        lineage,
        lastServerMicros: context.time.lastMicros,
        pacer,
      },
      stream,
      rowRangeDeletions,
    );
    if (!isWritten) return undefined;
    const file = await opener.open(path, grouping.tuning(group), range);
    assert(file.group === group, 'a file says of itself which group it is of');
    env.metrics.add('tablet.minorCompactedBytes', file.sizeBytes);
    return file;
  } finally {
    source.close();
  }
}
