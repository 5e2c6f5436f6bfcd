/**
 * The master (paper section 5.2): stands by until it has the master lock, reads which server serves which tablet,
 * assigns the other tablets, creates, changes and deletes tables, handles dead servers and deletes files that no row
 * refers to. No data of clients moves through it, and it answers before every tablet is served.
 *
 * Invariant: its changes of METADATA are conditional on the rows, those in the lock service on its lock. Its calls
 * carry the epoch of its lock, and a server that a later master has called refuses them; it removes or releases rows
 * only after it has seen that it still has the lock (docs/decisions/0051-fencing-of-masters.md). So a master that lost
 * its lock and does not know it does no harm.
 */
import { assert, type BigtableError, type ByteString, Code, toBigtableError, unavailable } from '../base/index.ts';
import {
  type CallHandler,
  type Env,
  followChanges,
  type LockHandle,
  type RequestContext,
  notReached,
  requestContext,
  type Timer,
} from '../env/index.ts';
import { Locator, MetadataClient, SchemaCache } from '../locator/index.ts';
import {
  callHandler,
  checkAddressed,
  encodePeerFile,
  type Handlers,
  isDeposed,
  MASTER_PATH,
  type MasterCalls,
  PROTOCOL,
  SERVERS_DIRECTORY,
} from '../protocol/index.ts';
import { Assignment, type AssignmentResult } from './assignment.ts';
import { Creations } from './creations.ts';
import { Deletions } from './deletions.ts';
import { FirstAssignment, isLasting } from './first-assignment.ts';
import { takeMasterLock } from './master-lock.ts';
import { Recoveries } from './recoveries.ts';
import { Servers } from './servers.ts';
import { type SweepResult, sweep } from './sweep.ts';
import { noTable, TableAdmin } from './table-admin.ts';
import { mergeTablets } from './tablet-merge.ts';
import { RETRY_MS, WorkSchedule } from './work-schedule.ts';

export interface MasterOptions {
  readonly env: Env;
  /** The address at which peers reach it. */
  readonly address: string;
  /** Ends the wait for the lock. */
  readonly signal?: AbortSignal;
  /**
   * Called while the first assignment cannot be made: true ends the attempts, and `assigned` rejects. Default: it
   * retries for ever.
   */
  readonly isCancelled?: () => boolean;
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
/**
 * The interval of assignments while no server changes: they find a tablet that no server serves, for whatever reason.
 */
const ASSIGN_PERIOD_MS = 30_000;
/** The interval of calls to a server that holds its lock and does not answer. */
const CALL_AGAIN_MS = 1000;
/**
 * The delay between a split and the comparison of its server's size with the others': splits come several at a time.
 */
const BALANCE_DELAY_MS = 5000;

type Work = 'sweep' | 'assign' | 'finish deletions' | 'balance' | 'call silent servers';

type Lane = 'sweep' | 'assign' | 'deletions';

export class Master {
  readonly #env: Env;
  readonly #lock: LockHandle;
  readonly #schemas: SchemaCache;
  readonly #metadata: MetadataClient;
  readonly #servers: Servers;
  readonly #assignment: Assignment;
  readonly #recoveries: Recoveries;
  readonly #tables: TableAdmin;
  readonly #deletions: Deletions;
  #stopServing: (() => Promise<void>) | undefined;
  #stopWatching: (() => void) | undefined;
  #ended = false;
  /**
   * Assignments come one after another, and so do sweeps and deletions; but one of those that waits for METADATA must
   * not hold up the assignment that serves it.
   */
  readonly #schedule: WorkSchedule<Work, Lane>;
  #sweeping: Timer | undefined;
  /** Ends the assignment under way. */
  #assigning = new AbortController();
  #isAssigning = false;
  /** Tablet servers came or went since the last assignment began, or it failed: METADATA may be without a server. */
  #assignmentIsDue = false;
  /**
   * Number of tablets that the last assignment could not have served; at least 1 if it could not even read the rows.
   */
  #unserved = 0;
  readonly #removeGauges: () => void;
  readonly #options: MasterOptions;
  readonly #assigned = new FirstAssignment();
  #isStarted = false;

  private constructor(options: MasterOptions, lock: LockHandle) {
    const { env, isCancelled = () => false } = options;
    this.#options = options;
    this.#env = env;
    this.#lock = lock;
    const locator = new Locator(env);
    this.#metadata = new MetadataClient({
      ...env,
      locator,
      lock,
      masterEpoch: lock.epoch,
      stopped: () => this.#ended || (!this.#assigned.isOver && isCancelled()),
      onStall: () => this.#assignAnew(),
    });
    this.#schemas = new SchemaCache(env, (error) =>
      env.logger.error('a schema could not be read', { error: toBigtableError(error).message }),
    );
    this.#servers = new Servers(env, lock);
    this.#deletions = new Deletions(env, lock);
    const parts = {
      env,
      metadata: this.#metadata,
      schemas: this.#schemas,
      servers: this.#servers,
      creations: new Creations(),
      deletions: this.#deletions,
    };
    this.#assignment = new Assignment(parts);
    this.#schedule = new WorkSchedule<Work, Lane>({
      ...env,
      run: (what) => this.#work(what),
      check: () => this.#checkMayWork(),
      onFailure: (what, error) => this.#failed(what, error),
    });
    this.#recoveries = new Recoveries({
      ...parts,
      logger: env.logger,
      assignment: this.#assignment,
      context: () => this.#context(),
      check: () => this.#checkMayWork(),
      assignLater: (delayMs) => this.#schedule.later('assign', delayMs),
      assignAnew: () => this.#assignAnew(),
      onDeposed: () => this.#lockLost(),
    });
    this.#removeGauges = env.metrics.gauges({
      'master.unservedTablets': () => this.#unserved,
      'master.tables': () => this.#schemas.size,
    });
    this.#tables = new TableAdmin({
      ...parts,
      lock,
      assignment: this.#assignment,
      onRowsLeft: () => this.#schedule.later('finish deletions', RETRY_MS),
    });
  }

  /** Stands by until it has the lock. Resolves when it answers calls. */
  static async start(options: MasterOptions): Promise<Master> {
    const { env, address, signal } = options;
    const sessionId = await env.lockService.openSession();
    const lock = await takeMasterLock(env, sessionId, signal).catch(async (error: unknown) => {
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

  /** Releases the lock. Assignments stay as they are. */
  async close(): Promise<void> {
    if (this.#ended) return;
    await this.#stopServing?.();
    this.#end();
    await this.#schedule.over();
    await this.#env.lockService.closeSession(this.#lock.sessionId);
  }

  #end(): void {
    this.#ended = true;
    this.#removeGauges();
    this.#assigning.abort();
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

  /** Deaths of servers, new servers, and the end of this master's own session. */
  async #watch(): Promise<void> {
    this.#stopWatching = await followChanges(this.#env, '', {
      onChange: (event) => {
        if (
          event.kind === 'session-expired'
            ? event.sessionId === this.#lock.sessionId
            : event.kind === 'lock-lost' && event.path === MASTER_PATH
        )
          this.#lockLost();
        else if (event.kind !== 'session-expired' && event.path.startsWith(SERVERS_DIRECTORY))
          this.#serverChanged(event.path.slice(SERVERS_DIRECTORY.length), event.kind === 'changed' ? 'come' : 'gone');
      },
      readAgain: async () => {
        await this.#checkLock();
        this.#assignAnew();
      },
      onEnd: () => this.#lockLost(),
    });
    // it may have been lost before the watch began
    await this.#checkLock();
  }

  async #checkLock(): Promise<void> {
    const holder = await this.#env.lockService.holder(MASTER_PATH);
    if (holder?.epoch !== this.#lock.epoch) this.#lockLost();
  }

  #lockLost(): void {
    if (this.#ended) return;
    this.#env.logger.error('the master has lost its lock and ends itself');
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
    if (how === 'come') {
      this.#assignmentIsDue = true;
      this.#schedule.later('assign', RETRY_MS);
      return;
    }
    this.#recoveries.serverGone(name);
  }

  /** Ends the assignment under way, which may wait for what only the next one can have served. */
  #assignAnew(): void {
    this.#assignmentIsDue = true;
    this.#assigning.abort();
    this.#schedule.later('assign', 0);
  }

  async #assignAll(): Promise<void> {
    assert(!this.#isAssigning, 'one assignment runs at a time');
    this.#isAssigning = true;
    try {
      await this.#assignAllExclusively();
    } finally {
      this.#isAssigning = false;
    }
  }

  async #assignAllExclusively(): Promise<void> {
    this.#assignmentIsDue = false;
    this.#assigning = new AbortController();
    const context = { ...this.#context(), signal: this.#assigning.signal };
    const { failures } = await this.#assignOnce(context).catch((error: unknown) => {
      this.#assignmentIsDue = true;
      this.#unserved = Math.max(1, this.#unserved);
      throw error;
    });
    this.#unserved = failures.length;
    if (this.#assigned.done()) this.#schedule.later('sweep', FIRST_SWEEP_MS);
    if (this.#servers.anySilent) this.#schedule.later('call silent servers', CALL_AGAIN_MS);
    this.#schedule.later('assign', ASSIGN_PERIOD_MS);
    if (this.#deletions.all().length > 0) this.#schedule.later('finish deletions', 0);
    if (failures.some(({ code }) => code !== Code.DATA_LOSS)) this.#schedule.later('assign', RETRY_MS);
    else if ((await this.#assignment.balance(context)) > 0) this.#schedule.later('assign', RETRY_MS);
  }

  /** Servers that are left out because they did not answer come in again when they do. */
  async #callSilent(): Promise<void> {
    const answered = await this.#servers.callSilent(this.#context());
    if (answered) this.#schedule.later('assign', 0);
    else if (this.#servers.anySilent) this.#schedule.later('call silent servers', CALL_AGAIN_MS);
  }

  async #assignOnce(context: RequestContext): Promise<AssignmentResult> {
    await this.#servers.scan(context);
    this.#recoveries.forget();
    return this.#assignment.assignAll(context);
  }

  /**
   * No assignment runs meanwhile, and a death of a server ends the merge as it ends an assignment. An assignment that
   * is due goes first: METADATA itself may be unserved, so that the merge would wait for it, and the assignment for the
   * merge.
   */
  async #merge(name: string, row: ByteString): Promise<void> {
    while (this.#assignmentIsDue) await this.#assignAll();
    assert(!this.#isAssigning, 'no assignment runs while tablets are merged');
    this.#assigning = new AbortController();
    const known = await this.#schemas.read(name);
    if (known === undefined) throw noTable(name);
    const parts = { env: this.#env, metadata: this.#metadata, servers: this.#servers, assignment: this.#assignment };
    try {
      await mergeTablets(parts, known.schema, row, { ...this.#context(), signal: this.#assigning.signal });
    } catch (error) {
      // tablets that were released meanwhile are to be served again
      this.#schedule.later('assign', 0);
      if ((await this.#schemas.read(name))?.schema.id !== known.schema.id) throw noTable(name);
      throw error;
    }
  }

  #sweep(): Promise<SweepResult> {
    return this.#schedule.oneByOne('sweep', () => sweep(this.#env, this.#metadata, this.#servers, this.#context()));
  }

  async #work(what: Work): Promise<void> {
    if (what === 'sweep') await this.#sweep();
    else if (what === 'call silent servers') await this.#callSilent();
    else if (what === 'finish deletions') await this.#finishDeletions();
    else await this.#schedule.oneByOne('assign', () => this.#assignAll());
  }

  async #finishDeletions(): Promise<void> {
    await this.#schedule.oneByOne('deletions', () => this.#tables.finishDeletions(this.#context()));
    this.#schedule.later('sweep', SWEEP_DELAY_MS);
  }

  #failed(what: Work, error: BigtableError): void {
    if (isDeposed(error)) return this.#lockLost();
    const { isCancelled = () => false } = this.#options;
    if (what === 'assign' && (isLasting(error) || (!this.#assigned.isOver && isCancelled())))
      this.#assigned.failed(error);
  }

  #checkMayWork(): void {
    if (this.#ended) throw unavailable('the master has ended');
    if (!this.#env.lockService.leaseHolds(this.#lock.sessionId))
      throw unavailable('the lease of the master may have lapsed');
  }

  #context(): RequestContext {
    return requestContext({ budget: this.#env.requestBudget, principal: 'master' });
  }

  /** Calls that read or change METADATA are refused until it is served for the first time. */
  #checkIsReady(): void {
    if (!this.#assignment.metadataWasServed)
      throw notReached('the master has just started: METADATA is not served yet');
  }

  #handler(): CallHandler {
    const whenReady =
      <T, A>(call: (message: T, context: RequestContext) => Promise<A>) =>
      async (message: T, { deadlineMs }: RequestContext): Promise<A> => {
        this.#checkIsReady();
        return call(message, { ...this.#context(), deadlineMs });
      };
    const handlers: Handlers<MasterCalls> = {
      // its repetition would not be known as one
      createTable: whenReady((message) => this.#tables.createTable(message, this.#context())),
      updateTable: whenReady((message, context) => this.#tables.updateTable(message, context)),
      deleteTable: whenReady(async ({ name }, context) => {
        await this.#tables.deleteTable(name, context);
        this.#schedule.later('sweep', SWEEP_DELAY_MS);
        return undefined;
      }),
      modifyFamilies: whenReady(({ name, changes }, context) => this.#tables.modifyFamilies(name, changes, context)),
      mergeTablets: whenReady(async ({ name, row }) => {
        await this.#schedule.oneByOne('assign', () => this.#merge(name, row));
        return undefined;
      }),
      tabletSplit: async (message) => {
        checkAddressed(message, this.#lock.sessionId);
        const { server, tablets } = message;
        for (const { key, epoch } of tablets) this.#servers.get(server)?.tablets.set(key, epoch);
        if (this.#servers.all().length > 1) this.#schedule.later('balance', BALANCE_DELAY_MS);
        return undefined;
      },
      filesLeft: async (message) => {
        checkAddressed(message, this.#lock.sessionId);
        this.#schedule.later('sweep', SWEEP_DELAY_MS);
        return undefined;
      },
      counters: async () => ({
        name: this.#env.metrics.name(this.#env.random),
        counters: this.#env.metrics.snapshot(),
      }),
      sweep: whenReady(() => this.#sweep()),
    };
    const { call, stream } = callHandler<MasterCalls>(handlers);
    return {
      stream,
      call: (method, message, context) =>
        call(method, message, context).catch((thrown: unknown) => {
          if (!isDeposed(toBigtableError(thrown))) throw thrown;
          this.#lockLost();
          throw unavailable('another master has taken the place of this one', thrown);
        }),
    };
  }
}
