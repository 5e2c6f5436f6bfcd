/**
 * Decides if a read may be made synchronously, while everything else on the event loop waits. A read from the system's
 * cache takes microseconds, and handing it to another thread and back takes several times that; a read from the disk
 * takes as long as the disk does. No system call distinguishes the two beforehand, so the read is tried and timed
 * (docs/decisions/0016-reads-in-step.md).
 *
 * A read may also be slow because the system gave the processor to another thread. The system counts what it reads from
 * disks: where that has not changed, the read counts for a quarter of its time.
 *
 * Invariant: slow synchronous reads from disks take at most a twentieth of the time, all slow ones at most a fifth, but
 * for a short burst; when that is used up, reads are left to other threads.
 */
import { TimeAccount } from './posix-time-account.ts';

const SLOW_MS = 0.1;
/** The part of the time that slow reads may take. */
const SHARE = 1 / 20;
/** The part of its time for which a slow read counts that read nothing from a disk. Some file systems count nothing. */
const WITHOUT_DISK_SHARE = 1 / 4;

export class QuickReads {
  readonly #nowMs: () => number;
  readonly #diskReads: () => number;
  /** The time that slow reads may take. */
  readonly #account: TimeAccount;
  /** The last result of `#diskReads`. */
  #diskReadsSeen = 0;

  /** `diskReads`: a number that grows with each read of a disk by this process; 0 while that is not known. */
  constructor(nowMs: () => number, diskReads: () => number) {
    this.#nowMs = nowMs;
    this.#diskReads = diskReads;
    this.#account = new TimeAccount(SHARE, nowMs());
  }

  /** Makes the read, if a synchronous one is allowed now. `prepare` makes its arguments, outside the measured time. */
  run<P, T>(prepare: () => P, read: (prepared: P) => T): T | undefined {
    if (this.#account.isSpent) {
      this.#account.earn(this.#nowMs());
      if (this.#account.isSpent) return undefined;
    }
    const prepared = prepare();
    const startMs = this.#nowMs();
    try {
      return read(prepared);
    } finally {
      const endMs = this.#nowMs();
      if (endMs - startMs >= SLOW_MS) {
        this.#account.earn(endMs);
        this.#account.spend((endMs - startMs) * (this.#mayHaveReadDisk() ? 1 : WITHOUT_DISK_SHARE));
      }
    }
  }

  /** False if this process has read no disk since the last slow read. */
  #mayHaveReadDisk(): boolean {
    const reads = this.#diskReads();
    const mayHave = reads === 0 || reads !== this.#diskReadsSeen;
    this.#diskReadsSeen = reads;
    return mayHave;
  }
}
