/** A lock service or a file system whose calls are applied, and whose answers get lost. */
import assert from 'node:assert/strict';
import { BigtableError, Code, unavailable } from '../../src/base/index.ts';
import type { FileSystem, LockService } from '../../src/env/index.ts';

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
    tryAcquire: (path, id) => twice(() => service.tryAcquire(path, id)),
    release: (lock) => twice(() => service.release(lock)),
    holder: (path) => twice(() => service.holder(path)),
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

/**
 * A file system whose calls are applied and whose first answers get lost; each is sent again, where that is allowed. A
 * close is settled by the file's size.
 */
export function filesSentAgain(inner: FileSystem): FileSystem {
  return {
    create: async (path) => {
      const writer = await inner.create(path);
      let bytes = 0;
      return {
        append: (chunk) => {
          bytes += chunk.length;
          return writer.append(chunk);
        },
        close: async () => {
          await writer.close();
          assert.equal(await inner.size(path), bytes, 'a file that was closed is there whole');
        },
        abort: () => twice(() => writer.abort()),
      };
    },
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
        sizeBytes: () => log.sizeBytes(),
        close: () => twice(() => log.close()),
      };
    },
    fence: (path) => twice(() => inner.fence(path)),
    readLog: (path, from) => inner.readLog(path, from),
    listLogs: (prefix) => twice(() => inner.listLogs(prefix)),
    deleteLog: (path) => twice(() => inner.deleteLog(path)),
  };
}
