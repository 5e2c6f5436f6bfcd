/**
 * A tablet server: one incarnation with a unique name, one commit log, and the tablets that the master has given it. Answers the
 * calls of `protocol`; knows neither clients nor other servers.
 *
 * Invariants: it answers only for rows of tablets it serves, and refuses all others with "not serving"; it ends itself when its log fails or its
 * lock is lost, and is then never heard of again: a new incarnation takes its place.
 */
import { BigtableError, type ByteString, Code, invalidArgument, toBigtableError, unavailable } from '../base/index.ts';
import { Origin, readEncodedAppends, ServerLog } from '../commitlog/index.ts';
import { type CallHandler, type Env, inParts, Pacer, type RequestContext, requestContext } from '../env/index.ts';
import { Locator, MetadataClient, SchemaCache } from '../locator/index.ts';
import { METADATA_TABLE_ID, type MetadataCommit, type MetadataKey, ROOT_KEY } from '../metadata/index.ts';
import {
  type CellRun, intersectRanges, isCellRun, isEmptyRange, type Limits, type Mutation, type Mutations, rangeContains, type ReadBatch, type RowRange, sliceMutations, type TableSchema,
} from '../model/index.ts';
import {
  callHandler, type CheckAndMutateMessage, type CommitOutcome, FILES_DIRECTORY, type Handlers, type Holdings, logPathOf, notServing, plainError, type PlainError,
  PROTOCOL, type ReadMessage, type RowEntry, type ServerStatus, type TabletRef, type TabletServerCalls,
} from '../protocol/index.ts';
import { checkMutations, checkRules, resolveTimestamps } from '../service/index.ts';
import { BlockCache, MemoryBudget, RowCache } from '../sstable/index.ts';
import { Tablet } from '../tablet/index.ts';
import { CompactionSchedule } from './compaction-schedule.ts';
import { LogReplay } from './log-replay.ts';
import { MemtableBudget } from './memtable-budget.ts';
import { commitRows } from './metadata-commits.ts';
import { ServerSession } from './server-session.ts';
import type { HostServices } from './tablet-host.ts';
import { TabletLoader } from './tablet-loader.ts';
import { TabletSplits } from './tablet-splits.ts';
import { MasterNotices } from './master-notices.ts';
import { type ServedTablet, TabletMap } from './tablet-map.ts';

export interface TabletServerSettings {
  /** Default `synced`. `buffered`: users' writes are acknowledged before their records are durable; METADATA's never are. */
  readonly durability?: 'synced' | 'buffered';
  readonly limits: Limits;
  readonly blockSizeBytes: number;
  readonly blockCacheBytes: number;
  /** Rows of SSTables. */
  readonly scanCacheBytes: number;
  readonly memtableBytes: number;
  /** In-memory locality groups of users' tables. */
  readonly inMemoryBytes: number;
  readonly logLimitBytes: number;
  /** A tablet whose files take more is split. */
  readonly tabletBytes: number;
  /** Compactions of files at once. */
  readonly compactionsAtOnce: number;
  /** Within which time deleted data is gone from files. */
  readonly majorCompactionMs: number;
}

export interface TabletServerOptions {
  readonly env: Env;
  readonly settings: TabletServerSettings;
  /** Where it is reached. */
  readonly address: string;
  /** Told once when the server ends without having been closed. */
  readonly onEnd?: (reason: BigtableError) => void;
}

/** What a server that is closed may leave to be replayed: that is quicker than many small files. */
const REPLAYED_BYTES = 4 * 1024 * 1024;
/** Unless some tablet's row lists more logs than this. */
const REPLAYED_LOGS = 4;
/** A server that is closed tries so long to commit what it flushes; what it cannot is left to be replayed. */
const CLOSE_PATIENCE_MS = 1000;
/** A change with more mutations is prepared over several steps of the event loop. */
const MOST_IN_ONE_STEP = 1000;
/** After the last load tablets are compacted and split that were due when they came; before it that would hold up the loads, and the first reads. */
const FIRST_WORK_MS = 500;
/** After the last load: what was replayed is written to files, so that dead logs are needed no more. */
const SETTLE_MS = 2000;

export class TabletServer {
  readonly name: string;
  readonly address: string;
  readonly #env: Env;
  readonly #onEnd: ((reason: BigtableError) => void) | undefined;
  readonly #tablets = new TabletMap();
  readonly #schemas: SchemaCache;
  readonly #log: ServerLog;
  readonly #budget: MemtableBudget;
  readonly #compactions: CompactionSchedule;
  readonly #loader: TabletLoader;
  readonly #splits: TabletSplits;
  readonly #notices: MasterNotices;
  readonly #replay: LogReplay;
  readonly #cache: BlockCache;
  readonly #metadata: MetadataClient;
  readonly #session: ServerSession;
  #stopServing: (() => Promise<void>) | undefined;
  #settling: { cancel(): void } | undefined;
  /** Tablets whose files nobody has looked at since they were loaded. */
  readonly #loaded = new Set<MetadataKey>();
  #lookingAtLoaded: { cancel(): void } | undefined;
  #ended = false;
  /** Closing: whether everything is written to files. */
  #leavesNothing = false;
  /** When commits to METADATA are no longer sent again: some time after closing has begun. */
  #givesUpAtMs = Number.POSITIVE_INFINITY;
  #files = 0;

  private constructor(options: TabletServerOptions, name: string, log: ServerLog, session: ServerSession) {
    const { env, settings, address, onEnd } = options;
    this.name = name;
    this.address = address;
    this.#env = env;
    this.#onEnd = onEnd;
    this.#log = log;
    this.#session = session;
    const { metrics } = env;
    this.#cache = new BlockCache({ limitBytes: settings.blockCacheBytes, metrics, rowCache: new RowCache({ limitBytes: settings.scanCacheBytes, metrics }) });
    this.#schemas = new SchemaCache(env.lockService, (error) => env.logger.error('a schema could not be read', { error: toBigtableError(error).message }));
    this.#metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => this.#ended || env.clock.monotonicMs() >= this.#givesUpAtMs });
    this.#budget = new MemtableBudget({ limitBytes: settings.memtableBytes, logLimitBytes: settings.logLimitBytes, log, ...env });
    this.#compactions = new CompactionSchedule({
      ...env,
      atOnce: settings.compactionsAtOnce,
      majorMs: settings.majorCompactionMs,
      tablets: () => this.#tablets.all(),
      isServed: (served) => this.#tablets.get(served.key) === served,
    });
    this.#replay = new LogReplay((path) => readEncodedAppends(env.fileSystem, path), env.clock);
    const memory = new MemoryBudget(settings.inMemoryBytes);
    // where tablets are must always be told
    const metadataMemory = new MemoryBudget(Number.POSITIVE_INFINITY);
    this.#loader = new TabletLoader({
      serverName: name,
      services: this.#hostServices(),
      metadata: this.#metadata,
      tablets: this.#tablets,
      budget: this.#budget,
      replay: this.#replay,
      logger: env.logger,
      splitOf: (key) => this.#splits.under(key),
      openTablet: (host, state, records) =>
        Tablet.load({
          env, host, log, cache: this.#cache, memory: state.tableId === METADATA_TABLE_ID ? metadataMemory : memory, limits: settings.limits, blockSizeBytes: settings.blockSizeBytes,
          buffered: settings.durability === 'buffered' && state.tableId !== METADATA_TABLE_ID,
        }, state, records),
    });
    this.#notices = new MasterNotices({ ...env, server: name, context: () => this.#context() });
    this.#splits = new TabletSplits({
      ...env,
      tabletBytes: settings.tabletBytes,
      tablets: this.#tablets,
      loader: this.#loader,
      onSplit: (children) => {
        for (const child of children) this.#compactions.changed(child);
        this.#notices.split(children);
      },
    });
  }

  /** A new incarnation: takes its lock, opens its log, announces itself, and waits to be given tablets. */
  static async start(options: TabletServerOptions): Promise<TabletServer> {
    const { env, address } = options;
    const name = env.random.uniqueName();
    let server: TabletServer | undefined;
    const onLost = (): void => {
      if (server) server.#end(unavailable('the tablet server has lost its lock'));
    };
    const onFailure = (reason: BigtableError): void => {
      if (server) server.#end(reason);
    };
    const session = await ServerSession.open(env.lockService, env.clock, name, onLost);
    const log = await ServerLog.open({ fileSystem: env.fileSystem, path: logPathOf(name), onFailure });
    // a log that METADATA lists is never empty: one that is has lost its beginning
    await log.append({ tableId: METADATA_TABLE_ID, epoch: 0, commitMicros: env.clock.nowMicros(), origin: Origin.user, body: { kind: 'rows', rows: [] } }).durable;
    server = new TabletServer(options, name, log, session);
    await server.#schemas.start();
    server.#stopServing = await env.transport.serve(address, server.#handler());
    await session.announce({ name, address, protocol: PROTOCOL });
    return server;
  }

  /**
   * The first part of ending in good order: serves the tablets of that kind no more. Users' tablets go first, on all servers, since what they flush
   * they commit to METADATA; then METADATA's, which commit to the root tablet. After little was written all is left to be replayed.
   */
  async giveUpTablets(kind: 'users' | 'metadata' | 'root'): Promise<void> {
    if (this.#ended) return;
    this.#settling?.cancel();
    this.#lookingAtLoaded?.cancel();
    this.#compactions.stop();
    this.#notices.stop();
    this.#givesUpAtMs = this.#env.clock.monotonicMs() + CLOSE_PATIENCE_MS;
    await this.#splits.stop();
    await this.#budget.stop();
    const all = [...this.#tablets.all()];
    this.#leavesNothing ||= this.#budget.writtenBytes > REPLAYED_BYTES || all.some(({ tablet }) => tablet.state.logs.length > REPLAYED_LOGS);
    for (const served of all.filter((one) => kindOf(one) === kind)) {
      await this.#loader.giveUp(served, this.#leavesNothing).catch((thrown: unknown) => {
        this.#env.logger.warn('a tablet could not be flushed and is left to be replayed', { table: served.tableId, error: toBigtableError(thrown).message });
      });
    }
  }

  /** Ends in good order: nothing is in flight afterwards, and the lock is free. */
  async close(): Promise<void> {
    for (const kind of ['users', 'metadata', 'root'] as const) await this.giveUpTablets(kind);
    if (this.#ended) return;
    await this.#stopServing?.();
    await this.#finish();
  }

  /** Writes all memtables to files: of the tablets named, or of all. */
  async flush(keys?: readonly string[]): Promise<void> {
    const served = keys ? keys.flatMap((key) => this.#tablets.get(key) ?? []) : [...this.#tablets.all()];
    for (const kind of ['users', 'metadata', 'root']) for (const one of served) if (kindOf(one) === kind) await this.#budget.flush(one);
  }

  /** Major compactions of the tablets it serves: of one table, or of all. */
  async compact(tableId?: string): Promise<void> {
    const all = [...this.#tablets.all()].filter((served) => tableId === undefined || served.tableId === tableId);
    for (const kind of ['users', 'metadata', 'root']) await Promise.all(all.filter((one) => kindOf(one) === kind).map((one) => this.#compact(one)));
  }

  /** A tablet that is split meanwhile is compacted as the two that it was split into. */
  async #compact(served: ServedTablet): Promise<void> {
    try {
      await this.#compactions.compact(served);
    } catch (error) {
      await this.#splits.under(served.key);
      if (this.#ended || this.#tablets.get(served.key) === served) throw error;
      const parts = [...this.#tablets.all()].filter(({ tableId, range }) => tableId === served.tableId && !isEmptyRange(intersectRanges(range, served.range)));
      await Promise.all(parts.map((part) => this.#compact(part)));
    }
  }

  async #finish(): Promise<void> {
    this.#ended = true;
    this.#settling?.cancel();
    this.#lookingAtLoaded?.cancel();
    this.#replay.forget();
    this.#schemas.stop();
    await this.#log.close();
    await this.#session.close();
  }

  /** Stops serving at once: the log has failed, or the lock is lost. Nothing is flushed; what was acknowledged is in the log. */
  #end(reason: BigtableError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#env.logger.error('a tablet server ends itself', { server: this.name, reason: reason.message });
    this.#compactions.stop();
    this.#notices.stop();
    void this.#splits.stop();
    for (const served of [...this.#tablets.all()]) {
      this.#tablets.delete(served);
      void served.tablet.cancelCompaction();
    }
    this.#budget.stop().catch(() => {});
    void this.#stopServing?.()
      .then(() => this.#finish())
      .catch((error: unknown) => this.#env.logger.warn('a tablet server did not end in good order', { error: toBigtableError(error).message }))
      .then(() => this.#onEnd?.(reason));
  }

  #hostServices(): HostServices {
    return {
      logPath: logPathOf(this.name),
      metadata: this.#metadata,
      schema: (tableId) => this.#schemas.byId(tableId),
      leaseHeld: () => this.#leaseHeld(),
      newFilePath: () => `${FILES_DIRECTORY}${this.name}-${this.#files++}`,
      released: (files) => void this.#delete(files),
      filesChanged: (key) => this.#filesChanged(key),
      written: (key) => this.#written(key),
      leftToSweep: () => this.#notices.filesLeft(),
      serverContext: () => this.#context(),
      uniqueName: () => this.#env.random.uniqueName(),
      nowMicros: () => this.#env.clock.nowMicros(),
    };
  }

  /** What cannot be deleted now the sweep finds. */
  async #delete(files: readonly string[]): Promise<void> {
    for (const path of files) {
      await this.#env.fileSystem.delete(path).catch((thrown: unknown) => {
        this.#env.logger.warn('a file that nothing needs any more could not be deleted', { file: path, error: toBigtableError(thrown).message });
      });
    }
  }

  #filesChanged(key: string): void {
    const served = this.#tablets.get(key);
    if (served === undefined) return;
    this.#compactions.changed(served);
    this.#splits.filesChanged(served);
  }

  #written(key: string): void {
    const served = this.#tablets.get(key);
    if (served !== undefined) this.#budget.count(served);
  }

  #leaseHeld(): boolean {
    return !this.#ended && this.#log.failed === undefined && this.#session.held();
  }

  #context(): RequestContext {
    return requestContext({ budget: this.#env.requestBudget, principal: 'tablet-server' });
  }

  #handler(): CallHandler {
    const handlers: Handlers<TabletServerCalls> = {
      status: async () => this.#status(),
      load: ({ tablets }) => this.#each(tablets, (ref) => this.#load(ref)).finally(() => this.#settleLater()),
      unload: ({ tablets, flush }) => this.#each(tablets, (ref) => this.#loader.unload(ref, flush)),
      mutateRow: (message, context) => this.#mutateRow(message, context),
      mutateRows: ({ tableId, entries }, context) => this.#mutateRows(tableId, entries, context),
      checkAndMutateRow: (message, context) => this.#checkAndMutateRow(message, context),
      readModifyWriteRow: ({ tableId, row, rules }, context) => {
        const served = this.#serving(tableId, row);
        checkRules(this.#schemaOf(served, row), rules);
        return this.#withRoom(served, row, context, () => served.tablet.readModifyWriteRow(context, row, rules));
      },
      sampleKeys: async ({ tableId, range, partBytes }) => {
        const { tablet } = this.#servingAll(tableId, range);
        return { samples: tablet.sampleKeys(partBytes), sizeBytes: tablet.sizeBytes() };
      },
      familyUsage: async ({ tableId, range }) => this.#servingAll(tableId, range).tablet.familyUsage(),
      split: async ({ tableId, row, near }) => {
        await this.#splits.split(this.#serving(tableId, row), row, near);
        return undefined;
      },
      dropRows: (message, context) => this.#dropRows(message, context),
      commit: ({ commits }, context) => this.#commit(commits, context),
      flush: async ({ keys }) => {
        await this.flush(keys);
        return undefined;
      },
      holdings: async () => this.#holdings(),
      schemaChanged: async ({ tableName }) => {
        await this.#schemas.refresh(tableName);
        // families may have been moved to other locality groups
        for (const served of this.#tablets.all()) if (this.#schemas.byId(served.tableId)?.name === tableName) this.#compactions.changed(served);
        return undefined;
      },
    };
    return callHandler<TabletServerCalls>(handlers, (message, context) => this.#read(message, context));
  }

  async #load(ref: TabletRef): Promise<void> {
    await this.#loader.load(ref, this.#context());
    this.#loaded.add(ref.key);
    this.#lookingAtLoaded?.cancel();
    this.#lookingAtLoaded = this.#env.clock.timer(FIRST_WORK_MS, () => this.#lookAtLoaded());
  }

  #lookAtLoaded(): void {
    const keys = [...this.#loaded];
    this.#loaded.clear();
    for (const key of keys) this.#filesChanged(key);
    this.#budget.endRest();
  }

  #status(): ServerStatus {
    const tablets = [...this.#tablets.all()].map(({ key, epoch, tablet }) => ({ key, epoch, sizeBytes: tablet.sizeBytes() }));
    return { name: this.name, protocol: PROTOCOL, locked: this.#leaseHeld(), tablets };
  }

  /** Everything under this server's name is its own while it lives: a file may be written and in no row yet. */
  #holdings(): Holdings {
    const files = [...this.#tablets.all()].flatMap(({ tablet }) => tablet.heldFiles());
    return { files: [...files, ...this.#loader.heldFiles()], logs: [logPathOf(this.name)] };
  }

  /** The tablet that holds the row. METADATA's rows are changed by commits alone. */
  #serving(tableId: string, row: ByteString): ServedTablet {
    const served = this.#tablets.find(tableId, row);
    if (served === undefined) throw this.#loader.damageOver(tableId, row) ?? notServing(tableId, row);
    if (tableId === METADATA_TABLE_ID) throw invalidArgument('METADATA is changed by conditional commits alone');
    return served;
  }

  /** The tablet of exactly that range: whoever asks for another has not heard of a split or a merge. */
  #servingAll(tableId: string, { start, end }: RowRange): ServedTablet {
    const served = this.#serving(tableId, start);
    if (served.range.start !== start || served.range.end !== end) throw notServing(tableId, start);
    return served;
  }

  #schemaOf({ tableId }: ServedTablet, row: ByteString): TableSchema {
    const schema = this.#schemas.byId(tableId);
    if (schema === undefined) throw notServing(tableId, row);
    return schema;
  }

  /** Whether a write may begin at once. */
  #hasRoom(served: ServedTablet): boolean {
    return this.#budget.open && !this.#compactions.isBehind(served);
  }

  /** Begins the write in this step where it may. */
  #withRoom<T>(served: ServedTablet, row: ByteString, context: RequestContext, write: () => Promise<T>): Promise<T> {
    return this.#hasRoom(served) ? write() : this.#waitForRoom(served, row, context).then(write);
  }

  /** Writes wait here, bounded in number by the budget of requests, while flushing or compactions fall behind. */
  async #waitForRoom(served: ServedTablet, row: ByteString, context: RequestContext): Promise<void> {
    if (!this.#budget.open) await this.#budget.wait(context);
    if (this.#compactions.isBehind(served)) await this.#compactions.wait(served, context);
    if (this.#tablets.get(served.key) !== served) throw notServing(served.tableId, row);
  }

  #mutateRow({ tableId, row, mutations }: RowEntry & { readonly tableId: string }, context: RequestContext): Promise<undefined> {
    const served = this.#serving(tableId, row);
    const schema = this.#schemaOf(served, row);
    if (mutations.length > MOST_IN_ONE_STEP || !this.#hasRoom(served)) return this.#mutateRowLater(served, schema, row, mutations, context);
    return served.tablet.mutateRow(context, row, prepareMutations(schema, mutations, this.#env.clock.nowMicros())) as Promise<undefined>;
  }

  /** A change that is prepared in steps, or that waits. */
  async #mutateRowLater(served: ServedTablet, schema: TableSchema, row: ByteString, mutations: Mutations, context: RequestContext): Promise<undefined> {
    const prepared = await this.#prepareInParts(schema, mutations);
    if (!this.#hasRoom(served)) await this.#waitForRoom(served, row, context);
    await served.tablet.mutateRow(context, row, prepared);
    return undefined;
  }

  async #prepareInParts(schema: TableSchema, mutations: Mutations): Promise<Mutations> {
    const { clock } = this.#env;
    const now = clock.nowMicros();
    const list: Mutation[] = [];
    let run = isCellRun(mutations) ? mutations : undefined;
    const preparing = inParts(clock, mutations.length, (from, to) => {
      const part = prepareMutations(schema, sliceMutations(mutations, from, to), now);
      if (!isCellRun(part)) for (const mutation of part) list.push(mutation);
      // all cells of a run get the same time
      else if (run?.serverMicros === undefined) run = { ...(run as CellRun), serverMicros: part.serverMicros };
    });
    if (preparing !== undefined) await preparing;
    return run ?? list;
  }

  #checkAndMutateRow({ tableId, row, predicate, whenTrue, whenFalse }: CheckAndMutateMessage, context: RequestContext): Promise<boolean> {
    const served = this.#serving(tableId, row);
    const schema = this.#schemaOf(served, row);
    const now = this.#env.clock.nowMicros();
    const [ifTrue, ifFalse] = [prepareMutations(schema, whenTrue, now), prepareMutations(schema, whenFalse, now)];
    return this.#withRoom(served, row, context, () => served.tablet.checkAndMutateRow(context, row, predicate, ifTrue, ifFalse));
  }

  async #dropRows({ tableId, range }: { readonly tableId: string; readonly range: RowRange }, context: RequestContext): Promise<undefined> {
    const served = this.#serving(tableId, range.start);
    if (!isWithin(range.end, served.range.end)) throw notServing(tableId, served.range.end as ByteString);
    if (!this.#hasRoom(served)) await this.#waitForRoom(served, range.start, context);
    await served.tablet.dropRows(context, range);
    return undefined;
  }

  /** METADATA's tablets never wait for memory: the flushes that make room commit to them. */
  async #commit(commits: readonly MetadataCommit[], context: RequestContext): Promise<CommitOutcome[]> {
    const keys = commits.flatMap(({ rows }) => rows.map(({ key }) => key));
    const first = keys[0];
    if (first === undefined) return [];
    const served = this.#tablets.find(METADATA_TABLE_ID, first);
    const other = keys.find((key) => this.#tablets.find(METADATA_TABLE_ID, key) !== served);
    if (served === undefined || other !== undefined) throw notServing(METADATA_TABLE_ID, other ?? first);
    return commitRows(served.tablet, commits, context);
  }

  async #mutateRows(tableId: string, entries: readonly RowEntry[], context: RequestContext): Promise<(PlainError | undefined)[]> {
    const outcomes: (PlainError | undefined)[] = new Array(entries.length).fill(undefined);
    const pacer = new Pacer(this.#env.clock);
    const writes: Promise<void>[] = [];
    const fail = (index: number, thrown: unknown): void => void (outcomes[index] = plainError(toBigtableError(thrown)));
    for (let next = 0; next < entries.length; ) {
      const step: { served: ServedTablet | undefined; readonly changes: RowEntry[]; readonly indexes: number[] } = { served: undefined, changes: [], indexes: [] };
      const nowMicros = this.#env.clock.nowMicros();
      // as many as one step of the event loop takes; all rows of a message are of one tablet, unless it was split meanwhile
      for (let due = false; next < entries.length && !due; next++) {
        const { row, mutations } = entries[next] as RowEntry;
        try {
          const served = step.served !== undefined && rangeContains(step.served.range, row) ? step.served : this.#serving(tableId, row);
          if (step.served !== undefined && served !== step.served) break;
          const prepared = prepareMutations(this.#schemaOf(served, row), mutations, nowMicros);
          step.served = served;
          step.changes.push({ row, mutations: prepared });
          step.indexes.push(next);
        } catch (thrown) {
          fail(next, thrown);
        }
        due = pacer.due(1 + (mutations.length >> 2));
      }
      const { served, changes, indexes } = step;
      if (served !== undefined) {
        try {
          if (!this.#hasRoom(served)) await this.#waitForRoom(served, (changes[0] as RowEntry).row, context);
          const written = served.tablet.mutateRows(context, changes);
          writes.push(written.then((answers) => answers.forEach((error, at) => error && fail(indexes[at] as number, error))));
        } catch (thrown) {
          for (const index of indexes) fail(index, thrown);
        }
      }
      if (next < entries.length) await pacer.pause();
    }
    await Promise.all(writes);
    return outcomes;
  }

  #read(message: ReadMessage, context: RequestContext): AsyncIterable<ReadBatch> {
    const { tableId, ranges } = message;
    const start = ranges[0]?.start;
    if (start === undefined) throw invalidArgument('a read of a tablet names at least one range');
    const served = this.#tablets.find(tableId, start);
    if (served === undefined) throw this.#loader.damageOver(tableId, start) ?? notServing(tableId, start);
    if (!isWithin(ranges.at(-1)?.end, served.range.end)) throw notServing(tableId, served.range.end as ByteString);
    this.#schemaOf(served, start);
    return served.tablet.read(context, message);
  }

  async #each(refs: readonly TabletRef[], work: (ref: TabletRef) => Promise<void>): Promise<(PlainError | undefined)[]> {
    if (this.#ended) throw new BigtableError(Code.UNAVAILABLE, 'the tablet server has ended');
    return Promise.all(
      refs.map((ref) =>
        work(ref).then(
          () => undefined,
          (thrown: unknown) => plainError(toBigtableError(thrown)),
        ),
      ),
    );
  }

  #settleLater(): void {
    this.#settling?.cancel();
    this.#settling = this.#env.clock.timer(SETTLE_MS, () => void this.#budget.settle().catch((error: unknown) => {
      this.#env.logger.warn('the log could not be trimmed', { error: toBigtableError(error).message });
    }));
  }
}

/** METADATA's own tablets come last, the root tablet behind all, since the others' commits write to them. */
function kindOf({ tableId, key }: ServedTablet): 'users' | 'metadata' | 'root' {
  if (key === ROOT_KEY) return 'root';
  return tableId === METADATA_TABLE_ID ? 'metadata' : 'users';
}

function isWithin(end: ByteString | undefined, limit: ByteString | undefined): boolean {
  return limit === undefined || (end !== undefined && end <= limit);
}

/** What only the schema tells is checked, and the server's time filled in. */
function prepareMutations<M extends Mutations>(schema: TableSchema, mutations: M, nowMicros: number): M {
  checkMutations(schema, mutations);
  return resolveTimestamps(mutations, nowMicros, schema.granularity);
}
