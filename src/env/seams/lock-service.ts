/**
 * The second seam: Chubby's role (paper section 4). Small files with compare-and-set by version, exclusive locks tied
 * to sessions with leases, directories by path, watches. Every argument and answer is plain cloneable data, so that the
 * service works over a MessagePort too; only listeners are functions.
 *
 * A path is "/"-joined parts; a directory is a part of a path that ends before a "/". Contents are bytes, at most 1
 * MiB.
 *
 * A change that fails with UNAVAILABLE or DEADLINE_EXCEEDED may have happened, or may happen yet: its answer was lost.
 * Every call may be sent again. `openSession` then leaves a session that no caller knows; with the others a repetition
 * changes nothing more, except that a write without `version` writes once more, and that a guarded write or removal
 * which has happened is refused with ABORTED (calls/settled-changes.ts tells that from a refusal).
 */

export interface SmallFile {
  readonly path: string;
  readonly contents: Uint8Array;
  /** Grows with every change of the file and is never reused, not even after a deletion. */
  readonly version: number;
  /** The session the file dies with; undefined for a lasting file. */
  readonly sessionId?: string;
}

/** A held lock. The epoch grows with every acquisition of the path: a later holder has a greater one. */
export interface LockHandle {
  readonly path: string;
  readonly sessionId: string;
  readonly epoch: number;
}

/** Contents in one page of a list. */
export const MAX_PAGE_BYTES = 1024 * 1024;

/** Conditions of a change. All must hold in the instant of the change, else ABORTED and nothing changes. */
export interface Guard {
  /** The file's version now; 0 = there must be no file. Left out: any version. */
  readonly version?: number;
  /**
   * With version 0: no lasting file of the path's directory was removed after `lastRemoval` had answered this. So a
   * creation that arrives late, after its file was created by a repetition and removed, is refused.
   */
  readonly noRemovalAfter?: number;
  /** The lock must still be held in this epoch. */
  readonly lock?: LockHandle;
}

export type LockEvent =
  /** The first event of a watch: it reports every later change. */
  | { readonly kind: 'established' }
  /** Changes may have been missed: the watcher reads again. The watch reports every later change. */
  | { readonly kind: 'gap' }
  /** The last event, of a watch that was not stopped: the service cannot be reached again. */
  | { readonly kind: 'ended' }
  | LockChange;

export type LockChange =
  | { readonly kind: 'changed'; readonly path: string; readonly version: number }
  | { readonly kind: 'deleted'; readonly path: string }
  /** A lock has ended by release, close or expiry: a caller that waits for it may try. */
  | { readonly kind: 'lock-lost'; readonly path: string; readonly sessionId: string }
  | { readonly kind: 'session-expired'; readonly sessionId: string };

export interface LockService {
  /**
   * A new session; its id is never reused. It lives while it is kept alive (in process: until closed or expired).
   */
  openSession(): Promise<string>;
  /** Ends the session: its locks are released and its ephemeral files deleted. */
  closeSession(sessionId: string): Promise<void>;
  /**
   * True when the session surely lives at this instant: read without the network, in any tick. A lease that has lapsed
   * holds again if the session turns out to live: then its locks were never free.
   */
  leaseHolds(sessionId: string): boolean;

  read(path: string): Promise<SmallFile | undefined>;
  /**
   * Files whose path starts with `prefix` and is above `after`, by path: at most MAX_PAGE_BYTES of contents, but one
   * file at least, if there is any. Each page is of one instant, several together are not (`listFiles` reads all).
   */
  list(prefix: string, after?: string): Promise<SmallFile[]>;
  /** Creates or replaces the file; returns the new version. With `sessionId` the file dies with that session. */
  write(path: string, contents: Uint8Array, options?: Guard & { readonly sessionId?: string }): Promise<number>;
  /** Deletes the file; false where there was none, so also where an earlier attempt has deleted it. */
  remove(path: string, guard?: Guard): Promise<boolean>;

  /**
   * A number that grows when a lasting file is removed from the directory of the path, up to its first "/"; 0 = none
   * was, as far as is known.
   */
  lastRemoval(path: string): Promise<number>;

  /** Takes the lock if it is free, or is this session's already (the epoch stays); undefined if it is another's. */
  tryAcquire(path: string, sessionId: string): Promise<LockHandle | undefined>;
  release(lock: LockHandle): Promise<void>;
  /** The holder now, if any. */
  holder(path: string): Promise<LockHandle | undefined>;
  /** The locks that are held, at one instant, whose path starts with `prefix`, by path. */
  holders(prefix: string): Promise<LockHandle[]>;

  /**
   * Calls `listener` with 'established', and then after every change under `prefix`, lost locks and expired sessions
   * included, in order; returns a function that stops it. `followChanges` does what each watcher has to.
   */
  watch(prefix: string, listener: (event: LockEvent) => void): () => void;
}
