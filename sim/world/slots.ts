/**
 * The slots of commit logs as one process reaches them, and its logs as the judge sees them: each slot when it is
 * created or deleted, each append when it is acknowledged or read.
 */
import { toBigtableError } from '../../src/base/index.ts';
import type {
  FileSystem,
  LogAppend,
  LogMemo,
  LogPosition,
  LogWriter,
  MemorySlotStore,
  SlotPage,
  SlotStore,
} from '../../src/env/index.ts';
import type { LogJudge } from './log-judge.ts';
import type { SimProcess } from './process.ts';

/** The storage, for operations on slots. */
interface SlotStorage {
  readonly slots: MemorySlotStore;
  readonly logJudge: LogJudge;
  performLate<T>(process: SimProcess, operation: string, path: string, act: () => Promise<T>): Promise<T>;
  look<T>(process: SimProcess, operation: string, path: string, act: () => Promise<T>): Promise<T>;
  asRead(path: string, bytes: Buffer): Buffer;
}

export class SimSlots implements SlotStore {
  readonly #store: SlotStorage;
  readonly #process: SimProcess;

  constructor(store: SlotStorage, process: SimProcess) {
    this.#store = store;
    this.#process = process;
  }

  create(
    log: string,
    slot: number,
    parts: readonly Uint8Array[],
    options: { readonly reserved?: boolean } = {},
  ): Promise<boolean> {
    const bytes = Buffer.concat(parts);
    return this.#change(options.reserved ? 'createReservedSlot' : 'createSlot', `${log}/${slot}`, async () => {
      const isCreated = await this.#store.slots.create(log, slot, [bytes], options);
      if (isCreated) this.#store.logJudge.created(log, slot, bytes);
      return isCreated;
    });
  }

  read(log: string, slot: number, offset: number, length: number): Promise<Buffer | undefined> {
    const path = `${log}/${slot}`;
    return this.#look('readSlot', path, async () => {
      const bytes = await this.#store.slots.read(log, slot, offset, length);
      return bytes && this.#store.asRead(path, bytes);
    });
  }

  listSlots(log: string, from: number): Promise<SlotPage> {
    return this.#look('listSlots', log, () => this.#store.slots.listSlots(log, from));
  }

  listLogs(prefix: string, after: string): Promise<string[]> {
    return this.#look('listLogs', prefix, () => this.#store.slots.listLogs(prefix, after));
  }

  delete(log: string, slots: readonly number[]): Promise<void> {
    return this.#change('deleteSlots', log, async () => {
      await this.#store.slots.delete(log, slots);
      this.#store.logJudge.deleted(log, slots);
    });
  }

  reserve(log: string, bytes: number): Promise<void> {
    return this.#change('reserve', log, () => this.#store.slots.reserve(log, bytes));
  }

  unreserve(log: string): Promise<void> {
    return this.#change('unreserve', log, () => this.#store.slots.unreserve(log));
  }

  #change<T>(operation: string, path: string, act: () => Promise<T>): Promise<T> {
    return this.#store.performLate(this.#process, operation, path, act);
  }

  #look<T>(operation: string, path: string, act: () => Promise<T>): Promise<T> {
    return this.#store.look(this.#process, operation, path, act);
  }
}

/** `fileSystem`, with its appends and replays shown to the judge. Servers' names begin with "server". */
export function judgedLogs(fileSystem: FileSystem, judge: LogJudge, process: string): FileSystem {
  const own = new Set<string>();
  const readLog = async function* (path: string, from: LogPosition = 0, memo?: LogMemo): AsyncIterable<LogAppend> {
    if (own.has(path)) {
      // it is trimmed meanwhile; change streams can cope with that
      if (!judge.ownLogsAreRead) judge.onViolation(`${process} reads its own log ${path}`);
      return yield* fileSystem.readLog(path, from, memo);
    }
    const wasSealed = judge.isSealed(path);
    let last = 0;
    for await (const append of fileSystem.readLog(path, from, memo)) {
      judge.appendRead(path, append);
      last = append.position;
      yield append;
    }
    if (process.startsWith('server')) judge.replayed(path, { from, last }, process, wasSealed);
  };
  return {
    ...fileSystem,
    readLog,
    openLog: async (path) => {
      judge.writers.set(path, process);
      const log = await fileSystem.openLog(path);
      own.add(path);
      return judgedWriter(log, path, judge);
    },
  };
}

function judgedWriter(log: LogWriter, path: string, judge: LogJudge): LogWriter {
  return {
    append: async (parts, options) => {
      try {
        const position = await log.append(parts, options);
        judge.acknowledged(path, position);
        return position;
      } catch (error) {
        judge.failed(path, toBigtableError(error));
        throw error;
      }
    },
    reserve: (bytes) =>
      log.reserve(bytes).catch((error: unknown) => {
        judge.failed(path, toBigtableError(error));
        throw error;
      }),
    trimBefore: (position) => log.trimBefore(position),
    sizeBytes: (from) => log.sizeBytes(from),
    close: () => log.close(),
  };
}
