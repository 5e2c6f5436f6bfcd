/** A change of a file as a transaction of etcd, conditional on its guards, and the reason why it was refused. Pure. */
import type { BigtableError } from '../../base/index.ts';
import { directoryOf, type Guard, lockRefused, removalRefused, sessionEnded, versionRefused } from '../../env/index.ts';
import type { KeyLayout } from './key-layout.ts';
import type { Compare, KeyValue, Operation, TxnAnswer, TxnRequest } from './messages.ts';
import {
  created,
  modified,
  notModifiedAfter,
  put,
  readBy,
  readKey,
  SessionState,
  textOf,
  valued,
} from './transactions.ts';

/** Places of the keys that a refused change has read. */
const [FILE, LOCK, SESSION, REMOVALS] = [0, 1, 2, 3];

export class GuardedChange {
  readonly #path: string;
  readonly #guard: Guard & { readonly sessionId?: string };
  readonly #file: Uint8Array;
  readonly #lock: Uint8Array;
  readonly #session: Uint8Array;
  readonly #removals: Uint8Array;

  constructor(layout: KeyLayout, path: string, guard: Guard & { readonly sessionId?: string }) {
    this.#path = path;
    this.#guard = guard;
    this.#file = layout.file(path);
    // of a guard that is not there nothing is found
    this.#lock = layout.lock(guard.lock?.path ?? '');
    this.#session = layout.session(guard.sessionId ?? '');
    this.#removals = layout.removals(directoryOf(path));
  }

  /** Carries the operation out if the file's version is `before`, 0 for none, and the guards hold. */
  request(before: number, operation: Operation): TxnRequest {
    const { lock, sessionId, noRemovalAfter } = this.#guard;
    const compare: Compare[] = [modified(this.#file, before)];
    if (lock !== undefined) compare.push(created(this.#lock, lock.epoch), valued(this.#lock, lock.sessionId));
    if (sessionId !== undefined) compare.push(valued(this.#session, SessionState.open));
    if (noRemovalAfter !== undefined) compare.push(notModifiedAfter(this.#removals, noRemovalAfter));
    return {
      compare,
      success: operation.delete === undefined ? [operation] : [operation, put(this.#removals, '', undefined)],
      failure: [readKey(this.#file), readKey(this.#lock), readKey(this.#session), readKey(this.#removals)],
    };
  }

  /** The file that a refused change has found. */
  fileOf(answer: TxnAnswer): KeyValue | undefined {
    return readBy(answer, FILE);
  }

  /** Undefined where no guard has refused the change: the file has changed since it was read. */
  refusalOf(answer: TxnAnswer): BigtableError | undefined {
    const { version, lock, sessionId, noRemovalAfter } = this.#guard;
    const found = this.fileOf(answer)?.modRevision ?? 0;
    if (version !== undefined && version !== found) return versionRefused(this.#path, version, found);
    if (noRemovalAfter !== undefined && (readBy(answer, REMOVALS)?.modRevision ?? 0) > noRemovalAfter)
      return removalRefused(this.#path);
    if (lock !== undefined) {
      const held = readBy(answer, LOCK);
      if (held?.createRevision !== lock.epoch || textOf(held) !== lock.sessionId) return lockRefused(lock);
    }
    if (sessionId === undefined) return undefined;
    const session = readBy(answer, SESSION);
    return session === undefined || textOf(session) !== SessionState.open ? sessionEnded(sessionId) : undefined;
  }
}
