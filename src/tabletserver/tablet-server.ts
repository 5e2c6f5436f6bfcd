/**
 * A tablet server: one incarnation with a unique name, one commit log, and the tablets that the master has assigned to
 * it. Answers the calls of `protocol`; knows neither clients nor other servers.
 *
 * Invariants: it answers only for rows of tablets it serves, and refuses all others with "not serving". It ends itself
 * when its log fails or its lock is lost, and never comes back: a new incarnation replaces it.
 */
import { assert, type BigtableError, toBigtableError, unavailable } from '../base/index.ts';
import { readReplayedAppends, ServerLog } from '../commitlog/index.ts';
import { type Env, OwnContexts, type RequestContext } from '../env/index.ts';
import { Locator, loggingSchemaCache, MetadataClient, type SchemaCache } from '../locator/index.ts';
import { logPathOf, PROTOCOL } from '../protocol/index.ts';
import type { MemoryLayerSource, RawCallHandler } from '../service/index.ts';
import { ChangeRetention, type ChangeRetentionOptions } from './change-retention.ts';
import { ClockComparison } from './clock-comparison.ts';
import { CompactionSchedule } from './compaction-schedule.ts';
import type { FlushLimits } from './flush-room.ts';
import { LoadHistory } from './load-history.ts';
import { LoadAftermath } from './load-aftermath.ts';
import { LogReplay } from './log-replay.ts';
import { LogSorter } from './log-sorter.ts';
import { MasterNotices } from './master-notices.ts';
import { type KeptLog, MemtableBudget } from './memtable-budget.ts';
import { isRace } from './races.ts';
import { ServerCalls } from './server-calls.ts';
import { serverGauges } from './server-gauges.ts';
import { emptyRecord, ServerServices } from './server-services.ts';
import { ServerSession } from './server-session.ts';
import { TabletLoader } from './tablet-loader.ts';
import { kindOf, type ServedTablet, TABLET_KINDS, type TabletKind, TabletMap } from './tablet-map.ts';
import { TabletOpener, type TabletSettings } from './tablet-opener.ts';
import { TabletSplits } from './tablet-splits.ts';

export interface TabletServerSettings extends TabletSettings {
  readonly memtableBytes: number;
  readonly logLimitBytes: number;
  /** A tablet of a user's table whose files are larger than this is split. */
  readonly tabletBytes: number;
  /** The same for METADATA's tablets, except the root tablet. */
  readonly metadataTabletBytes: number;
  /** The number of compactions of files that run concurrently. */
  readonly compactionsAtOnce: number;
  /** The time within which deleted data is gone from files. */
  readonly majorCompactionMs: number;
  /** Writes that may be acknowledged and not durable, with `durability: 'buffered'`. Default: 4 MiB. */
  readonly maxUnsyncedBytes?: number;
  /** Default: 64 flushes of together 8 MiB. */
  readonly flushLimits?: FlushLimits;
  /** Most bytes of the log that are kept for change streams alone. Default: 1 GiB. */
  readonly changeLogBytes?: number;
  /** A tablet that takes at least this share of the server's time is a hot one, percent. Default: 10. */
  readonly hotTabletPercent?: number;
  /** Rows of a dead server's log that are sorted in one slice of the event loop. Default: 4096. */
  readonly rowsSortedAtOnce?: number;
}

export interface TabletServerOptions {
  readonly env: Env;
  /** Default: no table is served from memory as a whole. */
  readonly memoryLayers?: MemoryLayerSource | undefined;
  readonly settings: TabletServerSettings;
  /** The address at which peers reach it. */
  readonly address: string;
  /**
   * True: it does not start while its wall clock is more than a second off that of the master. Default: all roles run
   * on one machine, and have one clock.
   */
  readonly comparesClocks?: boolean;
  /** Called once when a server that was started ends without having been closed. */
  readonly onEnd?: (reason: BigtableError) => void;
  /** Carries out calls that other servers pass on as bytes. Default: it takes none. */
  readonly rawCalls?: RawCallHandler | undefined;
  /** Reads files of the lock service again that the front door of the process follows. Default: it has no door. */
  readonly onDoorFiles?: ((paths: readonly string[]) => Promise<void>) | undefined;
}

const CHANGE_LOG_BYTES = 1024 ** 3;
/** A server that is closed may leave this many bytes to be replayed: that is quicker than many small files. */
const MAX_REPLAYED_BYTES = 4 * 1024 * 1024;
/** Limit of the logs in the row of any tablet for that. */
const MAX_REPLAYED_LOGS = 4;
/** A server that is closed retries the commits of its flushes for this long; the rest is left to be replayed. */
const CLOSE_RETRY_MS = 1000;

/** The default of `hotTabletPercent`. */
const HOT_PERCENT = 10;

/** `closing`: tablets are released, and commits still go out. `ended`: nothing is served nor written. */
type Phase = 'starting' | 'serving' | 'closing' | 'ended';

const NEXT_PHASES: Readonly<Record<Phase, readonly Phase[]>> = {
  starting: ['serving', 'ended'],
  serving: ['closing', 'ended'],
  closing: ['ended'],
  ended: [],
};

/** The parts that an incarnation has before it serves. */
interface Incarnation {
  readonly name: string;
  readonly log: ServerLog;
  readonly session: ServerSession;
  /** Undefined: clocks are not compared. */
  readonly clocks: ClockComparison | undefined;
  readonly contexts: OwnContexts;
}

export class TabletServer {
  readonly name: string;
  readonly address: string;
  readonly #env: Env;
  readonly #onEnd: ((reason: BigtableError) => void) | undefined;
  readonly #contexts: OwnContexts;
  readonly #tablets = new TabletMap();
  readonly #log: ServerLog;
  readonly #session: ServerSession;
  readonly #schemas: SchemaCache;
  readonly #budget: MemtableBudget;
  readonly #compactions: CompactionSchedule;
  readonly #replay: LogReplay;
  readonly #sorter: LogSorter;
  readonly #notices: MasterNotices;
  readonly #loader: TabletLoader;
  readonly #splits: TabletSplits;
  readonly #aftermath: LoadAftermath;
  readonly #calls: ServerCalls;
  readonly #loads: LoadHistory;
  readonly #opener: TabletOpener;
  readonly #removeGauges: () => void;
  #stopServing: (() => Promise<void>) | undefined;
  #phase: Phase = 'starting';
  /** The reason why the server ended itself. */
  #failure: BigtableError | undefined;
  /** Resolves when a server that ended itself has nothing in flight. */
  #failing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  /** While closing: true if all memtables are written to files. */
  #flushesAll = false;
  /** While closing: the time after which commits to METADATA are not retried. */
  #commitUntilMs = Number.POSITIVE_INFINITY;

  private constructor(options: TabletServerOptions, { name, log, session, clocks, contexts }: Incarnation) {
    const { env, settings, address, onEnd, memoryLayers } = options;
    this.name = name;
    this.address = address;
    this.#env = env;
    this.#onEnd = onEnd;
    this.#contexts = contexts;
    this.#log = log;
    this.#session = session;
    this.#schemas = loggingSchemaCache(env);
    const retention = retentionOf({ ...env, log, tablets: this.#tablets }, this.#schemas, settings);
    this.#budget = budgetOf(env, settings, log, (position, space) => retention.keptFrom(position, space));
    this.#compactions = new CompactionSchedule({
      ...env,
      maxRunning: settings.compactionsAtOnce,
      majorMs: settings.majorCompactionMs,
      tablets: this.#tablets,
    });
    this.#sorter = new LogSorter({ env, serverName: name, rowsAtOnce: settings.rowsSortedAtOnce });
    this.#replay = replayOf(env, this.#sorter);
    const shared = {
      env,
      log,
      retention,
      serverName: name,
      tablets: this.#tablets,
      schemas: this.#schemas,
      budget: this.#budget,
      compactions: this.#compactions,
      metadata: new MetadataClient({
        ...env,
        lock: session.lock,
        locator: new Locator(env),
        stopped: () => !this.#mayCommit(),
      }),
      serverContext: () => contexts.next(),
      leaseHeld: () => this.leaseHeld(),
    };
    this.#notices = new MasterNotices({ ...env, ...shared });
    const services = new ServerServices({
      ...shared,
      notices: this.#notices,
      splits: () => this.#splits,
      endServer: (reason) => this.#end(reason),
    });
    this.#opener = new TabletOpener(env, log, settings, memoryLayers);
    this.#loader = new TabletLoader({
      ...shared,
      services,
      replay: this.#replay,
      logger: env.logger,
      splitOf: (key) => this.#splits.under(key),
      openTablet: (host, state, records) => this.#opener.open(host, state, records),
    });
    this.#splits = new TabletSplits({
      ...env,
      ...shared,
      tabletBytes: settings.tabletBytes,
      metadataTabletBytes: settings.metadataTabletBytes,
      loader: this.#loader,
      onSplit: (children) => {
        for (const child of children) this.#compactions.changed(child);
        this.#notices.split(children);
      },
    });
    this.#aftermath = new LoadAftermath({ ...env, budget: this.#budget, services });
    this.#loads = loadsOf(env, settings, shared);
    this.#calls = new ServerCalls({
      ...options,
      ...shared,
      loader: this.#loader,
      splits: this.#splits,
      aftermath: this.#aftermath,
      sorter: this.#sorter,
      loads: this.#loads,
      hasEnded: () => this.#phase === 'ended',
      onMaster: () => clocks?.masterCalled(),
    });
    this.#removeGauges = serverGauges(env.metrics, { ...shared, opener: this.#opener, log });
  }

  /** Starts an incarnation: takes its lock, opens its log, announces itself, and waits for tablets. */
  static async start(options: TabletServerOptions): Promise<TabletServer> {
    const { env, address } = options;
    const name = env.random.uniqueName();
    let server: TabletServer | undefined;
    const onFailure = (reason: BigtableError): void => {
      if (server) server.#end(reason);
    };
    const onLost = (): void => onFailure(unavailable('the tablet server has lost its lock'));
    const contexts = new OwnContexts({ ...env, principal: 'tablet-server' });
    const context = (): RequestContext => contexts.next();
    const clocks = options.comparesClocks ? new ClockComparison({ ...env, context, onOff: onFailure }) : undefined;
    await clocks?.start();
    const session = await ServerSession.open(env, name, onLost);
    let log: ServerLog | undefined;
    try {
      const { maxUnsyncedBytes } = options.settings;
      log = await ServerLog.open({ ...env, path: logPathOf(name), maxUnsyncedBytes, onFailure, env });
      // a log that METADATA lists is never empty: an empty one has lost its beginning
      await log.append(emptyRecord(env.clock.nowMicros())).append.durable;
      server = new TabletServer(options, { name, log, session, clocks, contexts });
      await server.#schemas.start();
      server.#stopServing = await env.transport.serve(address, server.#calls.handler());
      await session.announce({ name, address, protocol: PROTOCOL });
      if (server.#failure) throw server.#failure;
      server.#enter('serving');
      server.#loads.start();
      return server;
    } catch (error) {
      await (server ? server.#endStart() : closeBoth(log, session)).catch((thrown: unknown) => {
        env.logger.warn('a tablet server that could not start did not clean up completely', {
          error: toBigtableError(thrown).message,
        });
      });
      throw error;
    }
  }

  /**
   * The first part of closing: stops serving the tablets of that kind. Users' tablets go first, on all servers, since
   * their flushes commit to METADATA; then METADATA's, which commit to the root tablet. After few writes no memtable is
   * flushed: all is left to be replayed.
   */
  async releaseTablets(kind: TabletKind): Promise<void> {
    if (this.#phase === 'ended') return;
    if (this.#phase !== 'closing') this.#enter('closing');
    this.#stopWork();
    this.#commitUntilMs = this.#env.clock.monotonicMs() + CLOSE_RETRY_MS;
    this.#contexts.end();
    await this.#splits.stop();
    await this.#budget.stop();
    const all = [...this.#tablets.all()];
    this.#flushesAll ||=
      this.#budget.writtenBytes > MAX_REPLAYED_BYTES ||
      all.some(({ tablet }) => tablet.state.logs.length > MAX_REPLAYED_LOGS);
    const release = async (served: ServedTablet): Promise<void> => {
      await this.#loader.release(served, this.#flushesAll).catch((thrown: unknown) => {
        const error = toBigtableError(thrown);
        if (!isRace(error))
          this.#env.logger.warn('a tablet could not be flushed and is left to be replayed', {
            table: served.tableId,
            error: error.message,
          });
      });
    };
    await Promise.all(all.filter((one) => kindOf(one) === kind).map(release));
  }

  /** Ends in good order: nothing is in flight afterwards, and the lock is free. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const kind of TABLET_KINDS) await this.releaseTablets(kind);
    if (this.#phase === 'ended') return this.#failing;
    await this.#stopServing?.();
    // its log has failed or its lock was lost meanwhile
    if (this.#failure) return this.#failing;
    this.#enter('ended');
    await this.#finish();
  }

  /** Takes back all that a failed start has done. */
  async #endStart(): Promise<void> {
    if (this.#phase !== 'ended') this.#halt();
    await this.#stopServing?.();
    await this.#finish();
  }

  /** The log has failed, or the lock is lost. Nothing is flushed: the log has what was acknowledged. */
  #end(reason: BigtableError): void {
    if (this.#phase === 'ended') return;
    const isStarting = this.#phase === 'starting';
    this.#failure = reason;
    this.#env.logger.error('a tablet server ends itself', { server: this.name, reason: reason.message });
    this.#halt();
    if (!isStarting) this.#failing = this.#finishFailed(reason);
  }

  /** Stops serving immediately. */
  #halt(): void {
    this.#enter('ended');
    this.#stopWork();
    void this.#splits.stop();
    for (const served of [...this.#tablets.all()]) {
      this.#tablets.delete(served);
      void served.tablet.cancelCompaction();
    }
    assert(this.#tablets.size === 0, 'a server that has ended serves no tablets');
    this.#budget.stop().catch(() => {});
  }

  async #finishFailed(reason: BigtableError): Promise<void> {
    try {
      await this.#stopServing?.();
      await this.#finish();
    } catch (error) {
      this.#env.logger.warn('a tablet server did not end cleanly', { error: toBigtableError(error).message });
    }
    this.#onEnd?.(reason);
  }

  /** Begins no further work of its own: no compaction, no load, no notice. */
  #stopWork(): void {
    this.#loads.stop();
    this.#aftermath.stop();
    this.#calls.stop();
    this.#compactions.stop();
    this.#notices.stop();
    this.#sorter.stop();
    this.#loader.stop();
  }

  async #finish(): Promise<void> {
    assert(this.#phase === 'ended', 'a tablet server ends before its resources are released');
    this.#contexts.over();
    this.#removeGauges();
    this.#opener.stop();
    this.#aftermath.stop();
    this.#replay.clear();
    this.#schemas.stop();
    await closeBoth(this.#log, this.#session);
  }

  #enter(phase: Phase): void {
    assert(NEXT_PHASES[this.#phase].includes(phase), 'the phases of a tablet server come in order');
    this.#phase = phase;
  }

  /** The tablets that it serves now. */
  get tablets(): Pick<TabletMap, 'size' | 'all'> {
    return this.#tablets;
  }

  /** Files that it needs, whether a row lists them or not. */
  heldFiles(): readonly string[] {
    return this.#calls.holdings().files;
  }

  /** True when its lock surely holds. */
  leaseHeld(): boolean {
    return this.#phase !== 'ended' && this.#log.failed === undefined && this.#session.held();
  }

  #mayCommit(): boolean {
    return this.#phase !== 'ended' && this.#env.clock.monotonicMs() < this.#commitUntilMs;
  }
}

function budgetOf(env: Env, settings: TabletServerSettings, log: ServerLog, keptFrom: KeptLog): MemtableBudget {
  const { memtableBytes: limitBytes, logLimitBytes, metadataTabletBytes, flushLimits } = settings;
  return new MemtableBudget({ ...env, limitBytes, logLimitBytes, metadataTabletBytes, flushLimits, log, keptFrom });
}

function retentionOf(
  parts: Pick<ChangeRetentionOptions, 'log' | 'clock' | 'logger' | 'tablets'>,
  schemas: SchemaCache,
  { changeLogBytes: limitBytes = CHANGE_LOG_BYTES, memtableBytes, logLimitBytes }: TabletServerSettings,
): ChangeRetention {
  // a log that has reached its limit, and the files of its flushes
  const freeBytes = 2 * (memtableBytes + logLimitBytes);
  return new ChangeRetention({ ...parts, limitBytes, freeBytes, schemaOf: (tableId) => schemas.byId(tableId) });
}

function loadsOf(
  env: Env,
  { hotTabletPercent: leastPercent = HOT_PERCENT }: TabletServerSettings,
  { tablets, schemas }: { readonly tablets: TabletMap; readonly schemas: SchemaCache },
): LoadHistory {
  return new LoadHistory({ ...env, tablets, nameOf: (id) => schemas.byId(id)?.name, leastPercent });
}

function replayOf({ fileSystem, clock }: Env, sorter: LogSorter): LogReplay {
  return new LogReplay(
    (path) => readReplayedAppends(fileSystem, path),
    (path) => sorter.find(path),
    clock,
  );
}

async function closeBoth(log: ServerLog | undefined, session: ServerSession): Promise<void> {
  try {
    await log?.close();
  } finally {
    await session.close();
  }
}
