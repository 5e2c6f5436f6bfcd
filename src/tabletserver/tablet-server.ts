/**
 * A tablet server: one incarnation with a unique name, one commit log, and the tablets that the master has given it. Answers the
 * calls of `protocol`; knows neither clients nor other servers.
 *
 * Invariants: it answers only for rows of tablets it serves, and refuses all others with "not serving"; it ends itself when its log fails or its
 * lock is lost, and is then never heard of again: a new incarnation takes its place.
 */
import { assert, BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import { Origin, readEncodedAppends, ServerLog } from '../commitlog/index.ts';
import { type CallHandler, type Env, type RequestContext, requestContext } from '../env/index.ts';
import { Locator, MetadataClient, SchemaCache } from '../locator/index.ts';
import { METADATA_TABLE_ID, type MetadataKey, ROOT_KEY } from '../metadata/index.ts';
import type { Limits } from '../model/index.ts';
import {
  callHandler,
  FILES_DIRECTORY,
  type Handlers,
  type Holdings,
  logPathOf,
  notServing,
  plainError,
  type PlainError,
  PROTOCOL,
  type ServerStatus,
  type TabletRef,
  type TabletServerCalls,
} from '../protocol/index.ts';
import { BlockCache, MemoryBudget, RowCache } from '../sstable/index.ts';
import { Tablet } from '../tablet/index.ts';
import { ClockWarning } from './clock-warning.ts';
import { CompactionSchedule } from './compaction-schedule.ts';
import { LogReplay } from './log-replay.ts';
import { MemtableBudget } from './memtable-budget.ts';
import { ServerSession } from './server-session.ts';
import { serverGauges } from './server-gauges.ts';
import type { HostServices } from './tablet-host.ts';
import { TabletLoader, type TabletLoaderOptions } from './tablet-loader.ts';
import { TabletSplits } from './tablet-splits.ts';
import { MasterNotices } from './master-notices.ts';
import { isRace } from './races.ts';
import { RowCalls } from './row-calls.ts';
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
  readonly #memory: MemoryBudget;
  /** Without a limit: METADATA must always be served. */
  readonly #metadataMemory = new MemoryBudget(Number.POSITIVE_INFINITY);
  readonly #metadata: MetadataClient;
  readonly #session: ServerSession;
  readonly #clockWarning: ClockWarning;
  readonly #forgetGauges: () => void;
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
    this.#clockWarning = new ClockWarning(env);
    const { metrics } = env;
    this.#cache = new BlockCache({
      limitBytes: settings.blockCacheBytes,
      metrics,
      rowCache: new RowCache({ limitBytes: settings.scanCacheBytes, metrics }),
    });
    this.#schemas = new SchemaCache(env.lockService, (error) =>
      env.logger.error('a schema could not be read', { error: toBigtableError(error).message }),
    );
    this.#metadata = new MetadataClient({
      ...env,
      locator: new Locator(env),
      stopped: () => this.#ended || env.clock.monotonicMs() >= this.#givesUpAtMs,
    });
    this.#budget = new MemtableBudget({
      limitBytes: settings.memtableBytes,
      logLimitBytes: settings.logLimitBytes,
      log,
      ...env,
    });
    this.#compactions = new CompactionSchedule({
      ...env,
      atOnce: settings.compactionsAtOnce,
      majorMs: settings.majorCompactionMs,
      tablets: () => this.#tablets.all(),
      isServed: (served) => this.#tablets.get(served.key) === served,
    });
    this.#replay = new LogReplay((path) => readEncodedAppends(env.fileSystem, path), env.clock);
    this.#memory = new MemoryBudget(settings.inMemoryBytes);
    this.#loader = new TabletLoader({
      serverName: name,
      services: this.#hostServices(),
      metadata: this.#metadata,
      tablets: this.#tablets,
      budget: this.#budget,
      replay: this.#replay,
      logger: env.logger,
      splitOf: (key) => this.#splits.under(key),
      openTablet: (...tablet) => this.#openTablet(options, ...tablet),
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
    this.#forgetGauges = serverGauges(metrics, {
      cache: this.#cache,
      memory: this.#memory,
      budget: this.#budget,
      compactions: this.#compactions,
      log,
      tablets: this.#tablets,
    });
  }

  #openTablet(
    { env, settings }: TabletServerOptions,
    ...[host, state, records]: Parameters<TabletLoaderOptions['openTablet']>
  ): Promise<Tablet> {
    const isMetadata = state.tableId === METADATA_TABLE_ID;
    return Tablet.load(
      {
        env,
        host,
        log: this.#log,
        cache: this.#cache,
        memory: isMetadata ? this.#metadataMemory : this.#memory,
        limits: settings.limits,
        blockSizeBytes: settings.blockSizeBytes,
        buffered: settings.durability === 'buffered' && !isMetadata,
      },
      state,
      records,
    );
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
    let log: ServerLog | undefined;
    try {
      log = await ServerLog.open({ fileSystem: env.fileSystem, path: logPathOf(name), onFailure, env });
      // a log that METADATA lists is never empty: one that is has lost its beginning
      await log.append({
        tableId: METADATA_TABLE_ID,
        epoch: 0,
        commitMicros: env.clock.nowMicros(),
        origin: Origin.user,
        body: { kind: 'rows', rows: [] },
      }).durable;
      server = new TabletServer(options, name, log, session);
      await server.#schemas.start();
      server.#stopServing = await env.transport.serve(address, server.#handler());
      await session.announce({ name, address, protocol: PROTOCOL });
      return server;
    } catch (error) {
      await (server?.close() ?? closeBoth(log, session)).catch((thrown: unknown) => {
        env.logger.warn('a tablet server that could not start did not end in good order', {
          error: toBigtableError(thrown).message,
        });
      });
      throw error;
    }
  }

  /**
   * The first part of ending in good order: serves the tablets of that kind no more. Users' tablets go first, on all servers, since what they flush
   * they commit to METADATA; then METADATA's, which commit to the root tablet. After little was written all is left to be replayed.
   */
  async releaseTablets(kind: 'users' | 'metadata' | 'root'): Promise<void> {
    if (this.#ended) return;
    this.#settling?.cancel();
    this.#lookingAtLoaded?.cancel();
    this.#compactions.stop();
    this.#notices.stop();
    this.#loader.stop();
    this.#givesUpAtMs = this.#env.clock.monotonicMs() + CLOSE_PATIENCE_MS;
    await this.#splits.stop();
    await this.#budget.stop();
    const all = [...this.#tablets.all()];
    this.#leavesNothing ||=
      this.#budget.writtenBytes > REPLAYED_BYTES || all.some(({ tablet }) => tablet.state.logs.length > REPLAYED_LOGS);
    for (const served of all.filter((one) => kindOf(one) === kind)) {
      await this.#loader.release(served, this.#leavesNothing).catch((thrown: unknown) => {
        const error = toBigtableError(thrown);
        if (!isRace(error))
          this.#env.logger.warn('a tablet could not be flushed and is left to be replayed', {
            table: served.tableId,
            error: error.message,
          });
      });
    }
  }

  /** Ends in good order: nothing is in flight afterwards, and the lock is free. */
  async close(): Promise<void> {
    for (const kind of ['users', 'metadata', 'root'] as const) await this.releaseTablets(kind);
    if (this.#ended) return;
    await this.#stopServing?.();
    await this.#finish();
  }

  /** Writes all memtables to files: of the tablets named, or of all. */
  async flush(keys?: readonly string[]): Promise<void> {
    const served = keys ? keys.flatMap((key) => this.#tablets.get(key) ?? []) : [...this.#tablets.all()];
    for (const kind of ['users', 'metadata', 'root']) {
      for (const one of served.filter((each) => kindOf(each) === kind)) {
        try {
          await this.#budget.flush(one);
        } catch (error) {
          // one that was given up meanwhile was flushed, or its table is gone: whoever names tablets has to know
          if (keys || this.#tablets.get(one.key) === one) throw error;
        }
      }
    }
  }

  /** A major compaction. "Not serving" where the tablet is split or given up first: whoever asks looks for what has become of it. */
  async #compact(served: ServedTablet, context: RequestContext): Promise<void> {
    try {
      await this.#compactions.compact(served, context);
    } catch (error) {
      await this.#splits.under(served.key);
      if (this.#ended || this.#tablets.get(served.key) === served) throw error;
      throw notServing(served.tableId, served.range.start);
    }
  }

  async #compactMetadata(context: RequestContext): Promise<void> {
    const all = [...this.#tablets.all()];
    for (const kind of ['metadata', 'root'])
      await Promise.all(all.filter((one) => kindOf(one) === kind).map((one) => this.#compact(one, context)));
  }

  async #finish(): Promise<void> {
    this.#ended = true;
    this.#forgetGauges();
    this.#settling?.cancel();
    this.#lookingAtLoaded?.cancel();
    this.#replay.forget();
    this.#schemas.stop();
    await closeBoth(this.#log, this.#session);
  }

  /** Stops serving at once: the log has failed, or the lock is lost. Nothing is flushed; what was acknowledged is in the log. */
  #end(reason: BigtableError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#env.logger.error('a tablet server ends itself', { server: this.name, reason: reason.message });
    this.#compactions.stop();
    this.#notices.stop();
    this.#loader.stop();
    void this.#splits.stop();
    for (const served of [...this.#tablets.all()]) {
      this.#tablets.delete(served);
      void served.tablet.cancelCompaction();
    }
    assert(this.#tablets.size === 0, 'a server that has ended serves tablets');
    this.#budget.stop().catch(() => {});
    void this.#stopServing?.()
      .then(() => this.#finish())
      .catch((error: unknown) =>
        this.#env.logger.warn('a tablet server did not end in good order', { error: toBigtableError(error).message }),
      )
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
      takenAway: (reason) => this.#end(reason),
      leftToSweep: () => this.#notices.filesLeft(),
      serverContext: () => this.#context(),
      uniqueName: () => this.#env.random.uniqueName(),
      nowMicros: () => this.#env.clock.nowMicros(),
      clockIsBehind: (nowMicros, lastMicros) => this.#clockWarning.isBehind(nowMicros, lastMicros),
    };
  }

  /** What cannot be deleted now the sweep finds. */
  async #delete(files: readonly string[]): Promise<void> {
    for (const path of files) {
      await this.#env.fileSystem.delete(path).catch((thrown: unknown) => {
        this.#env.logger.warn('a file that nothing needs any more could not be deleted', {
          file: path,
          error: toBigtableError(thrown).message,
        });
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
    const rows = new RowCalls({
      clock: this.#env.clock,
      tablets: this.#tablets,
      budget: this.#budget,
      compactions: this.#compactions,
      schemaOf: (tableId) => this.#schemas.byId(tableId),
      damageOver: (tableId, row) => this.#loader.damageOver(tableId, row),
    });
    const handlers: Handlers<TabletServerCalls> = {
      status: async () => this.#status(),
      load: ({ tablets }) => this.#each(tablets, (ref) => this.#load(ref)).finally(() => this.#settleLater()),
      unload: ({ tablets, flush }) => this.#each(tablets, (ref) => this.#loader.unload(ref, flush)),
      mutateRow: (message, context) => rows.mutateRow(message, context),
      mutateRows: ({ tableId, entries }, context) => rows.mutateRows(tableId, entries, context),
      checkAndMutateRow: (message, context) => rows.checkAndMutateRow(message, context),
      readModifyWriteRow: (message, context) => rows.readModifyWriteRow(message, context),
      sampleKeys: async ({ tableId, range, partBytes }) => {
        const { tablet } = rows.servingAll(tableId, range);
        return { samples: tablet.sampleKeys(partBytes), sizeBytes: tablet.sizeBytes() };
      },
      tabletStatistics: async ({ tableId, range }) => {
        const { tablet } = rows.servingAll(tableId, range);
        const { memtableBytes, state } = tablet;
        assert(tablet.sizeBytes() >= memtableBytes, 'a tablet is smaller than its memtables');
        const files = Object.values(state.files).reduce((sum, { length }) => sum + length, 0);
        return {
          range,
          server: this.name,
          files,
          fileBytes: tablet.sizeBytes() - memtableBytes,
          memoryBytes: memtableBytes,
        };
      },
      compact: async ({ tableId, range }, context) => {
        await this.#compact(rows.servingAll(tableId, range), context);
        return undefined;
      },
      compactMetadata: async (_message, context) => {
        await this.#compactMetadata(context);
        return undefined;
      },
      counters: async () => ({
        name: this.#env.metrics.name(this.#env.random),
        counters: this.#env.metrics.snapshot(),
      }),
      familyUsage: async ({ tableId, range }) => rows.servingAll(tableId, range).tablet.familyUsage(),
      split: async ({ tableId, row, near }) => {
        await this.#splits.split(rows.serving(tableId, row), row, near);
        return undefined;
      },
      dropRows: (message, context) => rows.dropRows(message, context),
      commit: ({ commits }, context) => rows.commit(commits, context),
      flush: async ({ keys }) => {
        await this.flush(keys);
        return undefined;
      },
      holdings: async () => this.#holdings(),
      schemaChanged: async ({ tableName }) => {
        await this.#schemas.refresh(tableName);
        // families may have been moved to other locality groups
        for (const served of this.#tablets.all())
          if (this.#schemas.byId(served.tableId)?.name === tableName) this.#compactions.changed(served);
        return undefined;
      },
    };
    return callHandler<TabletServerCalls>(handlers, (message, context) => rows.read(message, context));
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
    const tablets = [...this.#tablets.all()].map(({ key, epoch, tablet }) => ({
      key,
      epoch,
      sizeBytes: tablet.sizeBytes(),
    }));
    return { name: this.name, protocol: PROTOCOL, locked: this.#leaseHeld(), tablets };
  }

  /** Everything under this server's name is its own while it lives: a file may be written and in no row yet. */
  #holdings(): Holdings {
    const files = [...this.#tablets.all()].flatMap(({ tablet }) => tablet.heldFiles());
    return { files: [...files, ...this.#loader.heldFiles()], logs: [logPathOf(this.name)] };
  }

  async #each(
    refs: readonly TabletRef[],
    work: (ref: TabletRef) => Promise<void>,
  ): Promise<(PlainError | undefined)[]> {
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
    this.#settling = this.#env.clock.timer(
      SETTLE_MS,
      () =>
        void this.#budget.settle().catch((error: unknown) => {
          this.#env.logger.warn('the log could not be trimmed', { error: toBigtableError(error).message });
        }),
    );
  }
}

async function closeBoth(log: ServerLog | undefined, session: ServerSession): Promise<void> {
  try {
    await log?.close();
  } finally {
    await session.close();
  }
}

/** METADATA's own tablets come last, the root tablet behind all, since the others' commits write to them. */
function kindOf({ tableId, key }: ServedTablet): 'users' | 'metadata' | 'root' {
  if (key === ROOT_KEY) return 'root';
  return tableId === METADATA_TABLE_ID ? 'metadata' : 'users';
}
