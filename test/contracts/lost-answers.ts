/** A lock service or a file system whose calls are applied, and whose answers get lost. */
import assert from 'node:assert/strict';
import { BigtableError, Code, unavailable } from '../../src/base/index.ts';
import type { FileSystem, FileWriter, LockService } from '../../src/env/index.ts';

export interface LosingAnswers {
  readonly service: LockService;
  /** Number of answers lost so far. */
  readonly lost: number;
}

/**
 * Loses the answer to the first sending of each call for which `loses` is true, with the number of the call; that to
 * its repetition arrives. Calls come one after another.
 */
export function losingAnswers(
  inner: LockService,
  loses: (call: number, method: keyof LockService, args: readonly unknown[]) => boolean,
): LosingAnswers {
  let calls = 0;
  let lost = 0;
  let before: string | undefined;
  const service = new Proxy(inner, {
    get: (target, method: keyof LockService) => {
      const value = target[method] as unknown;
      if (typeof value !== 'function') return value;
      if (method === 'watch' || method === 'leaseHolds') return value.bind(target);
      return async (...args: unknown[]) => {
        const answer = (await value.apply(target, args)) as unknown;
        const call = JSON.stringify([method, args]);
        const isRepetition = call === before;
        before = undefined;
        if (isRepetition || !loses(++calls, method, args)) return answer;
        before = call;
        lost++;
        throw unavailable('the answer was lost');
      };
    },
  });
  return {
    service,
    get lost() {
      return lost;
    },
  };
}

/**
 * The service as a client has it that loses the first answer to every call, and sends each again. What a repetition
 * cannot tell is decided by what is read. So every write has a version: without one it would happen twice.
 */
export function sentAgain(service: LockService): LockService {
  return {
    openSession: () => twice(() => service.openSession()),
    closeSession: (id) => twice(() => service.closeSession(id)),
    leaseHolds: (id) => service.leaseHolds(id),
    read: (path) => twice(() => service.read(path)),
    list: (prefix, after) => twice(() => service.list(prefix, after)),
    lastRemoval: (path) => twice(() => service.lastRemoval(path)),
    tryAcquire: (path, id) => twice(() => service.tryAcquire(path, id)),
    release: (lock) => twice(() => service.release(lock)),
    holder: (path) => twice(() => service.holder(path)),
    holders: (prefix) => twice(() => service.holders(prefix)),
    watch: (prefix, listener) => service.watch(prefix, listener),
    write: async (path, contents, options) => {
      const copy = Uint8Array.from(contents);
      for (;;) {
        const version = options?.version ?? (await service.read(path))?.version ?? 0;
        try {
          const written = await service.write(path, copy, { ...options, version });
          // the repetition is refused: the file has a later version
          await assert.rejects(service.write(path, copy, { ...options, version }), { code: Code.ABORTED });
          return written;
        } catch (error) {
          const isOvertaken = options?.version === undefined && ((await service.read(path))?.version ?? 0) !== version;
          if (!isOvertaken || !(error instanceof BigtableError && error.code === Code.ABORTED)) throw error;
        }
      }
    },
    remove: async (path, guard) => {
      const isRemoved = await service.remove(path, guard);
      const again = await service.remove(path, guard).catch((error: BigtableError) => error.code);
      assert.ok(again === false || again === Code.ABORTED || !isRemoved, 'it is removed once');
      return isRemoved;
    },
  };
}

async function twice<T>(call: () => Promise<T>): Promise<T> {
  await call();
  return call();
}

/** Each call goes by one of several adapters in turn. Logs belong to the adapter that has opened them: to the first. */
export function filesInTurn(adapters: readonly FileSystem[]): FileSystem {
  let calls = 0;
  const next = (): FileSystem => adapters[calls++ % adapters.length]!;
  const first = adapters[0]!;
  return {
    create: (path) => next().create(path),
    size: (path) => next().size(path),
    read: (path, offset, length) => next().read(path, offset, length),
    list: (prefix) => next().list(prefix),
    delete: (path) => next().delete(path),
    openLog: (path) => first.openLog(path),
    fence: (path) => first.fence(path),
    readLog: (path, from, memo) => next().readLog(path, from, memo),
    ...(first.cutLog && { cutLog: (...call) => next().cutLog!(...call) }),
    ...(first.logTail && { logTail: (path) => next().logTail!(path) }),
    ...(first.space && { space: () => next().space!() }),
    listLogs: (prefix) => next().listLogs(prefix),
    deleteLog: (path) => first.deleteLog(path),
  };
}

/**
 * A writer of a file of which answers get lost: those to its creation, to every other append, and to its close. What is
 * invisible is given up and begun anew, a close is settled by the file's size.
 */
class WriterAgain implements FileWriter {
  readonly #fileSystem: FileSystem;
  readonly #path: string;
  readonly #chunks: Uint8Array[] = [];
  #writer: FileWriter;

  private constructor(fileSystem: FileSystem, path: string, writer: FileWriter) {
    this.#fileSystem = fileSystem;
    this.#path = path;
    this.#writer = writer;
  }

  static async create(fileSystem: FileSystem, path: string): Promise<WriterAgain> {
    return new WriterAgain(fileSystem, path, await twice(() => fileSystem.create(path)));
  }

  async append(chunk: Uint8Array): Promise<void> {
    const copy = Uint8Array.from(chunk);
    await this.#writer.append(chunk);
    this.#chunks.push(copy);
    if (this.#chunks.length % 2 === 1) return;
    await twice(() => this.#writer.abort());
    this.#writer = await twice(() => this.#fileSystem.create(this.#path));
    for (const one of this.#chunks) await this.#writer.append(one);
  }

  async close(): Promise<void> {
    await this.#writer.close();
    const bytes = this.#chunks.reduce((sum, { length }) => sum + length, 0);
    assert.equal(await this.#fileSystem.size(this.#path), bytes, 'a file that was closed is there whole');
  }

  abort(): Promise<void> {
    return twice(() => this.#writer.abort());
  }
}

/**
 * A file system whose calls are applied and whose first answers get lost; each is sent again, where that is allowed.
 * Logs whose answers get lost are the matter of slots (env/slots): no other kind outlives its process.
 */
export function filesSentAgain(inner: FileSystem): FileSystem {
  return {
    create: (path) => WriterAgain.create(inner, path),
    size: (path) => twice(() => inner.size(path)),
    read: (path, offset, length) => twice(() => inner.read(path, offset, length)),
    ...(inner.readNow && { readNow: inner.readNow.bind(inner) }),
    list: (prefix) => twice(() => inner.list(prefix)),
    delete: (path) => twice(() => inner.delete(path)),
    openLog: async (path) => {
      const log = await inner.openLog(path);
      return {
        append: (parts, options) => log.append(parts, options),
        reserve: (bytes) => log.reserve(bytes),
        trimBefore: (position) => twice(() => log.trimBefore(position)),
        sizeBytes: (from) => log.sizeBytes(from),
        close: () => twice(() => log.close()),
      };
    },
    fence: (path) => twice(() => inner.fence(path)),
    readLog: (path, from, memo) => inner.readLog(path, from, memo),
    ...(inner.cutLog && { cutLog: (...call) => twice(() => inner.cutLog!(...call)) }),
    ...(inner.logTail && { logTail: (path) => twice(() => inner.logTail!(path)) }),
    ...(inner.space && { space: () => twice(() => inner.space!()) }),
    listLogs: (prefix) => twice(() => inner.listLogs(prefix)),
    deleteLog: (path) => twice(() => inner.deleteLog(path)),
  };
}

/** Each call, those of logs too, goes by one of several machines in turn. */
export function machinesInTurn(machines: readonly FileSystem[]): FileSystem {
  let calls = 0;
  return new Proxy(machines[0]!, {
    get: (_, method: keyof FileSystem) => {
      const machine = machines[calls++ % machines.length]!;
      const call = machine[method];
      return typeof call === 'function' ? call.bind(machine) : call;
    },
  });
}
