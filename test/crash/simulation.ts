/**
 * A database in simulated time, over a file system in memory: all it does are microtasks and timers of a clock that stands still, so whenever nothing is
 * left to do but wait, the clock goes on to the next timer. A minute of retries takes no time, and a run does the same thing each time.
 */
import { type DatabaseSettings, type OpenDatabase, openDatabase } from '../../src/boot/index.ts';
import { type Database, overService } from '../../src/embedded/index.ts';
import { type Logger, ManualClock, type MemoryFileSystem, SeededRandom, sleep } from '../../src/env/index.ts';

/** Turns of the event loop without a timer to wait for, after which nothing will happen any more. */
const MOST_IDLE_TURNS = 10_000;
/** Messages that are kept. */
const MOST_MESSAGES = 100;
const SMALL: Partial<DatabaseSettings> = { memtableBytes: 1 << 20, logLimitBytes: 1 << 20, blockSizeBytes: 1024 };

/** Names are never used again, so no two openings draw the same ones. */
let openings = 0;

export class Simulation {
  readonly clock: ManualClock;
  /** What the databases logged, for people. */
  readonly messages: string[] = [];

  /** `startMicros`: real time at the beginning. */
  constructor(startMicros?: number) {
    this.clock = new ManualClock(startMicros);
  }

  /** Lets time go on until the work has ended. */
  async run<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    work.then(end, end);
    let idleTurns = 0;
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (isOver) return work;
      const untilMs = this.clock.nextTimerMs();
      if (untilMs !== Number.POSITIVE_INFINITY) {
        idleTurns = 0;
        this.clock.advance(untilMs - this.clock.monotonicMs());
      } else if (++idleTurns > MOST_IDLE_TURNS) {
        throw new Error(`nothing goes on any more; the last messages: ${this.messages.slice(-5).join('\n')}`);
      }
    }
  }

  sleep(delayMs: number): Promise<void> {
    return sleep(this.clock, delayMs);
  }

  async open(fileSystem: MemoryFileSystem, settings: Partial<DatabaseSettings> = SMALL): Promise<SimulatedDatabase> {
    const note = (message: string, fields?: object): void => {
      this.messages.push(`${message} ${JSON.stringify(fields ?? {})}`);
      if (this.messages.length > MOST_MESSAGES) this.messages.shift();
    };
    const logger: Logger = { info: note, warn: note, error: note };
    const opened = await openDatabase({ fileSystem, clock: this.clock, random: new SeededRandom(++openings), logger, settings });
    return { opened, database: overService(opened.service, opened.env.requestBudget, opened.close) };
  }
}

export interface SimulatedDatabase {
  readonly opened: OpenDatabase;
  readonly database: Database;
}
