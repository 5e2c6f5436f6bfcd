/**
 * Reads and commits rows of METADATA for tablet servers and masters: finds their tablets by the locator, sends lost
 * calls again, and treats the root tablet's row, which is a file of the lock service, as any other.
 *
 * A commit whose outcome is unknown is sent again until its id is in the row or the row has moved on, even while
 * METADATA is damaged: so the answer is always known. It is not sent any more once its rows lie in two tablets of
 * METADATA, which are never merged: then the rows tell whether it was done before.
 */
import { assert, BigtableError, Code, type ByteString, toBigtableError, unavailable } from '../base/index.ts';
import {
  type Clock,
  type LockHandle,
  type LockService,
  type Random,
  type RequestContext,
  type Transport,
  within,
} from '../env/index.ts';
import {
  decodeHistory,
  decodeRootFile,
  decodeRow,
  encodeRootFile,
  judge,
  keysOfTable,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataKey,
  type MetadataRow,
  ROOT_KEY,
} from '../metadata/index.ts';
import { type Cell, rangeContains, rangeOfRow, type RowRange, type TabletHistory } from '../model/index.ts';
import { callServer, type CommitOutcome, isDeposed, isNotServing, readTablet } from '../protocol/index.ts';
import { Backoff } from './backoff.ts';
import type { AssignedTablet } from './location-cache.ts';
import { type Locator, ROOT_PATH } from './locator.ts';
import { RowCollector } from './row-collector.ts';

/** Commits sent in one call: a few hundred kilobytes. */
const MAX_COMMITS_PER_CALL = 256;

/** A move of a METADATA tablet takes less. */
const STALL_MS = 5000;

export interface MetadataClientOptions {
  readonly locator: Locator;
  readonly transport: Transport;
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly random: Random;
  /** The owner's: the root tablet's row is changed only while it is held. */
  readonly lock?: LockHandle;
  /** Where the owner is a master: the epoch of its lock. */
  readonly masterEpoch?: number;
  /** True when the owner has ended: then no call is sent again. */
  stopped(): boolean;
  /** Called after each STALL_MS that a call has waited for METADATA, which is not served. The call still waits. */
  readonly onStall?: () => void;
}

/** What is known of the commits of a call. */
interface CommitProgress {
  readonly outcomes: (CommitOutcome | undefined)[];
  /** True once the answer to one of them was lost. */
  maybeDone: boolean;
}

/** What a row says; undefined where there is no tablet. */
type Decode<T> = (key: MetadataKey, cells: readonly Cell[]) => T | undefined;

interface Pending {
  readonly commit: MetadataCommit;
  readonly index: number;
}

export class MetadataClient {
  readonly #options: MetadataClientOptions;

  constructor(options: MetadataClientOptions) {
    this.#options = options;
  }

  async readRow(key: MetadataKey, context: RequestContext): Promise<MetadataRow | undefined> {
    if (key === ROOT_KEY) return this.readRoot(context);
    for await (const rows of this.scan(rangeOfRow(key), context)) return rows[0];
    return undefined;
  }

  /** The root tablet's row; undefined if there is no database yet. */
  async readRoot(context: RequestContext): Promise<MetadataRow | undefined> {
    const { clock, lockService } = this.#options;
    const file = await within(lockService.read(ROOT_PATH), context, clock);
    return file && decodeRootFile(file.contents);
  }

  /**
   * Rows in ascending order, in batches, each as it was in one instant. Continues if METADATA's tablets move meanwhile.
   */
  scan(range: RowRange, context: RequestContext): AsyncGenerator<readonly MetadataRow[], void, void> {
    return this.#scan(range, context, decodeRow);
  }

  /** The same, of the events of its tablets. One that is divided meanwhile may be there whole, divided, or both. */
  scanEvents(tableId: string, context: RequestContext): AsyncGenerator<readonly TabletHistory[], void, void> {
    return this.#scan(keysOfTable(tableId), context, decodeHistory);
  }

  async *#scan<T>(
    range: RowRange,
    context: RequestContext,
    decode: Decode<T>,
  ): AsyncGenerator<readonly T[], void, void> {
    const { locator } = this.#options;
    const backoff = new Backoff(this.#options);
    let start: ByteString = range.start;
    while (range.end === undefined || start < range.end) {
      let tablet: AssignedTablet | undefined;
      try {
        tablet = await locator.locate(METADATA_TABLE_ID, start, context);
        const tabletEnd = tablet.range.end;
        const end =
          tabletEnd === undefined || (range.end !== undefined && range.end < tabletEnd) ? range.end : tabletEnd;
        for await (const rows of this.#scanTablet(tablet, { start, end }, context, decode)) {
          const last = rows.at(-1);
          if (last === undefined) continue;
          start = `${last.key}\0`;
          backoff.restart();
          yield rows.map(({ row }) => row);
        }
        if (end === undefined) return;
        assert(end >= start, 'a scan of METADATA ascends');
        start = end;
      } catch (error) {
        if (!(error instanceof BigtableError && error.retry)) throw error;
        if (tablet) locator.drop(tablet);
        await this.#wait(backoff, context, error);
      }
    }
  }

  async *#scanTablet<T>(
    tablet: AssignedTablet,
    range: RowRange,
    context: RequestContext,
    decode: Decode<T>,
  ): AsyncGenerator<{ key: MetadataKey; row: T }[], void, void> {
    const message = { tableId: METADATA_TABLE_ID, ranges: [range], rowsLimit: 0, reversed: false };
    const collector = new RowCollector();
    for await (const batch of readTablet(this.#options.transport, tablet.server.address, message, context)) {
      collector.add(batch);
      yield collector.take().flatMap(({ row: key, cells }) => {
        const row = decode(key, cells);
        return row ? [{ key, row }] : [];
      });
    }
  }

  /**
   * Each commit by itself, in any order. Resolves when every outcome is known; rejects if the context ends first. An
   * error says "not reached" only if surely none of them was done.
   */
  async commit(commits: readonly MetadataCommit[], context: RequestContext): Promise<CommitOutcome[]> {
    const progress: CommitProgress = { outcomes: new Array(commits.length), maybeDone: false };
    try {
      return await this.#commitAll(commits, progress, context);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      const isUncertain = progress.maybeDone || progress.outcomes.some((outcome) => outcome?.kind === 'done');
      if (!isUncertain || !isNotServing(error)) throw error;
      throw unavailable(`a commit to METADATA may have been carried out: ${error.message}`, error);
    }
  }

  async #commitAll(
    commits: readonly MetadataCommit[],
    progress: CommitProgress,
    context: RequestContext,
  ): Promise<CommitOutcome[]> {
    const { outcomes } = progress;
    const backoff = new Backoff(this.#options);
    let left = commits.map((commit, index): Pending => ({ commit, index }));
    for (;;) {
      const failed: Pending[] = [];
      let failure: BigtableError | undefined;
      let batches: readonly CommitBatch[] = [];
      try {
        const found = await this.#batches(left, context);
        for (const { commit, index } of found.apart) outcomes[index] = await this.#outcomeApart(commit, context);
        batches = found.batches;
      } catch (thrown) {
        // METADATA cannot be read now, whatever the reason: what was sent before may have been done
        if (!progress.maybeDone) throw thrown;
        failure = toBigtableError(thrown);
        failed.push(...left);
      }
      for (const batch of batches) {
        try {
          const answers = await this.#send(batch, context);
          batch.pending.forEach(({ index }, i) => (outcomes[index] = answers[i]));
        } catch (thrown) {
          const error = toBigtableError(thrown);
          if (batch.tablet) this.#options.locator.drop(batch.tablet);
          if (!isNotServing(error)) {
            if (isDeposed(error)) throw error;
            if (!error.retry && !progress.maybeDone && error.code !== Code.DEADLINE_EXCEEDED) throw error;
            progress.maybeDone = true;
          }
          failure = error;
          failed.push(...batch.pending);
        }
      }
      if (failure === undefined) {
        return outcomes.map((outcome, i) => {
          assert(outcome !== undefined, 'each commit was answered, or is sent again');
          assert(
            outcome.kind === 'done' || outcome.rows.every((row) => row?.commitId !== commits[i]!.id),
            'no row names a commit that was refused',
          );
          return outcome;
        });
      }
      assert(failed.length > 0 && failed.length <= left.length, 'only commits that have failed are sent again');
      left = failed;
      await this.#wait(backoff, context, failure);
    }
  }

  /** `apart`: commits whose rows lie in two tablets of METADATA. */
  async #batches(
    pending: readonly Pending[],
    context: RequestContext,
  ): Promise<{ readonly batches: readonly CommitBatch[]; readonly apart: readonly Pending[] }> {
    const apart: Pending[] = [];
    const open = new Map<AssignedTablet | undefined, CommitBatch>();
    const batches: CommitBatch[] = [];
    const backoff = new Backoff(this.#options);
    for (const item of pending) {
      const { rows } = item.commit;
      const [first] = rows;
      assert(first !== undefined, 'a commit changes at least one row');
      const tablet = first.key === ROOT_KEY ? undefined : await this.#locate(first.key, context, backoff);
      // a location may be too wide, from before a split; where it ends a tablet ends for ever
      if (tablet !== undefined && !rows.every(({ key }) => rangeContains(tablet.range, key))) {
        apart.push(item);
        continue;
      }
      let batch = open.get(tablet);
      if (batch === undefined || batch.pending.length >= MAX_COMMITS_PER_CALL) {
        batch = { tablet, pending: [] };
        open.set(tablet, batch);
        batches.push(batch);
      }
      batch.pending.push(item);
    }
    return { batches, apart };
  }

  /** The outcome of a commit that cannot be carried out any more: it was done if its rows show it. */
  async #outcomeApart(commit: MetadataCommit, context: RequestContext): Promise<CommitOutcome> {
    const rows = new Map<MetadataKey, MetadataRow | undefined>();
    for (const { key } of commit.rows) rows.set(key, await this.readRow(key, context));
    return judge(commit, (key) => rows.get(key)) === 'done'
      ? { kind: 'done' }
      : { kind: 'refused', rows: [...rows.values()] };
  }

  async #locate(key: MetadataKey, context: RequestContext, backoff: Backoff): Promise<AssignedTablet> {
    for (;;) {
      try {
        return await this.#options.locator.locate(METADATA_TABLE_ID, key, context);
      } catch (error) {
        if (!(error instanceof BigtableError && error.retry)) throw error;
        await this.#wait(backoff, context, error);
      }
    }
  }

  async #wait(backoff: Backoff, context: RequestContext, error: BigtableError): Promise<void> {
    if (backoff.failingMs >= STALL_MS) {
      backoff.restart();
      this.#options.onStall?.();
    }
    if (!this.#options.stopped()) await backoff.wait(context, error);
    if (this.#options.stopped()) throw error;
  }

  #send({ tablet, pending }: CommitBatch, context: RequestContext): Promise<readonly CommitOutcome[]> {
    if (tablet === undefined) return Promise.all(pending.map(({ commit }) => this.#commitRoot(commit)));
    const { name, address } = tablet.server;
    const { transport, masterEpoch } = this.#options;
    const commits = pending.map(({ commit }) => commit);
    const message = { to: name, commits, ...(masterEpoch !== undefined && { masterEpoch }) };
    return callServer(transport, address, 'commit', message, context);
  }

  /** A commit on the root tablet's row, by compare-and-set. */
  async #commitRoot(commit: MetadataCommit): Promise<CommitOutcome> {
    const { lockService, lock } = this.#options;
    const row = commit.rows[0]?.row;
    assert(row !== undefined && commit.rows.length === 1, 'the root tablet is never deleted nor changed with another');
    assert(commit.rows[0]?.key === ROOT_KEY, 'the root file holds the row of the root tablet');
    for (;;) {
      const file = await lockService.read(ROOT_PATH);
      const now = file && decodeRootFile(file.contents);
      const verdict = judge(commit, () => now);
      if (verdict === 'done') return { kind: 'done' };
      if (verdict === 'refused') return { kind: 'refused', rows: [now] };
      const version = file?.version ?? 0;
      try {
        await lockService.write(ROOT_PATH, encodeRootFile(row), { version, ...(lock && { lock }) });
        return { kind: 'done' };
      } catch (thrown) {
        if (toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
        // the file is as it was, so the owner's lock is lost
        if (lock && ((await lockService.read(ROOT_PATH))?.version ?? 0) === version) throw lockLost(thrown);
      }
    }
  }
}

/** Not to be sent again: the lock does not come back. */
function lockLost(cause: unknown): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, 'the lock of the sender of a commit is lost', { cause });
}

interface CommitBatch {
  readonly tablet: AssignedTablet | undefined;
  readonly pending: Pending[];
}
