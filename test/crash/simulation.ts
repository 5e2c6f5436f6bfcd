/**
 * A database in simulated time (simulated-time.ts), over a file system in memory: all it does are microtasks and timers
 * of a clock that stands still.
 */
import { type DatabaseSettings, type OpenDatabase, openDatabase } from '../../src/boot/index.ts';
import { type Database, overService } from '../../src/embedded/index.ts';
import {
  type Logger,
  ManualClock,
  type MemoryFileSystem,
  SeededRandom,
  sleep,
  silentLogger,
} from '../../src/env/index.ts';
import { inSimulatedTime } from '../simulated-time.ts';

/** Messages that are kept. */
const MAX_MESSAGES = 100;
/** Work on files comes soon. */
export const SMALL: Partial<DatabaseSettings> = {
  memtableBytes: 1 << 20,
  logLimitBytes: 1 << 20,
  blockSizeBytes: 1024,
};

/** Names are never reused, so no two openings draw the same ones. */
let openings = 0;

export class Simulation {
  readonly clock: ManualClock;
  /** The log lines of the databases, for people. */
  readonly messages: string[] = [];

  /** `startMicros`: real time at the beginning. */
  constructor(startMicros?: number) {
    this.clock = new ManualClock(startMicros);
  }

  /** Lets time go on until the work has ended. `progress`: changes as long as work of days gets on. */
  run<T>(work: Promise<T>, progress?: () => number): Promise<T> {
    return inSimulatedTime(
      this.clock,
      work,
      () => `the last messages: ${this.messages.slice(-5).join('\n')}`,
      progress,
    );
  }

  sleep(delayMs: number): Promise<void> {
    return sleep(this.clock, delayMs);
  }

  async open(fileSystem: MemoryFileSystem, settings: Partial<DatabaseSettings> = SMALL): Promise<SimulatedDatabase> {
    const note = (message: string, fields?: object): void => {
      this.messages.push(`${message} ${JSON.stringify(fields ?? {})}`);
      if (this.messages.length > MAX_MESSAGES) this.messages.shift();
    };
    const logger: Logger = { ...silentLogger, info: note, warn: note, error: note };
    const opened = await openDatabase({
      fileSystem,
      clock: this.clock,
      random: new SeededRandom(++openings),
      logger,
      settings,
    });
    return { opened, database: overService(opened.service, opened.env, opened.close) };
  }
}

export interface SimulatedDatabase {
  readonly opened: OpenDatabase;
  readonly database: Database;
}
