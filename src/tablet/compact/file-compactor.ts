/**
 * The merging and major compactions of one tablet (paper section 5.4), one at a time: chooses the files, has a worker
 * merge them (compact-files.ts), and commits the result in their place. Policy: docs/decisions/0011-compactions.md.
 *
 * Invariants: only neighbours in age are merged. While a file holds a family that has moved to another group, only all
 * files are merged, since the ages of different groups could be mixed up. A file is in use only once it is committed.
 * What garbage collection drops from a table with a change stream is logged before that; a compaction that fails in
 * between is done again as it was planned, and logs the rest, so failures do not repeat deletions without end.
 */
import { assert, BigtableError, Code } from '../../base/index.ts';
import { labelled } from '../../env/index.ts';
import {
  type CollectedPlace,
  type Collection,
  COMPACTION_BOUNDS_MS,
  COMPACTION_TASK,
  type CompactionInput,
  type CompactionJob,
  type FileCompactionKind,
  type CompactionOutput,
  type CompactionResult,
} from '../contract/compaction-job.ts';
import { type TableSchema, TOKEN_GROUP } from '../../model/index.ts';
import type { CollectionLog } from './collection-log.ts';
import { groupingOf } from '../layers/grouping.ts';
import { filesByGroup } from '../layers/layer-set.ts';
import { chooseMerge, type MergeRun } from '../layers/merge-choice.ts';
import { chooseEarnedMerge } from '../layers/earned-merge.ts';
import { chooseSuperseded, MIN_SAVED_BYTES, type SupersededRun, supersededRuns } from '../layers/superseded-merge.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import type { TabletFile } from '../layers/tablet-file.ts';

/** The superseded share from which files are merged while the tablet takes no writes. */
const QUIET_SHARE = 1 / 5;
/** The same while it does: a merge then writes at most twice the bytes that it saves. */
const BUSY_SHARE = 1 / 3;

interface Plan {
  readonly inputs: readonly TabletFile[];
  readonly collection: Collection;
  readonly since: CompactionJob['since'];
  readonly outputs: readonly Pick<CompactionOutput, 'group' | 'families' | 'inputs'>[];
  /** True if it is done for reads, which have earned it. */
  readonly isEarned: boolean;
  /** Bytes that newer ones of the files have overwritten, by an estimate. */
  readonly supersededBytes: number;
}

/** A compaction that failed after it had logged deletions by garbage collection. */
interface Unfinished {
  readonly kind: FileCompactionKind;
  readonly plan: Plan;
  readonly schema: TableSchema;
  readonly nowMicros: number;
  /** Those up to this place are logged. */
  readonly after: CollectedPlace;
}

/** Files of a group to merge. */
interface ChosenRun extends MergeRun {
  readonly group: string;
  readonly files: readonly TabletFile[];
}

export class FileCompactor {
  readonly #context: TabletContext;
  readonly #collectionLog: CollectionLog;
  #unfinished: Unfinished | undefined;
  #running:
    | { readonly done: Promise<void>; readonly cancelled: Int32Array; readonly groups: readonly string[] }
    | undefined;
  /** The part of the estimates that merges really saved: less than 1 where the rules keep versions. */
  #trust = 1;
  #runs:
    | { readonly of: readonly TabletFile[]; readonly byGroup: ReadonlyMap<string, readonly SupersededRun[]> }
    | undefined;

  constructor(context: TabletContext, collectionLog: CollectionLog) {
    this.#context = context;
    this.#collectionLog = collectionLog;
  }

  /** The compaction that is due because of the number of files, or of the groups they belong to. */
  due(): FileCompactionKind | undefined {
    if (this.#needsMajor) return 'major';
    return this.#chooseMerge() === undefined ? undefined : 'merging';
  }

  /** True if reads have earned a merge `times` over. */
  isEarned(times: number): boolean {
    return this.#chooseEarned(times) !== undefined;
  }

  /** True if a merge would save enough bytes that newer files have overwritten. */
  isWorthwhile(isQuiet: boolean): boolean {
    return this.#chooseSuperseded(isQuiet ? QUIET_SHARE : BUSY_SHARE) !== undefined;
  }

  /** True if files cannot be merged but all together. */
  get #needsMajor(): boolean {
    const grouping = groupingOf(this.#context.schema());
    return this.#context.layers.files.some((file) => file.isPartial || grouping.isMisplaced(file));
  }

  /** The groups into which the running compaction writes. */
  get groupsBeingWritten(): readonly string[] {
    return this.#running?.groups ?? [];
  }

  /** Does one compaction, if there is anything to do. CANCELLED if it is cancelled. */
  async run(kind: FileCompactionKind): Promise<void> {
    if (this.#running !== undefined)
      throw new BigtableError(Code.FAILED_PRECONDITION, 'the tablet is being compacted already');
    if (this.#unfinished !== undefined) return this.#runAgain(kind, this.#unfinished);
    const plan = kind === 'major' ? this.#planMajor() : this.#planMerge();
    if (plan !== undefined) return this.#run(kind, plan);
  }

  #run(kind: FileCompactionKind, plan: Plan, before?: Unfinished): Promise<void> {
    assert(plan.inputs.length > 0, 'a compaction of files has inputs');
    this.#context.layers.credits.spend(plan.inputs);
    const cancelled = new Int32Array(new SharedArrayBuffer(4));
    const done = this.#carryOut(kind, plan, cancelled, before).finally(() => {
      assert(this.#running?.cancelled === cancelled, 'one compaction of files runs at a time');
      this.#running = undefined;
    });
    this.#running = { done, cancelled, groups: plan.outputs.map(({ group }) => group) };
    return done;
  }

  /** Does the compaction that has failed, unless its plan is out of date, and then the requested one. */
  async #runAgain(kind: FileCompactionKind, unfinished: Unfinished): Promise<void> {
    const { layers, serving } = this.#context;
    this.#unfinished = undefined;
    const { plan, schema } = unfinished;
    const isValid =
      schema === this.#context.schema() &&
      plan.inputs.every((file) => layers.files.includes(file)) &&
      plan.collection === this.#collection(plan.inputs);
    if (!isValid) return this.run(kind);
    const isOfAll = plan.inputs.length === layers.files.length;
    await this.#run(unfinished.kind, plan, unfinished);
    if (kind === 'major' && !(isOfAll && unfinished.kind === 'major') && serving.phase === 'serving')
      return this.run(kind);
  }

  /** Cancels the running compaction; resolves when it has ended. */
  async cancel(): Promise<void> {
    if (this.#running === undefined) return;
    Atomics.store(this.#running.cancelled, 0, 1);
    await this.#running.done.catch(() => {});
  }

  async #carryOut(
    kind: FileCompactionKind,
    plan: Plan,
    cancelled: Int32Array,
    before: Unfinished | undefined,
  ): Promise<void> {
    const { env, options, range, time, ownedFiles, layers } = this.#context;
    const schema = this.#context.schema();
    const grouping = groupingOf(schema);
    const hold = layers.holdFiles(plan.inputs);
    const outputs = plan.outputs.map(
      (output): CompactionOutput => ({
        ...output,
        path: ownedFiles.newPath(),
        blockSizeBytes: options.blockSizeBytes,
        tuning: grouping.tuning(output.group),
      }),
    );
    const paths = outputs.map(({ path }) => path);
    let mayBeListed = false;
    const startMs = env.clock.monotonicMs();
    try {
      const job: CompactionJob = {
        range,
        schema,
        nowMicros: before?.nowMicros ?? env.clock.nowMicros(),
        collection: plan.collection,
        newest: plan.inputs[0]?.properties.newest,
        since: plan.since,
        lastServerMicros: time.lastMicros,
        isMajor: kind === 'major',
        outputs,
        collected: schema.changeStream && { after: before?.after, isAll: false },
        cancelled,
      };
      const result = await this.#runJob(job);
      if (cancelled[0] !== 0) throw new BigtableError(Code.CANCELLED, 'the compaction was cancelled');
      const merged = await this.#open(outputs, result);
      const log = job.collected && (() => this.#logCollected(kind, plan, job, result));
      const isDone = await this.#commit(plan.inputs, merged, log, () => {
        mayBeListed = true;
      });
      this.#unfinished = undefined;
      if (isDone) this.#learn(plan, merged);
      this.#report(kind, plan, result, isDone, env.clock.monotonicMs() - startMs);
    } finally {
      hold.release();
      if (!mayBeListed) ownedFiles.discard(paths);
      ownedFiles.finish(paths, layers.heldFiles());
    }
  }

  #runJob(job: CompactionJob): Promise<CompactionResult> {
    return this.#context.env.workers.run(COMPACTION_TASK, job) as Promise<CompactionResult>;
  }

  /** Logs the deletions in batches, of which the first came with the files. It is not cancelled any more. */
  async #logCollected(
    kind: FileCompactionKind,
    plan: Plan,
    job: CompactionJob,
    result: CompactionResult,
  ): Promise<void> {
    const { schema, nowMicros } = job;
    let batch = result.collected;
    assert(batch !== undefined, 'a compaction tells of what it drops where that was requested');
    for (;;) {
      const { versions, last: after, isLast } = batch;
      await this.#collectionLog.log(versions, plan.inputs);
      if (after !== undefined) this.#unfinished = { kind, plan, schema, nowMicros, after };
      if (isLast) return;
      const cancelled = new Int32Array(new SharedArrayBuffer(4));
      const rest: CompactionJob = { ...job, collected: { after, isAll: true }, cancelled };
      const next = await this.#runJob(rest);
      assert(next.collected !== undefined && next.collected.last !== after, 'each batch of deletions brings some');
      batch = next.collected;
    }
  }

  #learn({ inputs, supersededBytes }: Plan, merged: readonly TabletFile[]): void {
    if (supersededBytes === 0) return;
    const savedBytes = sizeOf(inputs) - sizeOf(merged);
    this.#trust = Math.min(1, Math.max(0, savedBytes / supersededBytes));
  }

  async #open(outputs: readonly CompactionOutput[], { written }: CompactionResult): Promise<TabletFile[]> {
    const { opener, range } = this.#context;
    assert(written.length <= outputs.length, 'a compaction writes no more files than requested');
    const files: TabletFile[] = [];
    try {
      for (const { path } of written) {
        const output = outputs.find((one) => one.path === path);
        assert(output !== undefined, 'a compaction writes the requested files');
        files.push(await opener.open(path, output.tuning, range));
      }
    } catch (error) {
      for (const file of files) file.close();
      throw error;
    }
    return files;
  }

  /**
   * Puts `merged` in the place of `inputs`. Returns false if rows were dropped meanwhile, and inputs with them. `log`:
   * logs the deletions. No flush is committed between the two: a replay that begins after them would not make them.
   */
  async #commit(
    inputs: readonly TabletFile[],
    merged: readonly TabletFile[],
    log: (() => Promise<void>) | undefined,
    onCommit: () => void,
  ): Promise<boolean> {
    const { layers, commits, serving } = this.#context;
    const before =
      log &&
      (() =>
        log().catch((thrown: unknown) => {
          for (const file of merged) file.close();
          throw thrown;
        }));
    try {
      const isDone = await commits.compacted(() => {
        const list = serving.failure ? undefined : layers.withMerged(inputs, merged);
        // from here on the row may list them, even if the call fails
        if (list !== undefined) onCommit();
        return list;
      }, before);
      if (!isDone) for (const file of merged) file.close();
      return isDone;
    } catch (error) {
      this.#context.noteError(error);
      throw error;
    }
  }

  #report(
    kind: FileCompactionKind,
    plan: Plan,
    { written, readBytes }: CompactionResult,
    isDone: boolean,
    ms: number,
  ): void {
    const { metrics, logger } = this.#context.env;
    const label = kind === 'major' ? 'major' : 'merging';
    metrics.histogram(labelled('tablet.compactionMs', label), COMPACTION_BOUNDS_MS).observe(ms);
    metrics.add('tablet.compactionReadBytes', readBytes);
    metrics.add(
      'tablet.compactionWrittenBytes',
      written.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    );
    if (!isDone) return;
    metrics.add(kind === 'major' ? 'tablet.majorCompactions' : 'tablet.mergingCompactions');
    if (plan.isEarned) metrics.add('tablet.mergesForReads');
    const table = this.#context.schema().name;
    logger.debug('files were compacted', { table, kind, inputs: plan.inputs.length, readBytes, ms: Math.round(ms) });
  }

  /** The run of files to merge, of the group with the most files that has one. */
  #chooseMerge(): ChosenRun | undefined {
    for (const [group, files] of [...filesByGroup(this.#context.layers.files)].sort(
      ([, a], [, b]) => b.length - a.length,
    )) {
      const run = chooseMerge(files);
      if (run !== undefined) return { group, files, ...run };
    }
    return undefined;
  }

  #chooseEarned(times: number): ChosenRun | undefined {
    const { files, credits } = this.#context.layers;
    if (files.length < 2 || this.#needsMajor) return undefined;
    for (const [group, members] of filesByGroup(files)) {
      const run = chooseEarnedMerge(members, credits.among(members), times);
      if (run !== undefined) return { group, files: members, ...run };
    }
    return undefined;
  }

  #chooseSuperseded(minShare: number): ChosenRun | undefined {
    const { files } = this.#context.layers;
    if (files.length < 2 || this.#needsMajor) return undefined;
    for (const [group, members] of filesByGroup(files)) {
      const run = chooseSuperseded(this.#supersededRuns(group), minShare, this.#trust);
      if (run !== undefined) return { group, files: members, from: run.from, to: run.to };
    }
    return undefined;
  }

  /** The estimate is made once for each list of files. */
  #supersededRuns(group: string): readonly SupersededRun[] {
    const { files } = this.#context.layers;
    if (this.#runs?.of !== files)
      this.#runs = {
        of: files,
        byGroup: new Map(
          [...filesByGroup(files)].flatMap(([name, members]) =>
            // most tablets are small: no merge of theirs saves enough
            sizeOf(members.slice(1)) >= MIN_SAVED_BYTES ? [[name, supersededRuns(members)] as const] : [],
          ),
        ),
      };
    return this.#runs.byGroup.get(group) ?? [];
  }

  #planMerge(): Plan | undefined {
    const due = this.#chooseMerge();
    const earned = due === undefined ? this.#chooseEarned(1) : undefined;
    const chosen = due ?? earned ?? this.#chooseSuperseded(QUIET_SHARE);
    if (chosen === undefined) return undefined;
    const { group, files, from, to } = chosen;
    const inputs = files.slice(from, to + 1);
    assert(inputs.length === to - from + 1, 'a merge takes neighbours in age');
    assert(
      !inputs.some(({ isPartial }) => isPartial),
      'a file that holds a part of its time is merged with all files only',
    );
    const collection = to < files.length - 1 ? 'nothing' : this.#collection(inputs);
    return {
      inputs,
      collection,
      since: sinceOf(inputs),
      outputs: [{ group, families: groupingOf(this.#context.schema()).familiesIn(group), inputs: inputs.map(inputOf) }],
      isEarned: earned !== undefined,
      supersededBytes:
        this.#supersededRuns(group).find((run) => run.from === from && run.to === to)?.supersededBytes ?? 0,
    };
  }

  #planMajor(): Plan | undefined {
    const inputs = this.#context.layers.files;
    if (inputs.length === 0) return undefined;
    const grouping = groupingOf(this.#context.schema());
    // a group without inputs has no output
    const outputs = [...grouping.names, TOKEN_GROUP].map((group) => {
      const families = grouping.familiesIn(group);
      const from = new Set(inputs.filter((file) => holdsAny(file, families)).map((file) => file.group));
      return { group, families, inputs: inputs.filter((file) => from.has(file.group)).map(inputOf) };
    });
    return {
      inputs,
      collection: this.#collection(inputs),
      since: 'beginning',
      outputs: outputs.filter((output) => output.inputs.length > 0),
      isEarned: false,
      supersededBytes: 0,
    };
  }

  #collection(inputs: readonly TabletFile[]): Collection {
    return this.#context.layers.deletesRangesAbove(inputs) ? 'aged' : 'all';
  }
}

function sizeOf(files: readonly TabletFile[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

function inputOf({ path, clips }: TabletFile): CompactionInput {
  return { path, clips };
}

/** `inputs`: newest first. */
function sinceOf(inputs: readonly TabletFile[]): CompactionJob['since'] {
  const oldest = inputs.at(-1)?.properties.lineage;
  return oldest && (oldest.since ?? 'beginning');
}

function holdsAny({ properties }: TabletFile, families: readonly string[]): boolean {
  return properties.families === undefined || properties.families.some(({ family }) => families.includes(family));
}
