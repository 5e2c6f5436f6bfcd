/**
 * The lock service of one process: the state machine that the one in memory and the one in a directory share. Changes
 * that must outlast the process are stored in `LockStorage` before they are visible; sessions, locks and ephemeral
 * files die with the process.
 *
 * Invariants: changes happen one after another, each whole: its guards are checked, it is made durable, applied and
 * reported to the watchers with no other change in between. Versions, epochs and session ids are numbers of one
 * ascending sequence, of which none is used twice.
 */
import { assert } from '../../base/index.ts';
import {
  checkContents,
  checkPath,
  directoryOf,
  lockRefused,
  removalRefused,
  sessionEnded,
  versionRefused,
} from '../calls/small-file-checks.ts';
import {
  type Guard,
  type LockChange,
  type LockEvent,
  type LockHandle,
  type LockService,
  MAX_PAGE_BYTES,
  type SmallFile,
} from '../seams/lock-service.ts';

/** A file that outlasts its session. */
export interface LastingFile {
  readonly path: string;
  readonly contents: Uint8Array;
  readonly version: number;
}

/**
 * Storage of lasting files. Called for one change at a time. A change that fails has not happened; where the storage
 * cannot be sure of that, it refuses every later change.
 */
export interface LockStorage {
  put(file: LastingFile): Promise<void>;
  /** Removes the file's every version below `version`. */
  remove(path: string, version: number): Promise<void>;
  /** Numbers in [from, to), none of which was ever reserved before. */
  reserve(): Promise<{ readonly from: number; readonly to: number }>;
}

interface Watcher {
  readonly prefix: string;
  readonly listener: (event: LockEvent) => void;
  stopped: boolean;
}

export class InProcessLockService implements LockService {
  readonly #storage: LockStorage | undefined;
  readonly #files = new Map<string, SmallFile>();
  /** By directory. Calls of before the start of this process arrive no more. */
  readonly #lastRemovals = new Map<string, number>();
  readonly #locks = new Map<string, LockHandle>();
  readonly #sessions = new Set<string>();
  readonly #watchers = new Set<Watcher>();
  #lastChange: Promise<unknown> = Promise.resolve();
  #nextNumber: number;
  #endOfNumbers: number;

  /** With a storage: `files` is its content. Without one nothing outlasts the process. */
  constructor(storage?: LockStorage, files: Iterable<LastingFile> = []) {
    this.#storage = storage;
    this.#nextNumber = storage ? 0 : 1;
    this.#endOfNumbers = storage ? 0 : Number.MAX_SAFE_INTEGER;
    for (const file of files) this.#files.set(file.path, file);
  }

  openSession(): Promise<string> {
    return this.#change(async () => {
      const sessionId = `session-${await this.#number()}`;
      this.#sessions.add(sessionId);
      return sessionId;
    });
  }

  closeSession(sessionId: string): Promise<void> {
    return this.endSession(sessionId, 'closed');
  }

  /** A session of this process lives until it is ended. */
  leaseHolds(sessionId: string): boolean {
    return this.#sessions.has(sessionId);
  }

  async read(path: string): Promise<SmallFile | undefined> {
    checkPath(path);
    const file = this.#files.get(path);
    return file && copyOf(file);
  }

  async list(prefix: string, after = ''): Promise<SmallFile[]> {
    const found = [...this.#files.values()].filter(({ path }) => path.startsWith(prefix) && path > after);
    found.sort((a, b) => (a.path < b.path ? -1 : 1));
    let bytes = 0;
    const tooMany = found.findIndex(({ contents }, i) => (bytes += contents.length) > MAX_PAGE_BYTES && i > 0);
    return found.slice(0, tooMany === -1 ? undefined : tooMany).map(copyOf);
  }

  async write(
    path: string,
    contents: Uint8Array,
    options: Guard & { readonly sessionId?: string } = {},
  ): Promise<number> {
    checkPath(path);
    checkContents(path, contents);
    const copy = Uint8Array.from(contents);
    const { sessionId } = options;
    return this.#change(async () => {
      this.#checkGuard(path, options);
      if (sessionId !== undefined) this.#checkSession(sessionId);
      const before = this.#files.get(path);
      const version = await this.#number();
      assert(version > (before?.version ?? 0), `version ${version} of ${path} follows ${before?.version}`);
      if (sessionId === undefined) await this.#storage?.put({ path, contents: copy, version });
      else if (before && before.sessionId === undefined) await this.#storage?.remove(path, version);
      this.#files.set(path, { path, contents: copy, version, ...(sessionId !== undefined && { sessionId }) });
      this.#notify(path, { kind: 'changed', path, version });
      return version;
    });
  }

  async remove(path: string, guard: Guard = {}): Promise<boolean> {
    checkPath(path);
    return this.#change(async () => {
      this.#checkGuard(path, guard);
      const before = this.#files.get(path);
      if (!before) return false;
      if (before.sessionId === undefined) {
        const number = await this.#number();
        await this.#storage?.remove(path, number);
        this.#lastRemovals.set(directoryOf(path), number);
      }
      this.#files.delete(path);
      this.#notify(path, { kind: 'deleted', path });
      return true;
    });
  }

  async lastRemoval(path: string): Promise<number> {
    checkPath(path);
    return this.#lastRemovals.get(directoryOf(path)) ?? 0;
  }

  async tryAcquire(path: string, sessionId: string): Promise<LockHandle | undefined> {
    checkPath(path);
    return this.#change(async () => {
      this.#checkSession(sessionId);
      const held = this.#locks.get(path);
      if (held !== undefined) return held.sessionId === sessionId ? { ...held } : undefined;
      const lock: LockHandle = { path, sessionId, epoch: await this.#number() };
      this.#locks.set(path, lock);
      return { ...lock };
    });
  }

  release(lock: LockHandle): Promise<void> {
    return this.#change(() => {
      if (this.#holds(lock)) this.#freeLock(lock);
    });
  }

  async holder(path: string): Promise<LockHandle | undefined> {
    checkPath(path);
    const lock = this.#locks.get(path);
    return lock && { ...lock };
  }

  async holders(prefix: string): Promise<LockHandle[]> {
    const held = [...this.#locks.values()].filter(({ path }) => path.startsWith(prefix));
    return held.sort((a, b) => (a.path < b.path ? -1 : 1)).map((lock) => ({ ...lock }));
  }

  watch(prefix: string, listener: (event: LockEvent) => void): () => void {
    const watcher: Watcher = { prefix, listener, stopped: false };
    this.#watchers.add(watcher);
    report(watcher, { kind: 'established' });
    return () => {
      watcher.stopped = true;
      this.#watchers.delete(watcher);
    };
  }

  /** Ends a session that lives; its locks go first, then its files, then the session. */
  protected endSession(sessionId: string, how: 'closed' | 'expired'): Promise<void> {
    return this.#change(() => {
      if (!this.#sessions.delete(sessionId)) return;
      for (const lock of [...this.#locks.values()]) if (lock.sessionId === sessionId) this.#freeLock(lock);
      for (const file of [...this.#files.values()]) {
        if (file.sessionId !== sessionId) continue;
        this.#files.delete(file.path);
        this.#notify(file.path, { kind: 'deleted', path: file.path });
      }
      if (how === 'expired') this.#notify(undefined, { kind: 'session-expired', sessionId });
    });
  }

  /** Runs `change` when all earlier ones are over. */
  #change<T>(change: () => T | Promise<T>): Promise<T> {
    const result = this.#lastChange.then(change);
    this.#lastChange = result.catch(() => {});
    return result;
  }

  async #number(): Promise<number> {
    if (this.#nextNumber >= this.#endOfNumbers) {
      assert(this.#storage, 'numbers without storage do not end');
      const { from, to } = await this.#storage.reserve();
      assert(from >= this.#endOfNumbers && to > from, `numbers ${from} to ${to} follow ${this.#endOfNumbers}`);
      this.#nextNumber = from;
      this.#endOfNumbers = to;
    }
    return this.#nextNumber++;
  }

  #checkGuard(path: string, guard: Guard): void {
    const version = this.#files.get(path)?.version ?? 0;
    if (guard.version !== undefined && guard.version !== version) throw versionRefused(path, guard.version, version);
    const { noRemovalAfter } = guard;
    if (noRemovalAfter !== undefined && (this.#lastRemovals.get(directoryOf(path)) ?? 0) > noRemovalAfter)
      throw removalRefused(path);
    if (guard.lock && !this.#holds(guard.lock)) throw lockRefused(guard.lock);
  }

  #checkSession(sessionId: string): void {
    if (!this.#sessions.has(sessionId)) throw sessionEnded(sessionId);
  }

  #holds(lock: LockHandle): boolean {
    const held = this.#locks.get(lock.path);
    return held !== undefined && held.epoch === lock.epoch && held.sessionId === lock.sessionId;
  }

  #freeLock({ path, sessionId }: LockHandle): void {
    this.#locks.delete(path);
    this.#notify(path, { kind: 'lock-lost', path, sessionId });
  }

  /** An event for every watcher. */
  protected reportToAll(event: LockEvent): void {
    for (const watcher of this.#watchers) report(watcher, event);
  }

  /** False: the watchers miss the change. */
  protected reports(): boolean {
    return true;
  }

  #notify(path: string | undefined, event: LockChange): void {
    if (!this.reports()) return;
    for (const watcher of this.#watchers)
      if (path === undefined || path.startsWith(watcher.prefix)) report(watcher, event);
  }
}

/**
 * Microtasks run in the order they were made, so each watcher receives the events in the order of the changes, and
 * never during its own call.
 */
function report(watcher: Watcher, event: LockEvent): void {
  void Promise.resolve().then(() => {
    if (!watcher.stopped) watcher.listener({ ...event });
  });
}

function copyOf(file: SmallFile): SmallFile {
  return { ...file, contents: Uint8Array.from(file.contents) };
}
