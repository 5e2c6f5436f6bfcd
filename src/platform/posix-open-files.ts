/**
 * Open descriptors of write-once files, the most recently read ones kept. A file never changes once it is visible, so its size is
 * asked once.
 *
 * Invariant: a descriptor is closed when it is neither kept nor in use; a read under way always ends on the file it began on.
 */
import { constants } from 'node:fs';
import type { Syscalls } from './posix-syscalls.ts';

export interface OpenFile {
  readonly fd: number;
  readonly sizeBytes: number;
}

interface Slot {
  readonly file: Promise<OpenFile>;
  /** Once it is open. */
  open: OpenFile | undefined;
  users: number;
  kept: boolean;
}

export class OpenFiles {
  readonly #syscalls: Syscalls;
  readonly #most: number;
  /** In order of use, the least recent first. */
  readonly #slots = new Map<string, Slot>();
  /** The one used last. */
  #latest: Slot | undefined;

  constructor(syscalls: Syscalls, most: number) {
    this.#syscalls = syscalls;
    this.#most = most;
  }

  /** Runs `use` on the open file at the absolute path. */
  async use<T>(path: string, use: (file: OpenFile) => Promise<T>): Promise<T> {
    const slot = this.#take(path);
    slot.users++;
    try {
      return await use(await slot.file);
    } finally {
      slot.users--;
      this.#closeUnused(slot);
    }
  }

  /** The file, where it is open already: for a use that ends in the same step. */
  opened(path: string): OpenFile | undefined {
    return this.#slots.has(path) ? this.#take(path).open : undefined;
  }

  /** Gives the descriptor up, at once or when the reads under way have ended. */
  forget(path: string): void {
    const slot = this.#slots.get(path);
    if (!slot) return;
    this.#slots.delete(path);
    slot.kept = false;
    this.#closeUnused(slot);
  }

  forgetAll(): void {
    for (const path of [...this.#slots.keys()]) this.forget(path);
  }

  #take(path: string): Slot {
    const known = this.#slots.get(path);
    if (known) {
      if (known !== this.#latest) {
        this.#slots.delete(path);
        this.#slots.set(path, known);
        this.#latest = known;
      }
      return known;
    }
    const slot: Slot = { file: this.#open(path), open: undefined, users: 0, kept: true };
    this.#slots.set(path, slot);
    this.#latest = slot;
    slot.file.then((file) => (slot.open = file), () => {});
    // a file that could not be opened is tried anew the next time
    slot.file.catch(() => {
      if (this.#slots.get(path) === slot) this.forget(path);
    });
    const [oldest] = this.#slots.keys();
    if (this.#slots.size > this.#most && oldest !== undefined) this.forget(oldest);
    return slot;
  }

  async #open(path: string): Promise<OpenFile> {
    const fd = await this.#syscalls.open(path, constants.O_RDONLY);
    try {
      return { fd, sizeBytes: await this.#syscalls.fileSize(fd) };
    } catch (error) {
      await this.#syscalls.close(fd);
      throw error;
    }
  }

  #closeUnused(slot: Slot): void {
    if (slot.kept || slot.users > 0) return;
    // nothing depends on a read-only descriptor's close, and a file that was never opened has none
    slot.file.then((file) => this.#syscalls.close(file.fd)).catch(() => undefined);
  }
}
