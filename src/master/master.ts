/**
 * The master (paper section 5.2): takes the master lock, reads which server serves which tablet, assigns the other
 * tablets, and from then on creates, changes and deletes tables, handles dead servers and deletes files that no row
 * refers to. No data of clients moves through it.
 *
 * Invariant: its changes of METADATA are conditional on the rows, those in the lock service on its lock. Its calls
 * carry the epoch of its lock, and a server that a later master has called refuses them; it removes or releases rows
 * only after it has seen that it still has the lock (docs/decisions/0051-fencing-of-masters.md). So a master that lost
 * its lock and does not know it does no harm.
 */
import { assert, BigtableError, type ByteString, Code, toBigtableError, unavailable } from '../base/index.ts';
import {
  type CallHandler,
  type Env,
  followChanges,
  type LockHandle,
  type RequestContext,
  requestContext,
  sleep,
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
import { Servers } from './servers.ts';
import { type SweepResult, sweep } from './sweep.ts';
import { noTable, TableAdmin } from './table-admin.ts';
import { mergeTablets } from './tablet-merge.ts';

export interface MasterOptions {
  readonly env: Env;
  /** The address at which peers reach it. */
  readonly address: string;
  /** Called while the master starts and cannot reach METADATA: true ends the start. Default: it retries for ever. */
  readonly isCancelled?: () => boolean;
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
/** The delay between a death, or a failed load of a tablet, and the next assignment. */
const REASSIGN_MS = 1000;
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

/** Work of one lane comes one after another. */
type Lane = 'sweep' | 'assign' | 'deletions';

/** Work that is scheduled for later. */
interface Due {
  readonly atMs: number;
  readonly timer: Timer;
}

export class Master {
  readonly #env: Env;
  readonly #lock: LockHandle;
  readonly #schemas: SchemaCache;
  readonly #metadata: MetadataClient;
  readonly #servers: Servers;
  readonly #assignment: Assignment;
  readonly #tables: TableAdmin;
  readonly #deletions: Deletions;
  #stopServing: (() => Promise<void>) | undefined;
  #stopWatching: (() => void) | undefined;
  #ended = false;
  /**
   * Assignments come one after another, and so do sweeps and deletions; but one of those that waits for METADATA must
   * not hold up the assignment that serves it.
   */
  readonly #lastWork: Record<Lane, Promise<unknown>> = {
    sweep: Promise.resolve(),
    assign: Promise.resolve(),
    deletions: Promise.resolve(),
  };
  readonly #due = new Map<Work, Due>();
  /** The last failure logged for each kind of work, which is retried. */
  readonly #loggedFailures = new Map<Work, string>();
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

  private constructor(env: Env, lock: LockHandle, isCancelled: () => boolean) {
    this.#env = env;
    this.#lock = lock;
    const locator = new Locator(env);
    this.#metadata = new MetadataClient({
      ...env,
      locator,
      lock,
      masterEpoch: lock.epoch,
      stopped: () => this.#ended || isCancelled(),
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
    this.#removeGauges = env.metrics.gauges({
      'master.unservedTablets': () => this.#unserved,
      'master.tables': () => this.#schemas.size,
    });
    this.#tables = new TableAdmin({
      ...parts,
      lock,
      assignment: this.#assignment,
      onRowsLeft: () => this.#later('finish deletions', REASSIGN_MS),
    });
  }

  /** Becomes the master. Resolves when every tablet that can be served is. ABORTED if another is the master. */
  static async start({ env, address, isCancelled = () => false }: MasterOptions): Promise<Master> {
    const sessionId = await env.lockService.openSession();
    const lock = await takeLock(env, sessionId).catch(async (error: unknown) => {
      await env.lockService.closeSession(sessionId);
      throw error;
    });
    const master = new Master(env, lock, isCancelled);
    try {
      await master.#schemas.start();
      await master.#deletions.start(master.#schemas);
      await master.#watch();
      // a server that comes or dies meanwhile schedules the next one
      await master.#oneByOne('assign', () => master.#assignFirst(isCancelled));
      master.#stopServing = await env.transport.serve(address, master.#handler());
      await env.lockService.write(MASTER_PATH, encodePeerFile({ name: sessionId, address, protocol: PROTOCOL }), {
        lock,
        sessionId,
      });
    } catch (error) {
      await master.close();
      throw error;
    }
    master.#later('sweep', FIRST_SWEEP_MS);
    master.#sweepPeriodically();
    return master;
  }

  /** Releases the lock. Assignments stay as they are. */
  async close(): Promise<void> {
    if (this.#ended) return;
    await this.#stopServing?.();
    this.#end();
    await Promise.all(Object.values(this.#lastWork));
    await this.#env.lockService.closeSession(this.#lock.sessionId);
  }

  #end(): void {
    this.#ended = true;
    this.#removeGauges();
    this.#assigning.abort();
    this.#servers.end();
    this.#stopWatching?.();
    this.#schemas.stop();
    for (const { timer } of this.#due.values()) timer.cancel();
    this.#sweeping?.cancel();
  }

  #sweepPeriodically(): void {
    this.#sweeping = this.#env.clock.timer(SWEEP_PERIOD_MS, () => {
      this.#later('sweep', 0);
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
          this.#serversChanged(event.kind === 'changed' ? 'come' : 'gone');
      },
      readAgain: async () => {
        await this.#checkLock();
        this.#serversChanged('gone');
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
    void this.#stopServing?.();
  }

  #serversChanged(how: 'come' | 'gone'): void {
    // an assignment under way may wait for METADATA, which that server served
    if (how === 'gone') return this.#assignAnew();
    this.#assignmentIsDue = true;
    this.#later('assign', REASSIGN_MS);
  }

  /** Ends the assignment under way, which may wait for what only the next one can have served. */
  #assignAnew(): void {
    this.#assignmentIsDue = true;
    this.#assigning.abort();
    this.#later('assign', 0);
  }

  /** A server that does not answer in time may be all that there is. */
  async #assignFirst(isCancelled: () => boolean): Promise<void> {
    for (;;) {
      try {
        return await this.#assignAll();
      } catch (thrown) {
        if (!toBigtableError(thrown).retry || !this.#servers.anySilent || this.#ended || isCancelled()) throw thrown;
        await sleep(this.#env.clock, CALL_AGAIN_MS);
      }
    }
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
    if (this.#servers.anySilent) this.#later('call silent servers', CALL_AGAIN_MS);
    this.#later('assign', ASSIGN_PERIOD_MS);
    if (this.#deletions.all().length > 0) this.#later('finish deletions', 0);
    if (failures.some(({ code }) => code !== Code.DATA_LOSS)) this.#later('assign', REASSIGN_MS);
    else if ((await this.#assignment.balance(context)) > 0) this.#later('assign', REASSIGN_MS);
  }

  /** Servers that are left out because they did not answer come in again when they do. */
  async #callSilent(): Promise<void> {
    const answered = await this.#servers.callSilent(this.#context());
    if (answered) this.#later('assign', 0);
    else if (this.#servers.anySilent) this.#later('call silent servers', CALL_AGAIN_MS);
  }

  async #assignOnce(context: RequestContext): Promise<AssignmentResult> {
    await this.#servers.scan(context);
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
      this.#later('assign', 0);
      if ((await this.#schemas.read(name))?.schema.id !== known.schema.id) throw noTable(name);
      throw error;
    }
  }

  #sweep(): Promise<SweepResult> {
    return this.#oneByOne('sweep', () => sweep(this.#env, this.#metadata, this.#servers, this.#context()));
  }

  /** Does the work after that delay, or earlier if that was scheduled already. */
  #later(what: Work, delayMs: number): void {
    if (this.#ended) return;
    const atMs = this.#env.clock.monotonicMs() + delayMs;
    assert(delayMs >= 0, 'work is not scheduled in the past');
    const due = this.#due.get(what);
    if (due !== undefined && due.atMs <= atMs) return;
    due?.timer.cancel();
    const timer = this.#env.clock.timer(delayMs, () => {
      this.#due.delete(what);
      this.#work(what).then(
        () => this.#loggedFailures.delete(what),
        (thrown: unknown) => this.#failed(what, toBigtableError(thrown)),
      );
    });
    this.#due.set(what, { atMs, timer });
  }

  async #work(what: Work): Promise<void> {
    if (what === 'sweep') await this.#sweep();
    else if (what === 'call silent servers') await this.#callSilent();
    else if (what === 'finish deletions') await this.#finishDeletions();
    else await this.#oneByOne('assign', () => this.#assignAll());
  }

  async #finishDeletions(): Promise<void> {
    await this.#oneByOne('deletions', () => this.#tables.finishDeletions(this.#context()));
    this.#later('sweep', SWEEP_DELAY_MS);
  }

  /** Logs each failure once: the work is retried again and again. */
  #failed(what: Work, error: BigtableError): void {
    if (isDeposed(error)) this.#lockLost();
    if (this.#ended) return;
    const { code, message } = error;
    // an assignment that a death has ended begins anew
    if (code !== Code.CANCELLED && this.#loggedFailures.get(what) !== message) {
      this.#loggedFailures.set(what, message);
      this.#env.logger.warn(`the master could not ${what} and will try again`, { error: message });
    }
    this.#later(what, REASSIGN_MS);
  }

  #oneByOne<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
    const result = this.#lastWork[lane].then(() => {
      if (this.#ended) throw unavailable('the master has ended');
      if (!this.#env.lockService.leaseHolds(this.#lock.sessionId))
        throw unavailable('the lease of the master may have lapsed');
      return work();
    });
    this.#lastWork[lane] = result.catch(() => {});
    return result;
  }

  #context(): RequestContext {
    return requestContext({ budget: this.#env.requestBudget, principal: 'master' });
  }

  #contextUntil(deadlineMs: number): RequestContext {
    return { ...this.#context(), deadlineMs };
  }

  #handler(): CallHandler {
    const handlers: Handlers<MasterCalls> = {
      createTable: (message) => this.#tables.createTable(message, this.#context()),
      updateTable: (message, { deadlineMs }) => this.#tables.updateTable(message, this.#contextUntil(deadlineMs)),
      deleteTable: async ({ name }, { deadlineMs }) => {
        await this.#tables.deleteTable(name, this.#contextUntil(deadlineMs));
        this.#later('sweep', SWEEP_DELAY_MS);
        return undefined;
      },
      modifyFamilies: ({ name, changes }, { deadlineMs }) =>
        this.#tables.modifyFamilies(name, changes, this.#contextUntil(deadlineMs)),
      mergeTablets: async ({ name, row }) => {
        await this.#oneByOne('assign', () => this.#merge(name, row));
        return undefined;
      },
      tabletSplit: async (message) => {
        checkAddressed(message, this.#lock.sessionId);
        const { server, tablets } = message;
        for (const { key, epoch } of tablets) this.#servers.get(server)?.tablets.set(key, epoch);
        if (this.#servers.all().length > 1) this.#later('balance', BALANCE_DELAY_MS);
        return undefined;
      },
      filesLeft: async (message) => {
        checkAddressed(message, this.#lock.sessionId);
        this.#later('sweep', SWEEP_DELAY_MS);
        return undefined;
      },
      counters: async () => ({
        name: this.#env.metrics.name(this.#env.random),
        counters: this.#env.metrics.snapshot(),
      }),
      sweep: () => this.#sweep(),
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

/** ABORTED if another holds the lock. */
async function takeLock({ lockService }: Env, sessionId: string): Promise<LockHandle> {
  const lock = await lockService.tryAcquire(MASTER_PATH, sessionId);
  if (lock === undefined) throw new BigtableError(Code.ABORTED, 'another master holds the lock');
  return lock;
}
