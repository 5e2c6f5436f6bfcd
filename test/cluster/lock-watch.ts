/** Sees when locks of the cluster are lost: what a master can know of a death, and when another one can take over. */
import { PREFIX } from './cluster.ts';
import type { Etcd } from './etcd.ts';

const EVERY_MS = 100;

export interface LostLock {
  /** `master`, or `servers/` and the name of a server's incarnation. */
  readonly path: string;
  /** It was held no more, or by another session. */
  readonly atMs: number;
}

export class LockWatch {
  readonly #etcd: Etcd;
  readonly #lost: LostLock[] = [];
  #held: ReadonlyMap<string, string> = new Map();
  #isClosed = false;

  constructor(etcd: Etcd) {
    this.#etcd = etcd;
    void this.#run();
  }

  /** Locks that were lost since then, in the order in which that was seen. */
  lostSince(sinceMs: number): readonly LostLock[] {
    return this.#lost.filter(({ atMs }) => atMs >= sinceMs);
  }

  close(): void {
    this.#isClosed = true;
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const locks = await this.#etcd.locks(PREFIX);
      if (locks !== undefined) {
        const atMs = performance.now();
        for (const [path, session] of this.#held) if (locks.get(path) !== session) this.#lost.push({ path, atMs });
        this.#held = locks;
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}
