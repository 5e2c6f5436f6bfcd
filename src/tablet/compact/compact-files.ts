/**
 * The work of a compaction of files, which `file-compactor.ts` requests: merges the inputs of each output and writes
 * it. Runs in a worker, or inline where there is none. Opens the files itself by their paths and leaves nothing after a
 * failure.
 */
import { assert, BigtableError, Code } from '../../base/index.ts';
import { type Clock, type Codecs, type FileSystem, Metrics, Pacer } from '../../env/index.ts';
import {
  CursorState,
  intersectRanges,
  isEmptyRange,
  normalizeRanges,
  TOKEN_GROUP,
  TOKEN_SCHEMA,
} from '../../model/index.ts';
import { BlockCache, SsTable, writeSsTable } from '../../sstable/index.ts';
import type { CompactionJob, CompactionOutput, CompactionResult } from '../contract/compaction-job.ts';
import { CompactionStream } from './compaction-stream.ts';
import { VersionCollector } from './version-collector.ts';
import { writeOptions } from './write-options.ts';
import { groupingOf } from '../layers/grouping.ts';
import { KeptVersions } from '../read/kept-versions.ts';
import { MergeCursor } from '../read/merge-cursor.ts';
import { ReadFamilies } from '../read/read-families.ts';
import { TabletFile } from '../layers/tablet-file.ts';

/** Block cache of the inputs of an output. A cursor reads ahead at most a sixteenth of it. */
const CACHE_BYTES = 16 * 1024 * 1024;

export interface CompactionTools {
  readonly fileSystem: FileSystem;
  readonly codecs: Codecs;
  readonly clock: Clock;
}

export async function compactFiles(tools: CompactionTools, job: CompactionJob): Promise<CompactionResult> {
  assertJob(job);
  const collector = job.collected && new VersionCollector(job.collected);
  if (collector !== undefined && job.collected?.isAll) {
    await collectVersions(tools, job, collector);
    return { written: [], readBytes: 0, collected: collector.batch() };
  }
  const written: { path: string; sizeBytes: number }[] = [];
  let readBytes = 0;
  try {
    const empty = await emptyFamilies(tools, job);
    for (const [i, output] of job.outputs.entries()) {
      collector?.beginOutput(i);
      const { sizeBytes, inputBytes } = await writeOutput(tools, job, output, empty, collector);
      readBytes += inputBytes;
      if (sizeBytes > 0) written.push({ path: output.path, sizeBytes });
    }
  } catch (error) {
    // none of them is in use; the sweep finds what cannot be deleted
    for (const { path } of written) await tools.fileSystem.delete(path).catch(() => {});
    throw error;
  }
  return { written, readBytes, collected: collector?.batch() };
}

/** Gathers the next of the versions that the compaction has dropped. Its outputs exist already. */
async function collectVersions(tools: CompactionTools, job: CompactionJob, collector: VersionCollector): Promise<void> {
  for (const [i, output] of job.outputs.entries()) {
    if (collector.isOver) return;
    if (!collector.beginOutput(i) || output.group === TOKEN_GROUP) continue;
    const { after } = job.collected!;
    const from = after?.output === i ? after.row : '';
    await withStream(
      tools,
      job,
      output,
      async (stream) => {
        stream.seekRow(from);
        while (stream.state !== CursorState.done && !collector.isOver) {
          if (stream.state === CursorState.needsLoad) await stream.load();
          else stream.next();
        }
      },
      collector,
    );
  }
}

function assertJob({ schema, outputs, isMajor, collection, since, collected, cancelled }: CompactionJob): void {
  const paths = new Set(outputs.map(({ path }) => path));
  assert(paths.size === outputs.length, 'each output of a compaction has a path of its own');
  for (const { inputs } of outputs) {
    assert(inputs.length > 0, 'an output of a compaction has inputs');
    assert(!inputs.some(({ path }) => paths.has(path)), 'no output of a compaction is its own input');
  }
  assert(!isMajor || (collection !== 'nothing' && since === 'beginning'), 'a major compaction leaves no older files');
  assert(collected === undefined || schema.changeStream !== undefined, 'a change stream tells of what is dropped');
  assert(cancelled.length === 1, 'a compaction has one flag that calls it off');
}

/**
 * Families that a major compaction leaves empty. Its files name them, so that an older file that still exists is known
 * to be replaced whole. With several outputs, each is read up to its first entry.
 */
async function emptyFamilies(tools: CompactionTools, job: CompactionJob): Promise<readonly string[]> {
  if (!job.isMajor) return [];
  const grouping = groupingOf(job.schema);
  const groups = new Set([...grouping.names, ...job.outputs.map(({ group }) => group)]);
  const empty = new Set([...groups].flatMap((group) => grouping.familiesIn(group)));
  for (const output of job.outputs) {
    const isEmpty =
      job.outputs.length > 1 &&
      (await withStream(tools, job, output, async (stream) => {
        stream.seekRow('');
        while (stream.state === CursorState.needsLoad) await stream.load();
        return stream.state === CursorState.done;
      }));
    if (!isEmpty) for (const family of output.families) empty.delete(family);
  }
  return [...empty];
}

async function writeOutput(
  tools: CompactionTools,
  job: CompactionJob,
  output: CompactionOutput,
  empty: readonly string[],
  collector: VersionCollector | undefined,
): Promise<{ sizeBytes: number; inputBytes: number }> {
  const { range, schema, nowMicros, collection, newest, since, lastServerMicros } = job;
  const write = async (
    stream: CompactionStream,
    inputs: readonly TabletFile[],
    pacer: Pacer,
  ): Promise<{ sizeBytes: number; inputBytes: number }> => {
    const deletions =
      collection === 'nothing'
        ? inputs.flatMap((input) => input.rowRangeDeletions().map((deletion) => intersectRanges(deletion, range)))
        : [];
    const families = [...new Set([...output.families, ...empty])];
    const lineage = since && { tableId: schema.id, range, families, since: since === 'beginning' ? undefined : since };
    const options = writeOptions(output.group, output.tuning, output.blockSizeBytes, inputs);
    const hidden = normalizeRanges(deletions.filter((one) => !isEmptyRange(one)));
    const file = await writeSsTable(
      { ...tools, ...options, path: output.path, createdMicros: nowMicros, newest, lineage, lastServerMicros, pacer },
      stream,
      hidden,
    );
    return { sizeBytes: file?.sizeBytes ?? 0, inputBytes: inputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  };
  return withStream(tools, job, output, write, collector);
}

/** Calls `work` with the entries of the output. */
async function withStream<T>(
  tools: CompactionTools,
  job: CompactionJob,
  output: CompactionOutput,
  work: (stream: CompactionStream, inputs: readonly TabletFile[], pacer: Pacer) => Promise<T>,
  collector?: VersionCollector,
): Promise<T> {
  const { range, schema, nowMicros, collection } = job;
  const cache = new BlockCache({ limitBytes: CACHE_BYTES, metrics: new Metrics() });
  const inputs: TabletFile[] = [];
  try {
    for (const { path, clips } of output.inputs)
      inputs.push(new TabletFile(await SsTable.open({ ...tools, path, cache, metrics: new Metrics() }), range, clips));
    const isOfTokens = output.group === TOKEN_GROUP;
    const families = new ReadFamilies(isOfTokens ? TOKEN_SCHEMA : schema, nowMicros);
    const pacer = new Pacer(tools.clock);
    const keepsDeletions = collection === 'nothing';
    const merge = new MergeCursor(inputs, {
      aggregateOf: (stored) => families.get(stored)?.aggregate,
      keepDeletions: keepsDeletions,
      pacer,
    });
    const wanted = new Set(output.families);
    const stream = new CompactionStream(merge, {
      range,
      wants: (stored) => wanted.has(stored),
      rowDeletions: keepsDeletions,
      deletions: keepsDeletions,
      kept: keepsDeletions ? undefined : new KeptVersions(families, collection === 'all'),
      // a change stream tells nothing of tokens
      onCollected: isOfTokens
        ? undefined
        : collector && ((row, column, timestamp) => collector.add(row, column, timestamp)),
      seeks: !keepsDeletions,
      pacer,
      check: () => {
        if (Atomics.load(job.cancelled, 0) !== 0)
          throw new BigtableError(Code.CANCELLED, 'the compaction was cancelled');
      },
    });
    try {
      return await work(stream, inputs, pacer);
    } finally {
      stream.close();
    }
  } finally {
    for (const input of inputs) input.close();
  }
}
