/**
 * Linearizability under kill -9: clients contend on a few rows of a database in a process of its own, which is killed
 * again and again, sometimes while it starts. The history of each row must be linearizable.
 *
 * No effect outlives its process: an operation without an answer took effect before the process ended, or never will.
 * So each kill is an end of all operations, and the histories are checked in pieces, from one kill to the next.
 */
import { checkDirectory } from '../../src/boot/index.ts';
import type { Call, Outcome } from './calls.ts';
import { type Connection, type DatabaseProcess, type Program, startProcess } from './database-process.ts';
import { Draw } from './draw.ts';
import { EventClock, History, type Recorded } from './history.ts';
import { EMPTY_ROW, firstValueOf, RowStep } from './row.ts';

export interface KillRunOptions {
  readonly program: Program;
  /** The directory of the database; a new one. */
  readonly directory: string;
  readonly seed: number;
  readonly clients: number;
  readonly rows: number;
  /** Operations on rows at least. */
  readonly operations: number;
  /** Operations between two kills, in the mean. */
  readonly operationsPerKill: number;
}

export interface KillRunResult {
  /** The first violation of linearizability, or damage of the directory. */
  readonly failure: string | undefined;
  /** Failures of calls that no kill explains, each message once. */
  readonly unexpected: readonly string[];
  readonly calls: number;
  /** Operations on rows, and those of them that were answered, surely failed, and had an unknown outcome. */
  readonly operations: number;
  readonly answered: number;
  readonly failed: number;
  readonly unknown: number;
  readonly kills: number;
  /** Those of the kills that came while the process started. */
  readonly killsAtStart: number;
  /** CPU time of the checker. */
  readonly checkMs: number;
  /** The most configurations that one event led to. */
  readonly maxConfigurations: number;
}

/** A start in this many is killed. */
const KILLED_STARTS = 4;
const MAX_DELAY_MS = 8;
/** A process lives no longer, however few calls are answered. */
const MAX_LIFE_MS = 600_000;
const MAX_UNEXPECTED = 5;

/** The time from the start of a process to its kill. */
interface Life {
  readonly process: DatabaseProcess;
  /** Called after each operation. */
  readonly onOperation: () => void;
  /** True once the signal was sent. */
  isEnding: boolean;
}

export class KillRun {
  readonly #options: KillRunOptions;
  readonly #draw: Draw;
  readonly #clock = new EventClock();
  readonly #histories: ReadonlyMap<string, History>;
  readonly #unexpected = new Set<string>();
  readonly #counts = { calls: 0, operations: 0, answered: 0, failed: 0, unknown: 0, kills: 0, killsAtStart: 0 };
  #checkMs = 0;
  /** The time that the last start took. */
  #startMs = 0;
  #process: DatabaseProcess | undefined;
  #failure: string | undefined;

  constructor(options: KillRunOptions) {
    this.#options = options;
    this.#draw = new Draw(options.rows, options.seed);
    this.#histories = new Map(this.#draw.rows.map((row) => [row, new History(EMPTY_ROW, this.#clock)]));
  }

  async run(): Promise<KillRunResult> {
    try {
      while (this.#counts.operations < this.#options.operations && this.#failure === undefined)
        await this.#killedLife();
      // after the last kill, and after an end in order
      for (let i = 0; i < 2 && this.#failure === undefined; i++) await this.#scanAndStop();
      if (this.#failure === undefined) await this.#checkDirectory();
    } finally {
      await this.#process?.kill('SIGKILL');
    }
    const configurations = [...this.#histories.values()].map((history) => history.maxConfigurations);
    return {
      ...this.#counts,
      failure: this.#failure,
      unexpected: [...this.#unexpected],
      checkMs: this.#checkMs,
      maxConfigurations: Math.max(...configurations),
    };
  }

  async #killedLife(): Promise<void> {
    while (this.#startMs > 0 && this.#draw.below(KILLED_STARTS) === 0) await this.#killStart();
    const { clients, operationsPerKill } = this.#options;
    const { rows } = this.#draw;
    const connections = await this.#start(clients);
    await this.#call({ method: 'openTable', rows: [], at: rows[rows.length >> 1] }, connections[0]!, this.#life());
    // tells which operations of unknown outcome took effect, before others depend on them
    await this.#scan(connections[0]!);
    let left = 1 + this.#draw.below(2 * operationsPerKill);
    let tellDue = (): void => {};
    const due = new Promise<void>((resolve) => (tellDue = resolve));
    const life = this.#life(() => {
      if (--left === 0) tellDue();
    });
    const work = connections.map((connection) => this.#work(connection, life));
    const stuck = setTimeout(() => {
      this.#noteUnexpected(`calls hang: ${MAX_LIFE_MS} ms after a start the process was not due to be killed`);
      tellDue();
    }, MAX_LIFE_MS);
    await Promise.race([due, life.process.ended]);
    clearTimeout(stuck);
    await pause(this.#draw.below(MAX_DELAY_MS));
    life.isEnding = true;
    await this.#end('SIGKILL', connections, work);
  }

  /** A process that is killed before it is open, or shortly after. */
  async #killStart(): Promise<void> {
    this.#process = startProcess(this.#options.program);
    await pause(this.#draw.below(Math.ceil(1.2 * this.#startMs)));
    await this.#process.kill('SIGKILL');
    this.#counts.kills++;
    this.#counts.killsAtStart++;
  }

  async #scanAndStop(): Promise<void> {
    const [connection] = await this.#start(1);
    await this.#scan(connection!);
    await this.#end('SIGTERM', [connection!]);
  }

  #scan(connection: Connection): Promise<void> {
    const rows = this.#draw.rows.map((row) => ({ row, work: { kind: 'read' } as const }));
    return this.#call({ method: 'scan', rows }, connection, this.#life());
  }

  async #checkDirectory(): Promise<void> {
    const { findings } = await checkDirectory(this.#options.directory);
    if (findings.length > 0)
      this.#failure = `the directory is damaged: ${JSON.stringify(findings.slice(0, MAX_UNEXPECTED))}`;
  }

  async #start(clients: number): Promise<readonly Connection[]> {
    const begunMs = performance.now();
    this.#process = startProcess(this.#options.program);
    const connections = await this.#process.connect(clients);
    this.#startMs = performance.now() - begunMs;
    return connections;
  }

  #life(onOperation = (): void => {}): Life {
    return { process: this.#process!, onOperation, isEnding: false };
  }

  /** Ends the process, waits for the clients, and checks all that they did. */
  async #end(
    signal: 'SIGKILL' | 'SIGTERM',
    connections: readonly Connection[],
    work: readonly Promise<void>[] = [],
  ): Promise<void> {
    const end = await this.#process!.kill(signal);
    const endedAt = this.#clock.next();
    if (signal === 'SIGKILL') this.#counts.kills++;
    if (end !== (signal === 'SIGKILL' ? signal : 0))
      this.#noteUnexpected(`it ended with ${end}:\n${this.#process!.output}`);
    await Promise.all(work);
    await Promise.all(connections.map((connection) => connection.close()));
    const { user } = process.cpuUsage();
    for (const [row, history] of this.#histories) {
      history.crash(endedAt);
      const violation = history.check();
      if (violation !== undefined) this.#failure ??= `${row} is ${violation}`;
    }
    this.#checkMs += (process.cpuUsage().user - user) / 1000;
  }

  async #work(connection: Connection, life: Life): Promise<void> {
    while (!life.isEnding) await this.#call(this.#draw.call(), connection, life);
  }

  async #call(call: Call, connection: Connection, life: Life): Promise<void> {
    const operations = call.rows.map(({ row, work }) => this.#histories.get(row)!.begin(new RowStep(work)));
    const outcomes = await connection.perform(call);
    this.#counts.calls++;
    this.#counts.operations += operations.length;
    operations.forEach((operation, i) => {
      this.#note(operation, call, i, outcomes[i]!, life);
      life.onOperation();
    });
  }

  #note(operation: Recorded, call: Call, index: number, outcome: Outcome, life: Life): void {
    const { row, work } = call.rows[index]!;
    this.#counts[outcome.kind]++;
    if (outcome.kind === 'answered') {
      operation.answered(outcome.answer);
      if (work.kind === 'read') this.#draw.saw(row, firstValueOf(String(outcome.answer)));
      return;
    }
    operation[outcome.kind]();
    const isExpected =
      life.isEnding ||
      (work.kind === 'mutateInvalidly' && outcome.code === 'NOT_FOUND') ||
      (call.cancelAfter !== undefined && outcome.code === 'CANCELLED');
    if (!isExpected) this.#noteUnexpected(`${call.method}: ${outcome.code}: ${outcome.message}`);
  }

  #noteUnexpected(message: string): void {
    if (this.#unexpected.size < MAX_UNEXPECTED) this.#unexpected.add(message);
  }
}

const pause = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs));
