/**
 * A tablet server's standing in the lock service (paper section 5.2): a session, and a uniquely named file in `servers`
 * that is locked for as long as the server lives. A server that loses the lock stops serving.
 *
 * Invariant: the file never exists without its lock having been taken first, so a master that sees the file unlocked
 * knows the server is dead.
 */
import { assert } from '../base/index.ts';
import type { Clock, LockHandle, LockService } from '../env/index.ts';
import { encodePeerFile, type PeerFile, SERVERS_DIRECTORY } from '../protocol/index.ts';

export class ServerSession {
  readonly #lockService: LockService;
  readonly #clock: Clock;
  readonly #lock: LockHandle;
  readonly #stopWatching: () => void;
  #lost = false;

  private constructor(lockService: LockService, clock: Clock, lock: LockHandle, onLost: () => void) {
    this.#lockService = lockService;
    this.#clock = clock;
    this.#lock = lock;
    const lose = (): void => {
      if (this.#lost) return;
      this.#lost = true;
      onLost();
    };
    this.#stopWatching = lockService.watch(lock.path, (event) => {
      if (
        event.kind === 'session-expired'
          ? event.sessionId === lock.sessionId
          : event.path === lock.path && event.kind !== 'changed'
      )
        lose();
    });
  }

  /** Takes the lock. From now on files with the server's name do not count as a dead server's. */
  static async open(lockService: LockService, clock: Clock, name: string, onLost: () => void): Promise<ServerSession> {
    const sessionId = await lockService.openSession();
    try {
      const lock = await lockService.tryAcquire(SERVERS_DIRECTORY + name, sessionId);
      assert(lock !== undefined, `the name ${name} of a new tablet server is free`);
      return new ServerSession(lockService, clock, lock, onLost);
    } catch (error) {
      // the caller gets this error, not that of closing the session
      await lockService.closeSession(sessionId).catch(() => {});
      throw error;
    }
  }

  /** Creates the file, by which masters find the server. */
  async announce(peer: PeerFile): Promise<void> {
    await this.#lockService.write(this.#lock.path, encodePeerFile(peer), {
      version: 0,
      lock: this.#lock,
      sessionId: this.#lock.sessionId,
    });
  }

  /** True when the lock surely holds at this instant. */
  held(): boolean {
    return !this.#lost && this.#clock.monotonicMs() < this.#lockService.leaseDeadlineMs(this.#lock.sessionId);
  }

  /** Releases the lock and deletes the file. */
  async close(): Promise<void> {
    this.#lost = true;
    this.#stopWatching();
    await this.#lockService.closeSession(this.#lock.sessionId);
  }
}
