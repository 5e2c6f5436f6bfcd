/**
 * One run of the simulator: a cluster, clients that contend on a few rows, faults, and the judges. The same seed is the
 * same run.
 */
import { AnswerJudge } from './answer-judge.ts';
import { Cluster } from './cluster.ts';
import { describeFault, drawFaults, drawMeetingFaults, type Fault, inflict } from './faults.ts';
import { loadDoorParts } from './front-door.ts';
import { judgeLine, judgeServing } from './judges.ts';
import { Scheduler } from './scheduler.ts';
import { SchemaJudge } from './schema-judge.ts';
import { Verdicts, type Violation } from './verdicts.ts';
import { Workload } from './workload.ts';

/** The last of them is the operator. */
const CLIENTS = 5;
/** The share of runs in which two masters stand by. */
const MANY_MASTERS_SHARE = 0.3;
/** The share of runs in which a client keeps backups, deleted tables and a change stream. */
const KEEPER_SHARE = 0.35;
/** The share of those runs in which logs keep few bytes for change streams. */
const FEW_CHANGES_SHARE = 0.3;
const FEW_CHANGES_BYTES = 8192;
/** The share of runs in which a client looks after instances, views, policies and quotas. */
const STEWARD_SHARE = 0.25;
/** Deleted tables are kept that long: some are gone when they are to be restored. */
const KEEP_DELETED_MS = [4000, 60_000];
/** No run lasts longer. */
const MAX_MS = 400_000;
/** The last events and log lines that the report of a failure has. */
const MAX_KEPT = 4000;

export interface RunOptions {
  readonly seed: number;
  /** Default: those that the seed draws. */
  readonly faults?: readonly Fault[];
  /** Names of the clients that do nothing. Default: none. */
  readonly idle?: ReadonlySet<string>;
  /** Called with each line of a log. */
  readonly onLine?: (line: string) => void;
  /** True: events are lines, too. */
  readonly withEvents?: boolean;
}

export interface RunResult {
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly clients: readonly string[];
  readonly idle: ReadonlySet<string>;
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

export async function run({
  seed,
  faults,
  idle = new Set(),
  onLine,
  withEvents = false,
}: RunOptions): Promise<RunResult> {
  // before the first event
  const doors = await loadDoorParts();
  const scheduler = new Scheduler(seed);
  const draw = scheduler.fork('run');
  const meetings = drawMeetingFaults(scheduler);
  const size = {
    masters: draw.float() < MANY_MASTERS_SHARE ? 3 : 2,
    servers: 3 + Math.floor(draw.float() * 5),
    clients: CLIENTS,
    maxOffsetMs: 500,
    maxDrift: 200e-6,
    hasSmallParts: meetings.some(({ kind }) => kind.endsWith('beside a sweep')),
  };
  const aside = scheduler.aside('keeper');
  const keepDeletedMs =
    aside.float() < KEEPER_SHARE ? KEEP_DELETED_MS[Math.floor(aside.float() * KEEP_DELETED_MS.length)] : undefined;
  const changeLogBytes = aside.float() < FEW_CHANGES_SHARE ? Math.ceil(aside.float() * FEW_CHANGES_BYTES) : undefined;
  const hasSteward = scheduler.aside('steward').float() < STEWARD_SHARE;
  const cluster = new Cluster(
    scheduler,
    { ...size, keepDeletedMs, changeLogBytes, followsResources: hasSteward },
    doors,
  );
  const machines = [...cluster.masters, ...cluster.servers].map(({ name }) => name);
  const clients = Array.from({ length: CLIENTS }, (_, i) => `client-${i}`);
  const drawn = [...drawFaults(scheduler.fork('faults'), machines, clients), ...meetings];
  const all = faults ?? drawn;
  const verdicts = new Verdicts();
  const lines: string[] = [];
  const note = (line: string): void => {
    onLine?.(line);
    lines.push(line);
    if (lines.length > 2 * MAX_KEPT) lines.splice(0, MAX_KEPT);
  };
  const seconds = (): string => (scheduler.nowMs / 1000).toFixed(6);
  cluster.onLog = (process, level, message, fields) => {
    const line = `${message} ${JSON.stringify(fields)}`;
    note(`${seconds()} ${process} ${level}: ${line}`);
    judgeLine(verdicts, process, line, cluster.store.mayShowDamage);
  };
  if (withEvents) scheduler.onEvent = (atMs, owner, what) => note(`${(atMs / 1000).toFixed(6)} ${owner} | ${what}`);
  for (const fault of all) note(`fault: ${describeFault(fault)}`);
  const workload = new Workload(cluster, verdicts, { name: draw.uniqueName(), idle, keepDeletedMs, hasSteward });
  cluster.store.logJudge.onViolation = (what) => verdicts.add('logs', what);
  cluster.store.metadataJudge.onChange = (what) => note(`${seconds()} METADATA | ${what}`);
  cluster.onFault = (what) => note(`${seconds()} fault | ${what}`);
  cluster.store.metadataJudge.onViolation = (what) => verdicts.add('METADATA', what);
  cluster.onLoss = (log) => {
    note(`${seconds()} buffered changes in ${log} may be lost`);
    workload.lose();
  };
  cluster.onServing = () => judgeServing(cluster, verdicts);
  cluster.store.recoveryJudge.onViolation = (what) => verdicts.add('recovery', what);
  const answers = new AnswerJudge(scheduler, cluster.locks, verdicts, cluster.isBuffered);
  const schemas = new SchemaJudge(cluster, verdicts);
  cluster.onLockFile = (path, contents) => schemas.fileChanged(path, contents);
  cluster.locks.onOutlasted = (process) => answers.outlasted(process);
  cluster.store.onAppend = (...append) => answers.appended(...append);
  cluster.network.onAnswer = (call, answer) => {
    answers.answered(call, answer);
    schemas.answered(call, answer);
    cluster.store.recoveryJudge.answered(call, answer);
  };
  const whole = async (): Promise<void> => {
    inflict(cluster, all);
    await cluster.start();
    await workload.create();
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
    clients,
    idle,
    trace: scheduler.trace(),
    events: scheduler.events,
    simulatedMs: scheduler.nowMs,
    counts: { ...workload.counts, ...countsOf(cluster) },
    violation: verdicts.first,
    undecidedRows: workload.undecidedRows,
    lastLines: lines.slice(-MAX_KEPT),
  };
}

function countsOf(cluster: Cluster): Record<string, number> {
  const { network, store, locks, counts, faultCounts } = cluster;
  const logs = store.logJudge.counts;
  const { records, commits, recoveries, moves, splits, metadataSplits, merges, filesDeleted } =
    store.metadataJudge.counts;
  return {
    ...counts,
    failOvers: Math.max(0, locks.masterEpochs.size - 1),
    ...{ recoveries, moves, splits, merges, metadataSplits },
    ...Object.fromEntries(Object.entries(faultCounts).map(([kind, count]) => [`fault: ${kind}`, count])),
    messages: network.counts.messages,
    lostMessages: network.counts.lost,
    repeatedMessages: network.counts.givenUp,
    overtakenCalls: network.counts.overtaken,
    storeOperations: store.counts.operations,
    storeFailed: store.counts.failed,
    storeUnanswered: store.counts.unanswered,
    storeDamaged: store.counts.damaged,
    landedLate: store.counts.landedLate,
    filesDeleted,
    metadataCommits: commits,
    logRecords: records,
    logAppends: logs.appends,
    logFences: logs.fences,
    logReplays: logs.replays,
    appendsTwice: logs.twice,
    sortedParts: logs.sortedParts,
    lockCalls: locks.counts.calls,
    lockCallsUnanswered: locks.counts.unanswered,
    lockCallsLate: locks.counts.late,
    expiredSessions: locks.counts.expired,
    watchGaps: locks.counts.gaps,
    endedWatches: locks.counts.endedWatches,
  };
}
