/**
 * A tablet server's standing in the lock service (paper section 5.2): a session, and a uniquely named file in `servers`
 * that is locked for as long as the server lives. A server that loses the lock stops serving, and so does one whose
 * file is removed: no master would find it.
 *
 * Invariant: the file never exists without its lock having been taken first, so a master that sees the file unlocked
 * knows the server is dead.
 */
import { assert } from '../base/index.ts';
import { type Clock, followChanges, type LockHandle, type LockService } from '../env/index.ts';
import { encodePeerFile, hasPlace, type PeerFile, SERVERS_DIRECTORY } from '../protocol/index.ts';

interface SessionParts {
  readonly lockService: LockService;
  readonly clock: Clock;
}

export class ServerSession {
  readonly #lockService: LockService;
  readonly lock: LockHandle;
  readonly #onLost: () => void;
  #stopWatching = (): void => {};
  #isAnnounced = false;
  #lost = false;

  private constructor(lockService: LockService, lock: LockHandle, onLost: () => void) {
    this.#lockService = lockService;
    this.lock = lock;
    this.#onLost = onLost;
  }

  /** Takes the lock. From now on files with the server's name do not count as a dead server's. */
  static async open(parts: SessionParts, name: string, onLost: () => void): Promise<ServerSession> {
    const { lockService } = parts;
    const sessionId = await lockService.openSession();
    let session: ServerSession | undefined;
    try {
      const lock = await lockService.tryAcquire(SERVERS_DIRECTORY + name, sessionId);
      assert(lock !== undefined, `the name ${name} of a new tablet server is free`);
      session = new ServerSession(lockService, lock, onLost);
      await session.#watch(parts);
      return session;
    } catch (error) {
      if (session !== undefined) session.#stopWatching();
      // the caller gets this error, not that of closing the session
      await lockService.closeSession(sessionId).catch(() => {});
      throw error;
    }
  }

  /** Creates the file, by which masters find the server. */
  async announce(peer: PeerFile): Promise<void> {
    await this.#lockService.write(this.lock.path, encodePeerFile(peer), {
      version: 0,
      lock: this.lock,
      sessionId: this.lock.sessionId,
    });
    this.#isAnnounced = true;
  }

  /**
   * True when the lock surely holds at this instant. While the lease has lapsed and the session may live the server
   * serves nothing and waits: the lock holds again if the session is kept alive in time, and else is lost.
   */
  held(): boolean {
    return !this.#lost && this.#lockService.leaseHolds(this.lock.sessionId);
  }

  /** Releases the lock and deletes the file. */
  async close(): Promise<void> {
    this.#lost = true;
    this.#stopWatching();
    await this.#lockService.closeSession(this.lock.sessionId);
  }

  async #watch(parts: SessionParts): Promise<void> {
    const { path, sessionId } = this.lock;
    this.#stopWatching = await followChanges(parts, path, {
      onChange: (event) => {
        if (
          event.kind === 'session-expired'
            ? event.sessionId === sessionId
            : event.path === path && event.kind !== 'changed'
        )
          this.#lose();
      },
      readAgain: () => this.#checkLock(),
      onEnd: () => this.#lose(),
    });
    // it may have been lost before the watch began
    await this.#checkLock();
  }

  async #checkLock(): Promise<void> {
    if (!(await hasPlace(this.#lockService, this.lock, this.#isAnnounced))) this.#lose();
  }

  #lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#onLost();
  }
}
