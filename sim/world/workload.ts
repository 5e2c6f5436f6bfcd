/** Clients that contend on a few rows, what they saw, and what has to hold once the faults have ceased. */
import { BigtableError } from '../../src/base/index.ts';
import { type Database, overService } from '../../src/embedded/index.ts';
import { sleep } from '../../src/env/index.ts';
import { schemaPath } from '../../src/metadata/index.ts';
import { DEFAULT_PARENT } from '../../src/model/index.ts';
import { NoVerdictError } from '../../test/linearizability/checker.ts';
import { type Call, perform, TABLE } from '../../test/linearizability/calls.ts';
import { Draw } from '../../test/linearizability/draw.ts';
import { EventClock, History } from '../../test/linearizability/history.ts';
import { EMPTY_ROW, FAMILIES, firstValueOf, RowStep } from '../../test/linearizability/row.ts';
import type { ClientSeat, Cluster } from './cluster.ts';
import { Counters } from './counters.ts';
import { TRY_AGAIN_MS } from './failure-of.ts';
import { END_MS } from './faults.ts';
import { judgeGauges, troubleOf } from './gauge-judge.ts';
import { logPathOf, SERVERS_DIRECTORY } from '../../src/protocol/index.ts';
import { judgeServing, StorageJudge } from './judges.ts';
import { Keeper } from './keeper.ts';
import { Operator } from './operator.ts';
import { Steward } from './steward.ts';
import type { Verdicts } from './verdicts.ts';

/** Clients work until then. */
const WORK_MS = 61_000;
/** After the faults have ceased everything is served within this time. */
const HEALED_MS = 60_000;
const MAX_THINK_MS = 175;
/** After a call of unknown outcome a client waits longer: too many of them, and a history explains anything. */
const MAX_THINK_AFTER_UNKNOWN_MS = 2000;
/** The storage is checked this often. */
const CHECK_MS = 6000;
/** What servers serve is judged this often, besides each time that it changes. */
const CHECK_SERVING_MS = 500;
/** A call of a master is repeated this often. */
const LATE_CALL_MS = 1500;
/** Large values are written this often in runs with buffered writes, and in a share of the others. */
const FLOOD_MS = 13_000;
const FLOODED_SHARE = 0.15;
/** They find the storage full: after this time, for that time, at most. */
const FULL_AFTER_MS = 20;
const FULL_MS = 400;
/** Files that nothing refers to are gone within this time after the faults. */
const SWEPT_MS = 120_000;
const SWEEP_MS = 3000;
const ROWS = 16;
/** The share of the calls that are on counters. */
const COUNTED = 0.1;
/** The share of the clients that make all their calls through front doors. */
const THROUGH_DOORS = 0.2;
/** Above this the checker gives up on a row. */
const MAX_CONFIGURATIONS = 2000;

export interface WorkloadOptions {
  /** Draws what the clients do. */
  readonly name: string;
  /** Names of the clients that do nothing. */
  readonly idle: ReadonlySet<string>;
  /** Deleted tables are kept that long, and a client keeps more. Undefined: neither. */
  readonly keepDeletedMs: number | undefined;
  /** A client looks after what is beside rows. */
  readonly hasSteward: boolean;
}

export class Workload {
  undecidedRows = 0;
  readonly calls = { calls: 0, answered: 0, failed: 0, unknown: 0 };
  readonly #cluster: Cluster;
  readonly #verdicts: Verdicts;
  readonly #storage: StorageJudge;
  readonly #draw: Draw;
  readonly #histories = new Map<string, History>();
  readonly #think;
  /** One client only reads in half of the runs: a server that nobody writes to is not stopped by its fenced log. */
  readonly #hasReader: boolean;
  /** Names of the clients that do nothing. */
  readonly #idle: ReadonlySet<string>;
  #databases: Database[] = [];
  /** By client: the database that it uses. */
  #chosen: Database[] = [];
  readonly #counters: Counters;
  #operator: Operator | undefined;
  readonly #keepDeletedMs: number | undefined;
  #keeper: Keeper | undefined;
  readonly #hasSteward: boolean;
  #steward: Steward | undefined;
  #isOver = false;

  constructor(cluster: Cluster, verdicts: Verdicts, { name, idle, keepDeletedMs, hasSteward }: WorkloadOptions) {
    this.#cluster = cluster;
    this.#verdicts = verdicts;
    this.#idle = idle;
    this.#keepDeletedMs = keepDeletedMs;
    this.#hasSteward = hasSteward;
    this.#storage = new StorageJudge(cluster, verdicts);
    this.#draw = new Draw(ROWS, Number.parseInt(name.slice(0, 12), 16));
    this.#think = cluster.scheduler.fork('think');
    this.#hasReader = this.#think.float() < 0.5;
    cluster.onFocus = (row) => {
      this.#draw.focus = row !== undefined && this.#draw.rows.includes(row) ? row : undefined;
    };
    this.#counters = new Counters(verdicts, cluster.scheduler.fork('counters'));
    const clock = new EventClock();
    for (const row of this.#draw.rows) this.#histories.set(row, new History(EMPTY_ROW, clock, MAX_CONFIGURATIONS));
  }

  get counts(): Record<string, number> {
    return {
      ...this.calls,
      ...this.#counters.counts,
      ...this.#operator?.counts,
      ...this.#keeper?.counts,
      ...this.#steward?.counts,
    };
  }

  async create(): Promise<void> {
    const { clients, scheduler } = this.#cluster;
    this.#databases = clients.map(({ client, env }) => overService(client, env, async () => {}));
    const doors = clients.map(({ doors: service, env }) => overService(service, env, async () => {}));
    this.#chosen = this.#databases.map((direct, i) => (this.#think.float() < THROUGH_DOORS ? doors[i]! : direct));
    const { rows } = this.#draw;
    const splits = [rows[4]!, rows[8]!, rows[12]!];
    await this.#untilDone(() => this.#databases[0]!.openTable(TABLE, { families: FAMILIES, splits }));
    await this.#untilDone(() => this.#counters.create(this.#databases[0]!));
    const parts = {
      scheduler,
      seat: clients.at(-1)!,
      database: this.#databases.at(-1)!,
      doors: doors.at(-1)!,
      verdicts: this.#verdicts,
      sweep: () => this.#cluster.sweep(),
      loseSchema: (table: string, lostMs: number) =>
        this.#cluster.locks.loseFile(schemaPath(`${DEFAULT_PARENT}/tables/${table}`), lostMs),
    };
    this.#operator = new Operator(parts);
    this.#keeper = this.#newKeeper();
    this.#steward = this.#newSteward();
  }

  /** What is acknowledged is kept where writes are synced: so there is none in runs with buffered writes. */
  #newKeeper(): Keeper | undefined {
    const { clients, scheduler, isBuffered, faultCounts } = this.#cluster;
    const seat = clients.at(-1)!;
    if (this.#keepDeletedMs === undefined || isBuffered || this.#idle.has(seat.process.name)) return undefined;
    return new Keeper({
      random: scheduler.aside('what the keeper does'),
      seat,
      database: this.#databases.at(-1)!,
      verdicts: this.#verdicts,
      nowMs: () => scheduler.nowMs,
      keepDeletedMs: this.#keepDeletedMs,
      clocksAreRight: () => faultCounts['clock'] === undefined,
      keepsFewChanges: this.#cluster.keepsFewChanges,
    });
  }

  /** As with a keeper: it writes rows, too. */
  #newSteward(): Steward | undefined {
    const { clients, scheduler, isBuffered } = this.#cluster;
    const seat = clients.at(-1)!;
    if (!this.#hasSteward || isBuffered || this.#idle.has(seat.process.name)) return undefined;
    return new Steward({
      random: scheduler.aside('what the steward does'),
      seat,
      verdicts: this.#verdicts,
      nowMs: () => scheduler.nowMs,
      doors: () => this.#cluster.openDoors(),
    });
  }

  /** Tries again while faults make the work fail, until everything must be served. */
  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    const { scheduler } = this.#cluster;
    for (;;) {
      try {
        return void (await work());
      } catch (thrown) {
        if (!(thrown instanceof BigtableError) || scheduler.nowMs > END_MS + HEALED_MS) throw thrown;
        await this.#pause(TRY_AGAIN_MS);
      }
    }
  }

  /**
   * Buffered changes that were acknowledged before this instant may be lost. Rows are judged by what was answered before
   * it, the rest by what begins after it.
   */
  lose(): void {
    for (const history of this.#histories.values()) history.end();
    this.#counters.lose();
    this.#operator?.lose();
  }

  /** Returns when the clients have ended. */
  async work(): Promise<void> {
    const workers = this.#cluster.clients.slice(0, -1);
    const checks = [
      this.#repeatedly(CHECK_MS, () => {
        judgeGauges(this.#cluster, this.#verdicts);
        return this.#storage.check({ isQuick: true });
      }),
      this.#repeatedly(LATE_CALL_MS, () => this.#cluster.repeatCall()),
      this.#repeatedly(CHECK_SERVING_MS, async () => judgeServing(this.#cluster, this.#verdicts)),
    ];
    if (this.#cluster.isBuffered || this.#think.float() < FLOODED_SHARE)
      checks.push(this.#repeatedly(FLOOD_MS, () => this.#flood()));
    await Promise.all([
      this.#pauseUntil(WORK_MS),
      this.#idle.has(this.#cluster.clients.at(-1)!.process.name) ? undefined : this.#operator!.work(WORK_MS),
      this.#keeper?.work(WORK_MS),
      this.#steward?.work(WORK_MS),
      ...workers.map((seat, i) => this.#client(seat, i, i === workers.length - 1 && this.#hasReader)),
    ]);
    this.#isOver = true;
    await Promise.all(checks);
  }

  async #flood(): Promise<void> {
    const { health } = this.#cluster.store;
    const flood = this.#counters.flood(this.#databases[0]!);
    await this.#pause(this.#think.float() * FULL_AFTER_MS);
    health.isFull = true;
    await this.#pause(this.#think.float() * FULL_MS);
    health.isFull = false;
    await flood;
  }

  /** Waits until all is served, and swept; then judges the histories. */
  async end(): Promise<void> {
    const { scheduler, clients } = this.#cluster;
    const untilMs = Math.max(scheduler.nowMs, END_MS) + HEALED_MS;
    this.#cluster.setClocksRight();
    const scan: Call = { method: 'scan', rows: this.#draw.rows.map((row) => ({ row, work: { kind: 'read' } })) };
    for (;;) {
      const failure =
        (await this.#perform(this.#databases[0]!, scan)) ??
        (await this.#operator!.readAll()) ??
        (await this.#keeper?.readAll()) ??
        (await this.#steward?.readAll()) ??
        (await this.#counters.readAll(this.#databases[0]!));
      if (failure === undefined) break;
      if (scheduler.nowMs > untilMs)
        return this.#verdicts.add('in the end', `rows are not served ${HEALED_MS} ms after the faults: ${failure}`);
      await sleep(clients[0]!.process.clock, 200);
    }
    // clients find the master, too
    await this.#untilDone(() => this.#databases[0]!.openTable('last', { families: FAMILIES }));
    await this.#untilDone(async () => this.#keeper?.close());
    this.judgeHistories();
    await this.#leftOver();
    await this.#inOrder();
  }

  /** Within a time no role reports trouble. */
  async #inOrder(): Promise<void> {
    const { scheduler } = this.#cluster;
    const untilMs = scheduler.nowMs + HEALED_MS;
    for (;;) {
      const trouble = troubleOf(this.#cluster) ?? (await this.#fileOfDead());
      if (trouble === undefined) return;
      if (scheduler.nowMs > untilMs) return this.#verdicts.add('in the end', trouble);
      await this.#pause(SWEEP_MS);
    }
  }

  /** The master removes the files of dead servers, by which others would find them. */
  async #fileOfDead(): Promise<string | undefined> {
    const live = new Set(this.#cluster.liveServers().map(({ name }) => SERVERS_DIRECTORY + name));
    const files = await this.#cluster.locks.service.list(SERVERS_DIRECTORY);
    const left = files.find(({ path }) => !live.has(path));
    return left && `the lock service has the file ${left.path} of a server that has ended`;
  }

  judgeHistories(): void {
    for (const [row, history] of this.#histories) {
      try {
        const violation = history.check();
        if (violation !== undefined) this.#verdicts.add('histories', `row ${row}: ${violation}`);
      } catch (thrown) {
        if (!(thrown instanceof NoVerdictError)) throw thrown;
        this.undecidedRows++;
      }
    }
  }

  /** The files that are left over are swept within a time. */
  async #leftOver(): Promise<void> {
    const { scheduler } = this.#cluster;
    const untilMs = scheduler.nowMs + SWEPT_MS;
    // all is read as it is at first, and once nothing is left over
    let isQuick = false;
    while (this.#verdicts.first === undefined) {
      const { orphans = [] } = await this.#storage.check({ isQuick });
      const live = new Set(this.#cluster.liveServers().map(({ name }) => logPathOf(name)));
      const left = orphans.filter((path) => !live.has(path));
      if (left.length === 0 && !isQuick) return;
      isQuick = left.length > 0;
      if (left.length === 0) continue;
      if (scheduler.nowMs > untilMs) return this.#verdicts.add('in the end', this.#leftOverMessage(left));
      await this.#cluster.sweep();
      await this.#pause(SWEEP_MS);
    }
  }

  #leftOverMessage(left: readonly string[]): string {
    const lines = this.#cluster.liveServers().map((server) => {
      const held = server.heldFiles().filter((path) => left.includes(path));
      return held.length > 0 ? `; ${server.address} holds ${held.join(', ')}` : '';
    });
    return `files are left over ${SWEPT_MS} ms later: ${left.join(', ')}${lines.join('')}`;
  }

  async #repeatedly(everyMs: number, check: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      await check();
      await this.#pause(everyMs);
    }
  }

  #pauseUntil(atMs: number): Promise<void> {
    return this.#pause(Math.max(0, atMs - this.#cluster.scheduler.nowMs));
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#cluster.scheduler.after(delayMs, undefined, 'check', resolve);
    });
  }

  async #client({ process }: ClientSeat, index: number, onlyReads: boolean): Promise<void> {
    const { scheduler } = this.#cluster;
    const database = this.#chosen[index]!;
    while (scheduler.nowMs < WORK_MS && !this.#idle.has(process.name)) {
      if (!onlyReads && this.#think.float() < COUNTED) {
        await this.#counters.step(database);
        await sleep(process.clock, this.#think.float() * MAX_THINK_MS);
        continue;
      }
      const { cancelAfter: _, ...call } = this.#draw.call();
      if (onlyReads && call.rows.some(({ work }) => work.kind !== 'read')) continue;
      const unknown = this.calls.unknown;
      // those of operators are not on rows: doors pass none of them on
      await this.#perform(call.rows.length > 0 ? database : this.#databases[index]!, call);
      const mayBeUnknown = this.calls.unknown > unknown;
      await sleep(process.clock, this.#think.float() * (mayBeUnknown ? MAX_THINK_AFTER_UNKNOWN_MS : MAX_THINK_MS));
    }
  }

  /** Returns the message of what was not answered; undefined if all was. */
  async #perform(database: Database, call: Call): Promise<string | undefined> {
    const { calls } = this;
    calls.calls++;
    const operations = call.rows.map(({ row, work }) => this.#histories.get(row)!.begin(new RowStep(work)));
    const outcomes = await perform(database, call).catch((thrown: unknown) => {
      if (call.rows.length === 0 && thrown instanceof BigtableError) return [];
      throw thrown;
    });
    for (const [i, outcome] of outcomes.entries()) {
      calls[outcome.kind]++;
      const { row, work } = call.rows[i]!;
      if (outcome.kind === 'answered') {
        operations[i]!.answered(outcome.answer);
        if (work.kind === 'read') this.#draw.saw(row, firstValueOf(String(outcome.answer)));
        continue;
      }
      if (outcome.kind === 'failed') operations[i]!.failed();
      else operations[i]!.unknown();
      this.#judgeFailure(call, outcome);
    }
    const failed = outcomes.find(({ kind }) => kind !== 'answered');
    return failed === undefined || failed.kind === 'answered' ? undefined : failed.message;
  }

  /** Faults make calls unavailable or late: any other failure has to be explained. */
  #judgeFailure({ method, rows }: Call, { code, message }: { readonly code: string; readonly message: string }): void {
    const isInvalid = rows.some(({ work }) => work.kind === 'mutateInvalidly');
    const isUnexplainedLoss = code === 'DATA_LOSS' && !this.#cluster.store.mayShowDamage;
    if (code === 'INTERNAL' || isUnexplainedLoss || (code === 'NOT_FOUND' && !isInvalid))
      this.#verdicts.add('roles', `${method} was answered with ${code}: ${message}`);
  }
}
