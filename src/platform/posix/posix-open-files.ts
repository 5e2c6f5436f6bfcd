/**
 * Open descriptors of write-once files, the most recently read ones kept. A file never changes once it is visible, so
 * its size is read once. Files are keyed by the name strings that their readers hold: hot path, no string is made for a
 * read.
 *
 * Invariant: a descriptor is closed when it is neither kept nor in use; a read under way always ends on the file it
 * began on.
 */
import { constants } from 'node:fs';
import { BigtableError, Code } from '../../base/index.ts';
import { isOutOfDescriptors } from './posix-errors.ts';
import type { Syscalls } from './posix-syscalls.ts';

export interface OpenFile {
  readonly fd: number;
  readonly sizeBytes: number;
}

interface Slot {
  readonly file: Promise<OpenFile>;
  /** The file, once it is open. */
  open: OpenFile | undefined;
  users: number;
  kept: boolean;
  /** Grows with each use of any file. */
  usedAt: number;
}

export class OpenFiles {
  readonly #syscalls: Syscalls;
  readonly #pathOf: (name: string) => string;
  readonly #most: number;
  readonly #slots = new Map<string, Slot>();
  #uses = 0;

  /** `pathOf`: the absolute path of the file of a name. `most`: descriptors that are kept at most. */
  constructor(syscalls: Syscalls, pathOf: (name: string) => string, most: number) {
    this.#syscalls = syscalls;
    this.#pathOf = pathOf;
    this.#most = most;
  }

  /** Runs `use` on the open file. */
  async use<T>(name: string, use: (file: OpenFile) => Promise<T>): Promise<T> {
    const slot = this.#take(name);
    slot.users++;
    try {
      return await use(await slot.file);
    } finally {
      slot.users--;
      this.#closeUnused(slot);
    }
  }

  /** The file, where it is open already: for a synchronous use. */
  opened(name: string): OpenFile | undefined {
    const slot = this.#slots.get(name);
    if (slot === undefined) return undefined;
    slot.usedAt = ++this.#uses;
    return slot.open;
  }

  /** Closes the descriptor, now or when the reads under way have ended. */
  evict(name: string): void {
    const slot = this.#slots.get(name);
    if (!slot) return;
    this.#slots.delete(name);
    slot.kept = false;
    this.#closeUnused(slot);
  }

  evictAll(): void {
    for (const name of [...this.#slots.keys()]) this.evict(name);
  }

  #take(name: string): Slot {
    let slot = this.#slots.get(name);
    if (slot) {
      slot.usedAt = ++this.#uses;
      return slot;
    }
    if (this.#slots.size >= this.#most) this.#evictLeastRecent();
    slot = { file: this.#open(this.#pathOf(name)), open: undefined, users: 0, kept: true, usedAt: ++this.#uses };
    this.#slots.set(name, slot);
    this.#watch(name, slot);
    return slot;
  }

  #watch(name: string, slot: Slot): void {
    slot.file.then(
      (file) => (slot.open = file),
      () => {
        // a file that could not be opened is tried anew the next time
        if (this.#slots.get(name) === slot) this.evict(name);
      },
    );
  }

  /** A walk over all of them is cheap compared with opening a file. */
  #evictLeastRecent(): void {
    let oldest: string | undefined;
    let usedAt = Number.POSITIVE_INFINITY;
    for (const [name, slot] of this.#slots) if (slot.usedAt < usedAt) [oldest, usedAt] = [name, slot.usedAt];
    if (oldest !== undefined) this.evict(oldest);
  }

  async #open(path: string): Promise<OpenFile> {
    const fd = await this.#descriptorOf(path);
    try {
      return { fd, sizeBytes: await this.#syscalls.fileSize(fd) };
    } catch (error) {
      await this.#syscalls.close(fd);
      throw error;
    }
  }

  /** Where the process has no descriptor left, closes one that is kept and not in use. */
  async #descriptorOf(path: string): Promise<number> {
    try {
      return await this.#syscalls.open(path, constants.O_RDONLY);
    } catch (error) {
      if (!isOutOfDescriptors(error) || !(await this.#closeLeastRecent())) throw error;
      return this.#syscalls.open(path, constants.O_RDONLY);
    }
  }

  /** True when there was an unused descriptor. */
  async #closeLeastRecent(): Promise<boolean> {
    let oldest: { readonly name: string; readonly slot: Slot; readonly fd: number } | undefined;
    for (const [name, slot] of this.#slots) {
      if (slot.open === undefined || slot.users > 0 || (oldest && oldest.slot.usedAt < slot.usedAt)) continue;
      oldest = { name, slot, fd: slot.open.fd };
    }
    if (oldest === undefined) return false;
    this.#slots.delete(oldest.name);
    await this.#syscalls.close(oldest.fd);
    return true;
  }

  #closeUnused(slot: Slot): void {
    if (slot.kept || slot.users > 0) return;
    // nothing depends on a read-only descriptor's close, and a file that was never opened has none
    slot.file.then((file) => this.#syscalls.close(file.fd)).catch(() => undefined);
  }
}

/** Exactly `length` bytes of the file `path`; OUT_OF_RANGE where it is shorter. */
export async function readOpenFile(
  syscalls: Pick<Syscalls, 'read'>,
  { fd, sizeBytes }: OpenFile,
  path: string,
  offset: number,
  length: number,
): Promise<Buffer> {
  // before the buffer is made: a wrong length must not allocate memory
  if (!(offset >= 0 && length >= 0 && offset + length <= sizeBytes)) throw outOfRange(path, offset, length, sizeBytes);
  const bytes = Buffer.allocUnsafe(length);
  for (let got = 0; got < length; ) {
    const n = await syscalls.read(fd, bytes, got, length - got, offset + got);
    if (n === 0) throw outOfRange(path, offset, length, offset + got);
    got += n;
  }
  return bytes;
}

function outOfRange(path: string, offset: number, length: number, sizeBytes: number): BigtableError {
  return new BigtableError(Code.OUT_OF_RANGE, `${path}: bytes ${offset} to ${offset + length} of ${sizeBytes}`);
}
