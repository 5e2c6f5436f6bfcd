/** The durable writes of the logs in one directory: synchronous while the disk is quick, else by other threads. */
import { QuickAppends } from './posix-quick-appends.ts';
import type { Syscalls } from './posix-syscalls.ts';

export class DurableWrites {
  readonly #syscalls: Syscalls;
  readonly #nowMs: () => number;
  readonly #quick: QuickAppends;

  constructor(syscalls: Syscalls, nowMs: () => number) {
    this.#syscalls = syscalls;
    this.#nowMs = nowMs;
    this.#quick = new QuickAppends(nowMs);
  }

  /** Writes all buffers, `bytes` in all, and makes them durable. Fails as `writeDurable` of Syscalls does. */
  async write(fd: number, buffers: readonly Uint8Array[], bytes: number, position: number): Promise<void> {
    const { writeDurableNow } = this.#syscalls;
    if (writeDurableNow === undefined || !this.#quick.allows(bytes))
      return this.#syscalls.writeDurable(fd, buffers, position);
    const startMs = this.#nowMs();
    try {
      writeDurableNow(fd, buffers, position);
    } finally {
      this.#quick.took(this.#nowMs() - startMs);
    }
  }
}
