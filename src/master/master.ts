/**
 * The master (paper section 5.2): stands by until it has the master lock, reads which server serves which tablet, has
 * the other tablets assigned, creates, changes and deletes tables, handles dead servers, evens out the load of the
 * others, and deletes files that no row refers to. No data of clients moves through it, and it answers before every
 * tablet is served.
 *
 * Invariant: its changes of METADATA are conditional on the rows, those in the lock service on its lock. Its calls
 * carry the epoch of its lock, and a server that a later master has called refuses them; it removes or releases rows
 * only after it has seen that it still has the lock (docs/decisions/0051-fencing-of-masters.md). So a master that lost
 * its lock and does not know it does no harm.
 */
import { type BigtableError, type ByteString, unavailable } from '../base/index.ts';
import {
  type CallHandler,
  callRefused,
  type Env,
  followChanges,
  type LockHandle,
  OwnContexts,
  type RequestContext,
  type Timer,
} from '../env/index.ts';
import { Locator, loggingSchemaCache, MetadataClient, type SchemaCache } from '../locator/index.ts';
import {
  encodePeerFile,
  hasPlace,
  isDeposed,
  MASTER_PATH,
  PROTOCOL,
  SERVERS_DIRECTORY,
  type TabletRef,
} from '../protocol/index.ts';
import { Assignment } from './assignment.ts';
import { AssignmentQueue } from './assignment-queue.ts';
import { ExportedBackups } from './exported-backups.ts';
import { AutomatedBackups } from './automated-backups.ts';
import { Backups } from './backups.ts';
import { Balancer } from './balancer.ts';
import { Creations } from './creations.ts';
import { Deletions } from './deletions.ts';
import { FirstAssignment, isLasting } from './first-assignment.ts';
import { KeptTables } from './kept-tables.ts';
import { LoadFailures } from './load-failures.ts';
import { Loads } from './loads.ts';
import { LogSorting, type SortedLogSizes } from './log-sorting.ts';
import { masterHandler } from './master-handler.ts';
import { takeMasterLock } from './master-lock.ts';
import { MetadataTablets } from './metadata-tablets.ts';
import { Recoveries } from './recoveries.ts';
import { Servers } from './servers.ts';
import { type SweepResult, sweep } from './sweep.ts';
import { noTable, TableAdmin } from './table-admin.ts';
import { mergeTablets } from './tablet-merge.ts';
import { TableIds } from './table-ids.ts';
import { UsageCounts } from './usage-counts.ts';
import { Verification } from './verification.ts';
import { RETRY_MS, WorkSchedule } from './work-schedule.ts';

export interface MasterOptions {
  readonly env: Env;
  /** The address at which peers reach it. */
  readonly address: string;
  /** Ends the wait for the lock. */
  readonly signal?: AbortSignal;
  /** As `TabletServerOptions`. */
  readonly comparesClocks?: boolean;
  /**
   * Called while the first assignment cannot be made: true ends the attempts, and `assigned` rejects. Default: it
   * retries for ever.
   */
  readonly isCancelled?: () => boolean;
  /** As `LogSortingOptions.sizes`. */
  readonly sortedLogs?: SortedLogSizes;
  /** How long deleted tables are kept, so that they can be restored. Default: 0, they are not. */
  readonly keepDeletedMs?: number;
  /** Called once, when it ends after its start without having been closed: it has lost the lock. */
  readonly onEnd?: () => void;
}

/** The delay between the start and its sweep: the first reads come first. */
const FIRST_SWEEP_MS = 500;
/** The delay between a deletion and the sweep after it: several deletions share one. */
const SWEEP_DELAY_MS = 200;
/**
 * The interval of sweeps. Compactions delete the files they replace if no other tablet can need them; sweeps delete the
 * others, and those that failures leave.
 */
const SWEEP_PERIOD_MS = 3_600_000;
/** The interval of looks at all rows: they find a tablet that no server serves, for whatever reason. */
const LOOK_PERIOD_MS = 30_000;
/** The delay between a row that could not be read and a look at METADATA. */
const NOT_READ_MS = 5000;
/** The interval of calls to a server that holds its lock and does not answer. */
const CALL_AGAIN_MS = 1000;
/** The delay between a split, or a server that comes, and the comparison of loads: both come several at a time. */
const BALANCE_DELAY_MS = 5000;

type Work =
  | 'count usage'
  | 'finish backups'
  | 'back tables up'
  | 'sweep'
  | 'assign'
  | 'look at METADATA'
  | 'finish deletions'
  | 'balance'
  | 'call silent servers';

type Lane = 'usage' | 'sweep' | 'assign' | 'METADATA' | 'merge' | 'deletions' | 'backups';

export class Master {
  readonly #env: Env;
  readonly #lock: LockHandle;
  readonly #schemas: SchemaCache;
  readonly #metadata: MetadataClient;
  readonly #servers: Servers;
  readonly #assignment: Assignment;
  readonly #metadataTablets = new MetadataTablets();
  readonly #queue: AssignmentQueue;
  readonly #verification: Verification;
  readonly #recoveries: Recoveries;
  readonly #sorting: LogSorting;
  readonly #balancer: Balancer;
  readonly #tables: TableAdmin;
  readonly #deletions: Deletions;
  readonly #backups: Backups;
  readonly #exports: ExportedBackups;
  readonly #automatedBackups: AutomatedBackups;
  readonly #usage: UsageCounts;
  #stopServing: (() => Promise<void>) | undefined;
  #stopWatching: (() => void) | undefined;
  #ended = false;
  #closing: Promise<void> | undefined;
  /** Looks come one after another, and so do sweeps, merges and deletions. */
  readonly #schedule: WorkSchedule<Work, Lane>;
  #sweeping: Timer | undefined;
  /** Ends the look at METADATA under way. */
  #lookingAtMetadata = new AbortController();
  /** True when the last look could not read all rows. */
  #isBlind = false;
  readonly #contexts: OwnContexts;
  readonly #removeGauges: () => void;
  readonly #options: MasterOptions;
  readonly #assigned = new FirstAssignment();
  #isStarted = false;

  private constructor(options: MasterOptions, lock: LockHandle) {
    const { env, isCancelled = () => false } = options;
    this.#options = options;
    this.#env = env;
    this.#lock = lock;
    this.#contexts = new OwnContexts({ ...env, principal: 'master' });
    this.#metadata = new MetadataClient({
      ...env,
      locator: new Locator(env),
      lock,
      masterEpoch: lock.epoch,
      stopped: () => this.#ended || (!this.#assigned.isOver && isCancelled()),
      onStall: () => this.#lookAtMetadataAnew(),
    });
    this.#schemas = loggingSchemaCache(env);
    this.#servers = new Servers(env, lock, (name) => this.#serverGone(name));
    this.#deletions = new Deletions(env, lock);
    this.#schedule = new WorkSchedule<Work, Lane>({
      ...env,
      run: (what) => this.#work(what),
      check: () => this.#checkMayWork(),
      onFailure: (what, error) => this.#failed(what, error),
    });
    const parts = {
      env,
      metadata: this.#metadata,
      metadataTablets: this.#metadataTablets,
      schemas: this.#schemas,
      servers: this.#servers,
      creations: new Creations(),
      deletions: this.#deletions,
      context: () => this.#context(),
      check: () => this.#checkMayWork(),
      onDeposed: () => this.#lockLost(),
    };
    this.#usage = new UsageCounts(parts);
    const loads = new Loads({
      ...parts,
      clock: env.clock,
      caller: this.#servers.caller,
      failures: new LoadFailures(env.logger),
      // its server may wait for one that died unnoticed
      onMetadataStall: () => this.#lookAtMetadataAnew(),
    });
    this.#sorting = new LogSorting({ ...parts, sizes: options.sortedLogs });
    this.#assignment = new Assignment({ ...parts, sorting: this.#sorting });
    this.#queue = new AssignmentQueue({
      ...parts,
      assignment: this.#assignment,
      loads,
      onMetadataFailure: (error) => {
        this.#schedule.logFailure('assign', error);
        // the look may wait for the tablet, which is tried again and again
        this.#firstAssignmentFailed(error);
      },
      onNotRead: () => this.#schedule.later('look at METADATA', NOT_READ_MS),
    });
    const assigning = { ...parts, loads, sorting: this.#sorting, assignment: this.#assignment, queue: this.#queue };
    this.#verification = new Verification({ ...assigning, onBackup: (id) => this.#backups.seen(id) });
    this.#recoveries = new Recoveries({ ...assigning, lookAtAll: () => this.#lookAtAllAnew() });
    this.#balancer = new Balancer(assigning);
    this.#removeGauges = env.metrics.gauges({
      'master.unservedTablets': () => Math.max(this.#queue.unserved, this.#isBlind ? 1 : 0),
      'master.tables': () => this.#schemas.size,
      'master.keptTables': () => this.#deletions.kept().length,
    });
    const owned = { ...assigning, lock, ids: new TableIds(env.lockService, lock) };
    this.#tables = new TableAdmin({
      ...owned,
      kept: new KeptTables(owned),
      keepDeletedMs: options.keepDeletedMs ?? 0,
      onRowsLeft: () => this.#schedule.later('finish deletions', RETRY_MS),
    });
    this.#exports = new ExportedBackups(owned);
    this.#backups = new Backups({
      ...owned,
      exports: this.#exports,
      tables: this.#tables,
      betweenSweeps: (work) => this.#schedule.oneByOne('sweep', work),
      onRowsLeft: () => this.#schedule.later('finish backups', RETRY_MS),
    });
    this.#automatedBackups = new AutomatedBackups({ env, schemas: this.#schemas, backups: this.#backups });
  }

  /** Stands by until it has the lock. Resolves when it answers calls. */
  static async start(options: MasterOptions): Promise<Master> {
    const { env, address } = options;
    const sessionId = await env.lockService.openSession();
    const lock = await takeMasterLock(options, sessionId).catch(async (error: unknown) => {
      await env.lockService.closeSession(sessionId);
      throw error;
    });
    const master = new Master(options, lock);
    try {
      await master.#schemas.start();
      await master.#deletions.start(master.#schemas);
      await master.#watch();
      master.#stopServing = await env.transport.serve(address, master.#handler());
      await env.lockService.write(MASTER_PATH, encodePeerFile({ name: sessionId, address, protocol: PROTOCOL }), {
        lock,
        sessionId,
      });
      master.#checkMayWork();
    } catch (error) {
      await master.close();
      throw error;
    }
    master.#isStarted = true;
    master.#schedule.begin('assign');
    master.#sweepPeriodically();
    return master;
  }

  /**
   * Resolves when every tablet that can be served is, for the first time. Rejects if the master ends, and with a
   * failure that another attempt does not mend, though it is made.
   */
  get assigned(): Promise<void> {
    return this.#assigned.promise;
  }

  /** Releases the lock. Assignments stay as they are. Resolves when no work of the master goes on. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const endsAlone = this.#ended;
    await this.#stopServing?.();
    if (!this.#ended) this.#end();
    await Promise.all([this.#schedule.over(), this.#queue.over()]);
    this.#contexts.over();
    if (!endsAlone) await this.#env.lockService.closeSession(this.#lock.sessionId);
  }

  #end(): void {
    this.#ended = true;
    this.#contexts.end();
    this.#removeGauges();
    this.#lookingAtMetadata.abort();
    this.#queue.end();
    this.#recoveries.end();
    this.#balancer.outdated();
    this.#servers.end();
    this.#stopWatching?.();
    this.#schemas.stop();
    this.#schedule.end();
    this.#assigned.failed(unavailable('the master has ended'));
    this.#sweeping?.cancel();
  }

  #sweepPeriodically(): void {
    this.#sweeping = this.#env.clock.timer(SWEEP_PERIOD_MS, () => {
      this.#schedule.later('sweep', 0);
      this.#sweepPeriodically();
    });
  }

  /** Deaths of servers, new servers, and the end of this master's own session, or of the file by which it is found. */
  async #watch(): Promise<void> {
    this.#stopWatching = await followChanges(this.#env, '', {
      onChange: (event) => {
        if (
          event.kind === 'session-expired'
            ? event.sessionId === this.#lock.sessionId
            : event.kind !== 'changed' && event.path === MASTER_PATH
        )
          this.#lockLost();
        else if (event.kind !== 'session-expired' && event.path.startsWith(SERVERS_DIRECTORY))
          this.#serverChanged(event.path.slice(SERVERS_DIRECTORY.length), event.kind === 'changed' ? 'come' : 'gone');
      },
      readAgain: async () => {
        this.#servers.watchMissed();
        await this.#checkLock();
        this.#schedule.later('assign', 0);
      },
      onEnd: () => this.#lockLost(),
    });
    // it may have been lost before the watch began
    await this.#checkLock();
  }

  async #checkLock(): Promise<void> {
    if (!(await hasPlace(this.#env.lockService, this.#lock, this.#isStarted))) this.#lockLost();
  }

  #lockLost(): void {
    if (this.#ended) return;
    this.#env.logger.error('the master has lost its lock, or its file, and ends itself');
    this.#end();
    void this.#endAlone();
  }

  async #endAlone(): Promise<void> {
    // where only its watch has ended it may have the lock still
    this.#env.lockService.closeSession(this.#lock.sessionId).catch(() => {});
    await this.#stopServing?.();
    if (this.#isStarted) this.#options.onEnd?.();
  }

  #serverChanged(name: string, how: 'come' | 'gone'): void {
    if (how === 'gone') return this.#serverGone(name);
    this.#servers.come(name, this.#context()).then(
      (isNew) => {
        if (isNew) this.#serversChanged();
        if (this.#servers.isSilent(name)) this.#schedule.later('call silent servers', CALL_AGAIN_MS);
      },
      // a look at all servers finds it
      () => this.#schedule.later('assign', RETRY_MS),
    );
  }

  #serverGone(name: string): void {
    this.#serversChanged();
    this.#recoveries.serverGone(name);
  }

  #serversChanged(): void {
    this.#balancer.outdated();
    this.#schedule.later('balance', BALANCE_DELAY_MS);
  }

  /** Ends the look at METADATA under way, which may wait for what only the next one finds. */
  #lookAtMetadataAnew(): void {
    this.#lookingAtMetadata.abort();
    this.#schedule.later('look at METADATA', 0);
  }

  /** The look under way may wait for a tablet of METADATA that a dead server has. */
  #lookAtAllAnew(): void {
    this.#lookAtMetadataAnew();
    this.#schedule.later('assign', 0);
  }

  #lookAtMetadata(): Promise<void> {
    return this.#schedule.oneByOne('METADATA', async () => {
      this.#lookingAtMetadata = new AbortController();
      this.#recoveries.forget();
      this.#sorting.forget();
      await this.#verification.ofMetadata({ ...this.#context(), signal: this.#lookingAtMetadata.signal });
      if (this.#servers.anySilent) this.#schedule.later('call silent servers', CALL_AGAIN_MS);
    });
  }

  /** A look at all servers and rows. */
  async #lookAtAll(): Promise<void> {
    await this.#lookAtMetadata();
    await this.#verification.ofUsers(this.#context());
    this.#isBlind = false;
    if (!this.#assigned.isDone) void this.#queue.idle().then(() => this.#allAssigned());
    this.#schedule.later('assign', LOOK_PERIOD_MS);
    if (this.#backups.anySeen) this.#schedule.later('finish backups', 0);
    if (this.#automatedBackups.areWanted) this.#schedule.later('back tables up', 0);
    if (this.#deletions.unfinished().length > 0) this.#schedule.later('finish deletions', 0);
    this.#schedule.later('balance', 0);
    if (this.#usage.isNeeded) this.#schedule.later('count usage', 0);
  }

  /** Every tablet was tried after the first look at all. */
  #allAssigned(): void {
    if (!this.#ended && this.#assigned.done()) this.#schedule.later('sweep', FIRST_SWEEP_MS);
  }

  /** Servers that are left out because they did not answer come in again when they do. */
  async #callSilent(): Promise<void> {
    const answered = await this.#servers.callSilent(this.#context());
    if (answered) {
      this.#serversChanged();
      this.#schedule.later('assign', 0);
    }
    if (this.#servers.anySilent) this.#schedule.later('call silent servers', CALL_AGAIN_MS);
  }

  /** Loads are compared when no tablet is on its way to a server. */
  async #balance(): Promise<void> {
    if (this.#queue.isBusy) return this.#schedule.later('balance', BALANCE_DELAY_MS);
    if ((await this.#balancer.run()) > 0) this.#schedule.later('balance', BALANCE_DELAY_MS);
  }

  /** A merge needs METADATA. If that could not be served the merge fails as the last attempt did. */
  async #merge(name: string, row: ByteString): Promise<void> {
    for (const key of this.#metadataTablets.all()) {
      const failure = await this.#queue.settled(key);
      if (failure) throw failure;
    }
    const known = await this.#schemas.read(name);
    if (known === undefined) throw noTable(name);
    const parts = { env: this.#env, metadata: this.#metadata, servers: this.#servers, queue: this.#queue };
    try {
      await mergeTablets(parts, known.schema, row, this.#context());
    } catch (error) {
      if ((await this.#schemas.read(name))?.schema.id !== known.schema.id) throw noTable(name);
      throw error;
    }
  }

  #sweep(): Promise<SweepResult> {
    const isArriving = (path: string): boolean => this.#exports.isArriving(path);
    return this.#schedule.oneByOne('sweep', () =>
      sweep(this.#env, this.#metadata, this.#servers, isArriving, this.#context()),
    );
  }

  async #work(what: Work): Promise<void> {
    if (what === 'sweep') await this.#sweep();
    else if (what === 'call silent servers') await this.#callSilent();
    else if (what === 'finish deletions') await this.#finishDeletions();
    else if (what === 'finish backups') await this.#finishBackups();
    else if (what === 'back tables up') await this.#backTablesUp();
    else if (what === 'balance') await this.#balance();
    else if (what === 'count usage') await this.#countUsage();
    else if (what === 'look at METADATA') await this.#lookAtMetadata();
    else await this.#schedule.oneByOne('assign', () => this.#lookAtAll());
  }

  async #finishDeletions(): Promise<void> {
    await this.#schedule.oneByOne('deletions', () => this.#tables.finishDeletions(this.#context()));
    this.#schedule.later('sweep', SWEEP_DELAY_MS);
  }

  #countUsage(context = this.#context()): Promise<void> {
    return this.#schedule.oneByOne('usage', () => this.#usage.run(context));
  }

  async #finishBackups(): Promise<void> {
    await this.#schedule.oneByOne('deletions', () => this.#backups.finish(this.#context()));
  }

  /** Backups may take their time: no other work waits for them. */
  async #backTablesUp(): Promise<void> {
    await this.#schedule.oneByOne('backups', () => this.#automatedBackups.run(this.#context()));
  }

  #failed(what: Work, error: BigtableError): void {
    if (isDeposed(error)) return this.#lockLost();
    if (what !== 'assign') return;
    this.#isBlind = true;
    this.#firstAssignmentFailed(error);
  }

  /** Ends the wait for the first assignment if another attempt does not mend the failure, or is not waited for. */
  #firstAssignmentFailed(error: BigtableError): void {
    const { isCancelled = () => false } = this.#options;
    if (isLasting(error) || (!this.#assigned.isOver && isCancelled())) this.#assigned.failed(error);
  }

  #checkMayWork(): void {
    if (this.#ended) throw unavailable('the master has ended');
    if (!this.#env.lockService.leaseHolds(this.#lock.sessionId))
      throw unavailable('the lease of the master may have lapsed');
  }

  #context(): RequestContext {
    return this.#contexts.next();
  }

  /** Calls that read or change METADATA are refused until it is served for the first time. */
  #checkIsReady(): void {
    if (!this.#assignment.metadataWasServed)
      throw callRefused('the master has just started: METADATA is not served yet');
  }

  #handler(): CallHandler {
    return masterHandler({
      env: this.#env,
      name: this.#lock.sessionId,
      tables: this.#tables,
      backups: this.#backups,
      exports: this.#exports,
      context: () => this.#context(),
      checkIsReady: () => this.#checkIsReady(),
      confirmDoorFiles: (paths, context) =>
        this.#servers.confirm(paths.join(', '), 'doorFilesChanged', { paths }, context),
      merge: (name, row) => this.#schedule.oneByOne('merge', () => this.#merge(name, row)),
      countUsage: (context) => this.#countUsage(context),
      sweep: () => this.#sweep(),
      sweepLater: () => this.#schedule.later('sweep', SWEEP_DELAY_MS),
      onSplit: (server, tablets) => this.#tabletSplit(server, tablets),
      onDeposed: () => this.#lockLost(),
    });
  }

  #tabletSplit(server: string, tablets: readonly TabletRef[]): void {
    this.#metadataTablets.add(tablets.map(({ key }) => key));
    for (const tablet of tablets) this.#servers.get(server)?.serves(tablet);
    if (this.#servers.all().length > 1) this.#schedule.later('balance', BALANCE_DELAY_MS);
  }
}
