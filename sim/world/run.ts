/**
 * One run of the simulator: a cluster, clients that contend on a few rows, faults, and the judges. The same seed is the
 * same run.
 */
import { BigtableError } from '../../src/base/index.ts';
import { type Database, overService } from '../../src/embedded/index.ts';
import { sleep } from '../../src/env/index.ts';
import { type Call, perform, TABLE } from '../../test/linearizability/calls.ts';
import { Draw } from '../../test/linearizability/draw.ts';
import { NoVerdictError } from '../../test/linearizability/checker.ts';
import { EventClock, History } from '../../test/linearizability/history.ts';
import { EMPTY_ROW, FAMILIES, RowStep } from '../../test/linearizability/row.ts';
import { type ClientSeat, Cluster } from './cluster.ts';
import { describeFault, drawFaults, END_MS, type Fault, inflict } from './faults.ts';
import { checkStorage, damageIn } from './judges.ts';
import { Scheduler } from './scheduler.ts';

/** Clients work until then. */
const WORK_MS = 55_000;
/** After the faults have ceased everything is served within this time. */
const HEALED_MS = 60_000;
/** No run lasts longer. */
const MAX_MS = 400_000;
const MAX_THINK_MS = 60;
/** The storage is checked this often, and before and after each fault. */
const CHECK_MS = 2000;
/** Files that nothing refers to are gone within this time after the faults. */
const SWEPT_MS = 120_000;
const SWEEP_MS = 3000;
const ROWS = 16;
/** Above this the checker gives up on a row. */
const MAX_CONFIGURATIONS = 5000;
/** The last events and log lines that the report of a failure has. */
const MAX_KEPT = 4000;

export interface RunOptions {
  readonly seed: number;
  /** Default: those that the seed draws. */
  readonly faults?: readonly Fault[];
  /** Called with each line of a log. */
  readonly onLine?: (line: string) => void;
  /** True: events are lines, too. */
  readonly withEvents?: boolean;
}

export interface RunResult {
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly trace: string;
  readonly events: number;
  readonly simulatedMs: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Undefined: nothing is wrong. */
  readonly violation: string | undefined;
  /** Rows whose histories the checker could not judge: too many calls had an unknown outcome. */
  readonly undecidedRows: number;
  readonly lastLines: readonly string[];
}

export async function run({ seed, faults, onLine, withEvents = false }: RunOptions): Promise<RunResult> {
  const scheduler = new Scheduler(seed);
  const draw = scheduler.fork('run');
  const cluster = new Cluster(scheduler, {
    masters: 2,
    servers: 3 + Math.floor(draw.float() * 5),
    clients: 4,
    maxOffsetMs: 500,
    maxDrift: 200e-6,
  });
  const machines = [...cluster.masters, ...cluster.servers].map(({ name }) => name);
  const all = faults ?? drawFaults(scheduler.fork('faults'), machines);
  const lines: string[] = [];
  const note = (line: string): void => {
    onLine?.(line);
    lines.push(line);
    if (lines.length > 2 * MAX_KEPT) lines.splice(0, MAX_KEPT);
  };
  const seconds = (): string => (scheduler.nowMs / 1000).toFixed(6);
  cluster.onLog = (process, level, message, fields) =>
    note(`${seconds()} ${process} ${level}: ${message} ${JSON.stringify(fields)}`);
  if (withEvents) scheduler.onEvent = (atMs, owner, what) => note(`${(atMs / 1000).toFixed(6)} ${owner} | ${what}`);
  for (const fault of all) note(`fault: ${describeFault(fault)}`);
  const judge = new Workload(cluster, draw.uniqueName());
  const violation = await scheduler
    .run(
      (async () => {
        await cluster.start();
        await judge.create();
        inflict(
          cluster,
          all.filter(({ atMs }) => atMs > scheduler.nowMs),
        );
        return (await judge.work()) ?? (await judge.verdict());
      })(),
      MAX_MS,
    )
    .catch((thrown: unknown) => `the run ended early: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
  cluster.stop();
  return {
    seed,
    faults: all,
    trace: scheduler.trace(),
    events: scheduler.events,
    simulatedMs: scheduler.nowMs,
    counts: { ...judge.counts, ...countsOf(cluster) },
    violation,
    undecidedRows: judge.undecidedRows,
    lastLines: lines.slice(-MAX_KEPT),
  };
}

/** Clients that contend on a few rows, and what they saw. */
class Workload {
  undecidedRows = 0;
  readonly counts = { calls: 0, answered: 0, failed: 0, unknown: 0 };
  readonly #cluster: Cluster;
  readonly #draw: Draw;
  readonly #histories = new Map<string, History>();
  readonly #think;
  #databases: Database[] = [];

  constructor(cluster: Cluster, name: string) {
    this.#cluster = cluster;
    this.#draw = new Draw(ROWS, Number.parseInt(name.slice(0, 12), 16));
    this.#think = cluster.scheduler.fork('think');
    const clock = new EventClock();
    for (const row of this.#draw.rows) this.#histories.set(row, new History(EMPTY_ROW, clock, MAX_CONFIGURATIONS));
  }

  async create(): Promise<void> {
    this.#databases = this.#cluster.clients.map(({ client, env }) => overService(client, env, async () => {}));
    const { rows } = this.#draw;
    const splits = [rows[4]!, rows[8]!, rows[12]!];
    await this.#databases[0]!.openTable(TABLE, { families: FAMILIES, splits } as never);
  }

  /** Returns when the clients have ended, or with the first damage of the storage. */
  async work(): Promise<string | undefined> {
    let isOver = false;
    const clients = Promise.all(this.#cluster.clients.map((seat, i) => this.#client(seat, this.#databases[i]!)));
    const checks = async (): Promise<string | undefined> => {
      while (!isOver) {
        const damage = damageIn(await checkStorage(this.#cluster));
        if (damage !== undefined) return damage;
        await this.#pause(CHECK_MS);
      }
      return undefined;
    };
    const end = clients.then(() => {
      isOver = true;
      return undefined;
    });
    return Promise.race([end, checks()]);
  }

  /** What is wrong; undefined if nothing is. */
  async verdict(): Promise<string | undefined> {
    const { scheduler, clients } = this.#cluster;
    const database = this.#databases[0]!;
    const untilMs = Math.max(scheduler.nowMs, END_MS) + HEALED_MS;
    for (;;) {
      const call: Call = { method: 'scan', rows: this.#draw.rows.map((row) => ({ row, work: { kind: 'read' } })) };
      const failure = await this.#perform(database, call);
      if (failure === undefined) break;
      if (scheduler.nowMs > untilMs) return `rows are not served ${HEALED_MS} ms after the faults: ${failure}`;
      await sleep(clients[0]!.process.clock, 200);
    }
    return this.#judgeHistories() ?? (await this.#leftOver());
  }

  #judgeHistories(): string | undefined {
    for (const [row, history] of this.#histories) {
      try {
        const violation = history.check();
        if (violation !== undefined) return `row ${row}: ${violation}`;
      } catch (thrown) {
        if (!(thrown instanceof NoVerdictError)) throw thrown;
        this.undecidedRows++;
      }
    }
    return undefined;
  }

  /** The files that are left over; undefined if none is. */
  async #leftOver(): Promise<string | undefined> {
    const { scheduler } = this.#cluster;
    const untilMs = scheduler.nowMs + SWEPT_MS;
    for (;;) {
      const report = await checkStorage(this.#cluster);
      const damage = damageIn(report);
      if (damage !== undefined) return damage;
      const live = new Set(this.#cluster.liveLogs());
      const orphans = report.orphans?.filter((path) => !live.has(path)) ?? [];
      if (orphans.length === 0) return undefined;
      if (scheduler.nowMs > untilMs)
        return `files are left over ${SWEPT_MS} ms after the faults: ${orphans.join(', ')}`;
      await this.#cluster.sweep();
      await this.#pause(SWEEP_MS);
    }
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#cluster.scheduler.after(delayMs, undefined, 'check', resolve);
    });
  }

  async #client({ process }: ClientSeat, database: Database): Promise<void> {
    const { scheduler } = this.#cluster;
    while (scheduler.nowMs < WORK_MS) {
      const { cancelAfter: _, ...call } = this.#draw.call();
      await this.#perform(database, call);
      await sleep(process.clock, this.#think.float() * MAX_THINK_MS);
    }
  }

  /** Returns the message of what was not answered; undefined if all was. */
  async #perform(database: Database, call: Call): Promise<string | undefined> {
    const { counts } = this;
    counts.calls++;
    const operations = call.rows.map(({ row, work }) => this.#histories.get(row)!.begin(new RowStep(work)));
    const outcomes = await perform(database, call).catch((thrown: unknown) => {
      if (call.rows.length === 0 && thrown instanceof BigtableError) return [];
      throw thrown;
    });
    for (const [i, outcome] of outcomes.entries()) {
      counts[outcome.kind]++;
      if (outcome.kind === 'answered') operations[i]!.answered(outcome.answer);
      else if (outcome.kind === 'failed') operations[i]!.failed();
      else operations[i]!.unknown();
    }
    const failed = outcomes.find(({ kind }) => kind !== 'answered');
    return failed === undefined || failed.kind === 'answered' ? undefined : failed.message;
  }
}

function countsOf({ network, store, locks, masters, servers }: Cluster): Record<string, number> {
  const starts = (seats: readonly { readonly starts: number }[]): number =>
    seats.reduce((sum, seat) => sum + seat.starts, 0);
  return {
    messages: network.counts.messages,
    lostMessages: network.counts.lost,
    storeOperations: store.counts.operations,
    storeFailed: store.counts.failed,
    storeUnanswered: store.counts.unanswered,
    landedLate: store.counts.landedLate,
    logFences: store.logJudge.counts.fences,
    logReplays: store.logJudge.counts.replays,
    lockCalls: locks.counts.calls,
    expiredSessions: locks.counts.expired,
    masterStarts: starts(masters),
    serverStarts: starts(servers),
  };
}
