/**
 * One run of the simulator: a cluster, clients that contend on a few rows, faults, and the judges. The same seed is the
 * same run.
 */
import { Cluster } from './cluster.ts';
import { describeFault, drawFaults, type Fault, inflict } from './faults.ts';
import { judgeLine } from './judges.ts';
import { Scheduler } from './scheduler.ts';
import { Verdicts, type Violation } from './verdicts.ts';
import { Workload } from './workload.ts';

/** The last of them is the operator. */
const CLIENTS = 5;
/** No run lasts longer. */
const MAX_MS = 400_000;
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
  readonly violation: Violation | undefined;
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
    clients: CLIENTS,
    maxOffsetMs: 500,
    maxDrift: 200e-6,
  });
  const machines = [...cluster.masters, ...cluster.servers].map(({ name }) => name);
  const clients = Array.from({ length: CLIENTS }, (_, i) => `client-${i}`);
  const all = faults ?? drawFaults(scheduler.fork('faults'), machines, clients);
  const verdicts = new Verdicts();
  const lines: string[] = [];
  const note = (line: string): void => {
    onLine?.(line);
    lines.push(line);
    if (lines.length > 2 * MAX_KEPT) lines.splice(0, MAX_KEPT);
  };
  const seconds = (): string => (scheduler.nowMs / 1000).toFixed(6);
  cluster.onLog = (process, level, message, fields) => {
    note(`${seconds()} ${process} ${level}: ${message} ${JSON.stringify(fields)}`);
    judgeLine(verdicts, process, message, fields);
  };
  if (withEvents) scheduler.onEvent = (atMs, owner, what) => note(`${(atMs / 1000).toFixed(6)} ${owner} | ${what}`);
  for (const fault of all) note(`fault: ${describeFault(fault)}`);
  const workload = new Workload(cluster, verdicts, draw.uniqueName());
  cluster.store.logJudge.onViolation = (what) => verdicts.add('logs', what);
  const whole = async (): Promise<void> => {
    await cluster.start();
    await workload.create();
    inflict(
      cluster,
      all.filter(({ atMs }) => atMs > scheduler.nowMs),
    );
    await workload.work();
    await workload.end();
  };
  await scheduler
    .run(Promise.race([whole(), verdicts.found]), MAX_MS)
    .catch((thrown: unknown) => verdicts.add('run', thrown instanceof Error ? thrown.stack! : String(thrown)));
  cluster.stop();
  return {
    seed,
    faults: all,
    trace: scheduler.trace(),
    events: scheduler.events,
    simulatedMs: scheduler.nowMs,
    counts: { ...workload.counts, ...countsOf(cluster) },
    violation: verdicts.first,
    undecidedRows: workload.undecidedRows,
    lastLines: lines.slice(-MAX_KEPT),
  };
}

function countsOf({ network, store, locks, masters, servers, faultCounts }: Cluster): Record<string, number> {
  const starts = (seats: readonly { readonly starts: number }[]): number =>
    seats.reduce((sum, seat) => sum + seat.starts, 0);
  return {
    ...Object.fromEntries(Object.entries(faultCounts).map(([kind, count]) => [`fault: ${kind}`, count])),
    messages: network.counts.messages,
    lostMessages: network.counts.lost,
    repeatedMessages: network.counts.givenUp,
    storeOperations: store.counts.operations,
    storeFailed: store.counts.failed,
    storeUnanswered: store.counts.unanswered,
    landedLate: store.counts.landedLate,
    logFences: store.logJudge.counts.fences,
    logReplays: store.logJudge.counts.replays,
    appendsTwice: store.logJudge.counts.twice,
    lockCalls: locks.counts.calls,
    expiredSessions: locks.counts.expired,
    masterStarts: starts(masters),
    serverStarts: starts(servers),
  };
}
