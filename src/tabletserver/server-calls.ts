/** Answers the internal calls of a tablet server: passes each to the part that carries it out. */
import { assert, BigtableError, Code, toBigtableError } from '../base/index.ts';
import type { ServerLog } from '../commitlog/index.ts';
import { type CallHandler, type Env, type PlainError, type RequestContext, toPlainError } from '../env/index.ts';
import type { MetadataClient, SchemaCache } from '../locator/index.ts';
import { type MetadataKey, type MetadataRow, schemaPath } from '../metadata/index.ts';
import { type ChangeBatch, rangeContains, type RowRange, type TabletStatistics } from '../model/index.ts';
import {
  callHandler,
  type FromMaster,
  type Handlers,
  type Holdings,
  isNotServing,
  logPathOf,
  notServing,
  PROTOCOL,
  type ReadChangesMessage,
  type ServerStatus,
  type TabletBackup,
  type TabletRef,
  type TabletServerCalls,
} from '../protocol/index.ts';
import type { RawCallHandler } from '../service/index.ts';
import { ChangeReader, checkWithin } from './change-reader.ts';
import { CallTurns } from './call-turns.ts';
import type { ChangeRetention } from './change-retention.ts';
import type { CompactionSchedule } from './compaction-schedule.ts';
import { FileCopier } from './file-copier.ts';
import { LaterSchemas } from './later-schemas.ts';
import type { LoadAftermath } from './load-aftermath.ts';
import type { LoadHistory } from './load-history.ts';
import type { LogSorter } from './log-sorter.ts';
import { MasterFence } from './master-fence.ts';
import type { MemtableBudget } from './memtable-budget.ts';
import { PassedCalls } from './passed-calls.ts';
import { Quotas } from './quotas.ts';
import { RowCalls } from './row-calls.ts';
import type { TabletLoader } from './tablet-loader.ts';
import { kindOf, type ServedTablet, TABLET_KINDS, type TabletMap } from './tablet-map.ts';
import type { TabletSplits } from './tablet-splits.ts';
import { Traffic } from './traffic.ts';
import { MissedLoads } from './missed-loads.ts';
import { UnclaimedTablets } from './unclaimed-tablets.ts';

export interface ServerCallsOptions {
  readonly retention: Pick<ChangeRetention, 'before'>;
  readonly env: Env;
  readonly serverName: string;
  readonly address: string;
  readonly log: Pick<ServerLog, 'newestPosition' | 'pendingBytes'>;
  readonly metadata: MetadataClient;
  readonly tablets: TabletMap;
  readonly schemas: SchemaCache;
  readonly budget: MemtableBudget;
  readonly compactions: CompactionSchedule;
  readonly loader: TabletLoader;
  readonly aftermath: LoadAftermath;
  readonly sorter: LogSorter;
  readonly loads: LoadHistory;
  readonly splits: TabletSplits;
  readonly leaseHeld: () => boolean;
  readonly hasEnded: () => boolean;
  readonly serverContext: () => RequestContext;
  readonly rawCalls?: RawCallHandler | undefined;
  readonly onDoorFiles?: ((paths: readonly string[]) => Promise<void>) | undefined;
  /** Called with each call of a master. */
  readonly onMaster: () => void;
}

export class ServerCalls {
  readonly #options: ServerCallsOptions;
  readonly #rows: RowCalls;
  readonly #traffic: Traffic;
  readonly #quotas: Quotas;
  readonly #fence: MasterFence;
  readonly #passed: PassedCalls;
  readonly #laterSchemas: LaterSchemas;
  readonly #unclaimed: UnclaimedTablets;
  readonly #missed: MissedLoads;
  readonly #copier: FileCopier;

  constructor(options: ServerCallsOptions) {
    const { env, schemas, loader, tablets } = options;
    this.#options = options;
    this.#traffic = new Traffic((tableId) => schemas.byId(tableId));
    this.#quotas = new Quotas(tablets);
    this.#laterSchemas = new LaterSchemas({ schemas, clock: env.clock });
    this.#copier = new FileCopier(env);
    this.#fence = new MasterFence(options.serverName, options.onMaster);
    this.#rows = new RowCalls({
      ...options,
      clock: env.clock,
      traffic: this.#traffic,
      quotas: this.#quotas,
      schemaOf: (tableId) => schemas.byId(tableId),
      damageOver: (tableId, row) => loader.damageOver(tableId, row),
      onMissed: (tableId, row) => this.#missed.asked(tableId, row),
    });
    const load = (ref: TabletRef): Promise<void> => this.#load(ref);
    this.#unclaimed = new UnclaimedTablets({ ...options, load });
    this.#missed = new MissedLoads({ ...options, load, isLoading: (ref) => loader.isLoading(ref) });
    this.#passed = new PassedCalls({ ...options, serving: (tableId, row) => this.#rows.serving(tableId, row) });
  }

  /** The server ends: it takes back nothing that it has released, and loads nothing that no master has announced. */
  stop(): void {
    this.#unclaimed.stop();
    this.#missed.stop();
  }

  handler(): CallHandler {
    const { env, loader, aftermath, splits } = this.#options;
    const rows = this.#rows;
    const passed = this.#passed;
    const later = this.#laterSchemas;
    const turns = new CallTurns(env.clock);
    const handlers: Handlers<TabletServerCalls> = {
      status: this.#fenced(async ({ brief = false }) => this.#status(brief)),
      load: this.#fenced(async ({ tablets, schemas = [] }) => {
        for (const { tableId, tableName, version } of schemas)
          await this.#options.schemas.reach(tableId, tableName, version);
        return this.#each(tablets, (ref) => this.#load(ref)).finally(() => aftermath.callEnded());
      }),
      unload: this.#fenced(({ tablets, flush }) => this.#each(tablets, (ref) => this.#unload(ref, flush))),
      mutateRow: later.call(turns.call((message, context) => rows.mutateRow(message, context))),
      mutateRows: later.call(turns.call((message, context) => rows.mutateRows(message, context))),
      checkAndMutateRow: later.call(turns.call((message, context) => rows.checkAndMutateRow(message, context))),
      readModifyWriteRow: later.call(turns.call((message, context) => rows.readModifyWriteRow(message, context))),
      passedWrite: later.call((message, context) => passed.write(message, context)),
      sampleKeys: async ({ tableId, range, partBytes }) => {
        const loading = rows.servingAll(tableId, range).tablet.loadIndexes();
        if (loading !== undefined) await loading;
        const { tablet } = rows.servingAll(tableId, range);
        return { samples: tablet.sampleKeys(partBytes), sizeBytes: tablet.sizeBytes() };
      },
      tabletStatistics: async ({ tableId, range }) => this.#statistics(tableId, range),
      compact: async ({ tableId, range }, context) => {
        await this.#compact(rows.servingAll(tableId, range), context);
        return undefined;
      },
      compactMetadata: async (_message, context) => {
        await this.#compactMetadata(context);
        return undefined;
      },
      counters: async () => ({ name: env.metrics.name(env.random), counters: env.metrics.snapshot() }),
      hotTablets: async (message) => this.#options.loads.hot(message),
      familyUsage: async ({ tableId, range }) => rows.servingAll(tableId, range).tablet.familyUsage(),
      traffic: async ({ tableId }) => this.#traffic.snapshot(tableId),
      measureUsage: this.#fenced(({ tableIds }) => this.#quotas.measure(tableIds)),
      usageCounted: this.#fenced(async ({ tables }) => {
        this.#quotas.counted(tables);
        return undefined;
      }),
      split: async ({ tableId, row, near }) => {
        await splits.split(rows.serving(tableId, row), row, near);
        return undefined;
      },
      dropRows: (message, context) => rows.dropRows(message, context),
      commit: this.#fenced(({ commits }, context) => rows.commit(commits, context)),
      flush: this.#fenced(async ({ keys }) => {
        await this.#flush(keys);
        return undefined;
      }),
      holdings: this.#fenced(async () => {
        await loader.dropDeleted();
        const renewing = this.#renewRows();
        // a sweep goes on: it spares too many logs
        if (renewing !== undefined) await renewing.catch((error: unknown) => this.#logNotRenewed(error));
        return this.holdings();
      }),
      sortLog: this.#fenced(async ({ server, start, end, maxBytes }) => {
        await this.#options.sorter.sort(server, { from: start, to: end }, maxBytes);
        return undefined;
      }),
      backUpTablets: this.#fenced(({ tablets }) => Promise.all(tablets.map((ref) => this.#backUp(ref)))),
      copyFile: this.#fenced((message) => this.#copier.copy(message)),
      schemaChanged: this.#fenced(async ({ tableName }) => {
        await this.#schemaChanged(tableName);
        return undefined;
      }),
      doorFilesChanged: this.#fenced(async ({ paths }) => {
        await this.#options.onDoorFiles?.(paths);
        return undefined;
      }),
    };
    return callHandler<TabletServerCalls>(handlers, {
      read: later.stream(turns.stream((message, context) => rows.read(message, context))),
      passedRead: later.stream((message, context) => passed.read(message, context)),
      readChanges: later.stream(turns.stream((message, context) => this.#readChanges(message, context))),
    });
  }

  #readChanges(message: ReadChangesMessage, context: RequestContext): AsyncIterable<ChangeBatch> {
    const { env, log, retention, serverName, tablets, schemas, leaseHeld } = this.#options;
    const { tableId, range } = message;
    const served = this.#rows.serving(tableId, range.start);
    checkWithin(served, range);
    if (schemas.byId(tableId)?.changeStream === undefined) throw noChangeStream(tableId);
    const isServed = (one: ServedTablet): boolean =>
      tablets.has(one) && leaseHeld() && schemas.byId(one.tableId)?.changeStream !== undefined;
    return new ChangeReader({ ...env, log, retention, serverName, isServed }, served, message, context).read();
  }

  /** A call that is carried out only for the incarnation that it names, and not for a master that was replaced. */
  #fenced<M extends FromMaster, A>(
    answer: (message: M, context: RequestContext) => Promise<A>,
  ): (message: M, context: RequestContext) => Promise<A> {
    return async (message, context) => {
      this.#fence.check(message);
      return answer(message, context);
    };
  }

  #status(brief: boolean): ServerStatus {
    const { serverName, tablets, leaseHeld } = this.#options;
    const served = brief ? [] : [...tablets.all()];
    return {
      name: serverName,
      protocol: PROTOCOL,
      locked: leaseHeld(),
      tablets: served.map(({ key, epoch, tablet, requests }) => ({
        key,
        epoch,
        sizeBytes: tablet.sizeBytes(),
        requests,
      })),
    };
  }

  async #load(ref: TabletRef): Promise<void> {
    const { loader, aftermath, serverContext } = this.#options;
    await loader.load(ref, serverContext());
    aftermath.loaded(ref.key);
  }

  /** Without `flush` the row of the tablet is gone. */
  async #unload(ref: TabletRef, flush: boolean): Promise<void> {
    await this.#options.loader.unload(ref, flush);
    if (flush) this.#unclaimed.released(ref);
  }

  async #each(
    refs: readonly TabletRef[],
    work: (ref: TabletRef) => Promise<void>,
  ): Promise<(PlainError | undefined)[]> {
    if (this.#options.hasEnded()) throw new BigtableError(Code.UNAVAILABLE, 'the tablet server has ended');
    return Promise.all(
      refs.map((ref) =>
        work(ref).then(
          () => undefined,
          (thrown: unknown) => toPlainError(toBigtableError(thrown)),
        ),
      ),
    );
  }

  /** The lease holds after the flush: until then no other server had the tablet. */
  async #backUp({ key, epoch }: TabletRef): Promise<TabletBackup> {
    const { tablets, leaseHeld } = this.#options;
    const served = tablets.get(key);
    if (served === undefined || served.epoch !== epoch) throw notHere();
    const { tableId, range, files, clips, redo, lastServerMicros } = await served.tablet.shareFiles();
    if (!leaseHeld()) throw new BigtableError(Code.UNAVAILABLE, 'the tablet server may have lost its lock');
    if (tablets.get(key) !== served) throw notHere();
    const row: MetadataRow = {
      tableId,
      range,
      server: undefined,
      isOfBackup: true,
      epoch: 0,
      version: 0,
      commitId: '',
      files,
      clips,
      // no record in the files is newer: what is written to a table that is restored from them must be
      redo,
      logs: [],
      lastServerMicros,
    };
    return { row, sizeBytes: served.tablet.sizeBytes() };
  }

  #statistics(tableId: string, range: RowRange): TabletStatistics {
    const { tablet } = this.#rows.servingAll(tableId, range);
    const { memtableBytes, state } = tablet;
    const sizeBytes = tablet.sizeBytes();
    assert(sizeBytes >= memtableBytes, 'a tablet is no smaller than its memtables');
    return {
      range,
      server: this.#options.serverName,
      files: Object.values(state.files).reduce((sum, { length }) => sum + length, 0),
      fileBytes: sizeBytes - memtableBytes,
      memoryBytes: memtableBytes,
    };
  }

  /**
   * A major compaction. "Not serving" if the tablet is split or released first: the caller then finds its successors.
   */
  async #compact(served: ServedTablet, context: RequestContext): Promise<void> {
    const { compactions, splits, tablets, hasEnded } = this.#options;
    try {
      await compactions.compact(served, context);
    } catch (error) {
      await splits.under(served.key);
      if (hasEnded() || tablets.has(served)) throw error;
      throw notServing(served.tableId, served.range.start);
    }
  }

  async #compactMetadata(context: RequestContext): Promise<void> {
    const { tablets } = this.#options;
    for (const kind of ['metadata', 'root']) {
      const all = [...tablets.all()].filter((one) => kindOf(one) === kind);
      await Promise.all(all.map((one) => this.#compactParts(one, context)));
    }
  }

  /** Compacts a tablet, or those that it was split into meanwhile; one that was released is its next server's. */
  async #compactParts(served: ServedTablet, context: RequestContext): Promise<void> {
    try {
      await this.#compact(served, context);
    } catch (thrown) {
      if (!isNotServing(toBigtableError(thrown))) throw thrown;
      const { tableId, range } = served;
      const parts = [...this.#options.tablets.all()].filter(
        (one) => one !== served && one.tableId === tableId && rangeContains(range, one.range.start),
      );
      await Promise.all(parts.map((part) => this.#compactParts(part, context)));
    }
  }

  /**
   * Writes the memtables of the named tablets, or of all, to files. METADATA's come last, since the others commit to
   * them.
   */
  async #flush(keys: readonly MetadataKey[] | undefined): Promise<void> {
    const { tablets, budget } = this.#options;
    for (const kind of TABLET_KINDS) {
      const all = keys ? keys.flatMap((key) => tablets.get(key) ?? []) : [...tablets.all()];
      const flush = async (served: ServedTablet): Promise<void> => {
        try {
          await budget.flush(served);
        } catch (error) {
          // one released meanwhile was flushed, or its table is gone: a caller that names tablets must get the error
          if (keys || tablets.has(served)) throw error;
        }
      };
      const ends = await Promise.allSettled(all.filter((one) => kindOf(one) === kind).map(flush));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed) throw failed.reason;
    }
  }

  /**
   * Makes the rows of the table's tablets, or of all, say whether changes are kept, and where. Repeated for tablets
   * that are split meanwhile.
   */
  #renewRows(tableName?: string): Promise<void> | undefined {
    const left = this.#outdated(tableName);
    return left.length === 0 ? undefined : this.#renewAll(left, tableName);
  }

  #logNotRenewed(thrown: unknown): void {
    const error = toBigtableError(thrown).message;
    this.#options.env.logger.info('a tablet names logs whose changes are no longer kept', { error });
  }

  #outdated(tableName: string | undefined): ServedTablet[] {
    const { schemas, tablets } = this.#options;
    const isOf = (tableId: string): boolean => tableName === undefined || schemas.byId(tableId)?.name === tableName;
    return [...tablets.all()].filter(({ tableId, host }) => isOf(tableId) && host.isOutdated);
  }

  async #renewAll(first: readonly ServedTablet[], tableName: string | undefined): Promise<void> {
    const { tablets, splits } = this.#options;
    for (let left = first; left.length > 0; left = this.#outdated(tableName)) {
      await Promise.all(
        left.map((served) =>
          served.tablet.renewRow().catch(async (thrown: unknown) => {
            await splits.under(served.key);
            if (tablets.has(served)) throw thrown;
          }),
        ),
      );
    }
  }

  /** All files named after this server are its own while it lives: one may be being written and in no row yet. */
  holdings(): Holdings {
    const { tablets, loader, serverName } = this.#options;
    const files = [...tablets.all()].flatMap(({ tablet }) => tablet.heldFiles());
    return { files: [...files, ...loader.heldFiles()], logs: [logPathOf(serverName)] };
  }

  async #schemaChanged(tableName: string): Promise<void> {
    const { schemas, tablets, compactions } = this.#options;
    await schemas.refresh(tableName);
    const schema = schemas.byName(tableName);
    if (schema !== undefined) this.#quotas.schemaChanged(schema);
    const renewing = this.#renewRows(tableName);
    if (renewing !== undefined) await renewing;
    const { onDoorFiles } = this.#options;
    if (onDoorFiles !== undefined) await onDoorFiles([schemaPath(tableName)]);
    // families may have been moved to other locality groups
    for (const served of tablets.all())
      if (schemas.byId(served.tableId)?.name === tableName) compactions.changed(served);
  }
}

function noChangeStream(tableId: string): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, `table ${tableId} has no change stream`);
}

function notHere(): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, 'the tablet is not served here at that epoch');
}
