/**
 * The simulated storage that all processes share. An operation takes effect at one instant between its call and its
 * answer, and each of the two can fail: it may have no effect, or its answer may be lost. What a process began before
 * it died or stood still lands later, or never.
 */
import { BigtableError, Code, unavailable } from '../../src/base/index.ts';
import {
  type AppendOptions,
  type FileInfo,
  type FileSystem,
  type FileWriter,
  type LogAppend,
  type LogPosition,
  type LogWriter,
  MemoryFileSystem,
} from '../../src/env/index.ts';
import type { SimProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';

/** How operations fare now. A run's faults change it. */
export interface StoreHealth {
  minDelayMs: number;
  maxDelayMs: number;
  /** The share of operations that are slow by up to `slowMs`. */
  slowShare: number;
  slowMs: number;
  /** The share of operations that fail without effect. */
  failedShare: number;
  /** The share of operations that take effect and then fail. */
  unansweredShare: number;
  /** True: writes are refused for lack of space. */
  isFull: boolean;
}

const WRITES = new Set(['append', 'close', 'openLog', 'appendLog', 'reserve']);

export class SimStore {
  readonly files = new MemoryFileSystem();
  readonly health: StoreHealth = {
    minDelayMs: 0.1,
    maxDelayMs: 2,
    slowShare: 0,
    slowMs: 0,
    failedShare: 0,
    unansweredShare: 0,
    isFull: false,
  };
  readonly counts = { operations: 0, slow: 0, failed: 0, unanswered: 0, refused: 0, landedLate: 0 };
  readonly #scheduler: Scheduler;
  readonly #draw;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#draw = scheduler.fork('store');
  }

  fileSystemOf(process: SimProcess): FileSystem {
    return new SimFileSystem(this, process);
  }

  /** `act`: takes effect in the instant in which it is called. */
  perform<T>(process: SimProcess, operation: string, path: string, act: () => Promise<T>): Promise<T> {
    const { health, counts } = this;
    counts.operations++;
    const isFailed = this.#draw.float() < health.failedShare;
    const isUnanswered = this.#draw.float() < health.unansweredShare;
    const landsMs = this.#delayMs();
    const answersMs = this.#delayMs();
    const what = `${operation} ${path}`;
    return new Promise((resolve, reject) => {
      const answer = (end: () => void): void => process.later(answersMs, `answer ${what}`, end);
      this.#scheduler.after(landsMs, undefined, what, () => {
        if (process.isDead || process.pausedUntilMs > this.#scheduler.nowMs) counts.landedLate++;
        if (isFailed) {
          counts.failed++;
          return answer(() => reject(unavailable(`${path}: the storage could not be reached`)));
        }
        if (health.isFull && WRITES.has(operation)) {
          counts.refused++;
          return answer(() => reject(new BigtableError(Code.RESOURCE_EXHAUSTED, `${path}: no space is left`)));
        }
        act().then(
          (result) => {
            if (isUnanswered) counts.unanswered++;
            answer(() => (isUnanswered ? reject(unavailable(`${path}: the answer was lost`)) : resolve(result)));
          },
          (thrown: unknown) => answer(() => reject(thrown)),
        );
      });
    });
  }

  #delayMs(): number {
    const { minDelayMs, maxDelayMs, slowShare, slowMs } = this.health;
    const isSlow = this.#draw.float() < slowShare;
    if (isSlow) this.counts.slow++;
    return minDelayMs + this.#draw.float() * (maxDelayMs - minDelayMs) + (isSlow ? this.#draw.float() * slowMs : 0);
  }
}

/** The storage as one process reaches it. */
class SimFileSystem implements FileSystem {
  readonly #store: SimStore;
  readonly #process: SimProcess;

  constructor(store: SimStore, process: SimProcess) {
    this.#store = store;
    this.#process = process;
  }

  async create(path: string): Promise<FileWriter> {
    const writer = await this.#perform('create', path, () => this.#files.create(path));
    return {
      append: (bytes) => {
        const copy = Uint8Array.from(bytes);
        return this.#perform('append', path, () => writer.append(copy));
      },
      close: () => this.#perform('close', path, () => writer.close()),
      abort: () => this.#perform('abort', path, () => writer.abort()),
    };
  }

  size(path: string): Promise<number> {
    return this.#perform('size', path, () => this.#files.size(path));
  }

  read(path: string, offset: number, length: number): Promise<Buffer> {
    return this.#perform('read', path, () => this.#files.read(path, offset, length));
  }

  list(prefix: string): Promise<FileInfo[]> {
    return this.#perform('list', prefix, () => this.#files.list(prefix));
  }

  delete(path: string): Promise<void> {
    return this.#perform('delete', path, () => this.#files.delete(path));
  }

  async openLog(path: string): Promise<LogWriter> {
    return new SimLogWriter(
      this.#store,
      this.#process,
      path,
      await this.#perform('openLog', path, () => this.#files.openLog(path)),
    );
  }

  fence(path: string): Promise<void> {
    return this.#perform('fence', path, () => this.#files.fence(path));
  }

  async *readLog(path: string, from?: LogPosition): AsyncIterable<LogAppend> {
    yield* await this.#perform('readLog', path, async () => {
      const appends: LogAppend[] = [];
      for await (const append of this.#files.readLog(path, from)) appends.push(append);
      return appends;
    });
  }

  listLogs(prefix: string): Promise<string[]> {
    return this.#perform('listLogs', prefix, () => this.#files.listLogs(prefix));
  }

  deleteLog(path: string): Promise<void> {
    return this.#perform('deleteLog', path, () => this.#files.deleteLog(path));
  }

  get #files(): MemoryFileSystem {
    return this.#store.files;
  }

  #perform<T>(operation: string, path: string, act: () => Promise<T>): Promise<T> {
    return this.#store.perform(this.#process, operation, path, act);
  }
}

class SimLogWriter implements LogWriter {
  readonly #store: SimStore;
  readonly #process: SimProcess;
  readonly #path: string;
  readonly #writer: LogWriter;
  /** An append of unknown outcome was made: no later one may follow. */
  #isBroken = false;

  constructor(store: SimStore, process: SimProcess, path: string, writer: LogWriter) {
    this.#store = store;
    this.#process = process;
    this.#path = path;
    this.#writer = writer;
  }

  async append(parts: readonly Uint8Array[], options?: AppendOptions): Promise<LogPosition> {
    this.#checkWhole();
    const bytes = Buffer.concat(parts);
    try {
      return await this.#perform(options?.reserved ? 'appendReserved' : 'appendLog', () =>
        this.#writer.append([bytes], options),
      );
    } catch (error) {
      if (!(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED)) this.#isBroken = true;
      throw error;
    }
  }

  async reserve(bytes: number): Promise<void> {
    this.#checkWhole();
    await this.#perform('reserve', () => this.#writer.reserve(bytes));
  }

  trimBefore(position: LogPosition): Promise<void> {
    return this.#perform('trimLog', () => this.#writer.trimBefore(position));
  }

  sizeBytes(): number {
    return this.#writer.sizeBytes();
  }

  close(): Promise<void> {
    return this.#perform('closeLog', () => this.#writer.close());
  }

  #perform<T>(operation: string, act: () => Promise<T>): Promise<T> {
    return this.#store.perform(this.#process, operation, this.#path, act);
  }

  #checkWhole(): void {
    if (this.#isBroken)
      throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#path}: an append of unknown outcome was made`);
  }
}
