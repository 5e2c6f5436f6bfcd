/**
 * The room that is reserved for the slots of one row: a file of zeros, which shrinks by what a creation needs when the
 * storage is full.
 *
 * Invariant: the file has room for all that is reserved, in as many slots as one reservation can become. Another
 * program that writes to the storage in the instant between the shrinking and the creation may take it all the same;
 * then the creation is tried again, and fails with UNAVAILABLE when nothing of the file is left.
 */
import { constants } from 'node:fs';
import { APPEND_OVERHEAD_BYTES } from '../../env/index.ts';
import { systemCall } from '../posix/posix-errors.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';

const BLOCK_BYTES = 4096;
const SPARE_BLOCKS = 4;
const ZEROS = Buffer.alloc(1 << 20);

export interface SlotRoomOptions {
  readonly path: string;
  readonly syscalls: Syscalls;
  /** Slots that one reservation is divided into at most. */
  readonly maxSlots: number;
}

export class SlotRoom {
  readonly #options: SlotRoomOptions;
  /** What creations may still take. */
  #reservedBytes = 0;
  /** Size of the file, whole blocks. */
  #sizeBytes = 0;
  #fd: number | undefined;
  /** Changes of the file come one after another. */
  #change: Promise<unknown> = Promise.resolve();

  constructor(options: SlotRoomOptions) {
    this.#options = options;
  }

  /** Makes what is reserved at least `bytes`. RESOURCE_EXHAUSTED: nothing has changed. */
  reserve(bytes: number): Promise<void> {
    return this.#inTurn(async () => {
      if (bytes <= this.#reservedBytes) return;
      await this.#growTo(this.#fileBytes(bytes));
      this.#reservedBytes = bytes;
    });
  }

  /** A slot of that size was created. */
  take(bytes: number): void {
    this.#reservedBytes = Math.max(0, this.#reservedBytes - bytes);
  }

  /** Returns to the storage what a slot of that size needs; false, if nothing is left. */
  giveBack(bytes: number): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#sizeBytes === 0) return false;
      await this.#truncate(Math.max(0, this.#sizeBytes - blocks(bytes)));
      return true;
    });
  }

  /** Removes the file. */
  remove(): Promise<void> {
    return this.#inTurn(async () => {
      const fd = this.#fd;
      this.#fd = undefined;
      this.#sizeBytes = 0;
      this.#reservedBytes = 0;
      if (fd !== undefined) await this.#options.syscalls.close(fd);
      await this.#options.syscalls.unlink(this.#options.path).catch(() => undefined);
    });
  }

  /** A slot takes whole blocks, and names may take some. */
  #fileBytes(reservedBytes: number): number {
    const slots = Math.min(Math.ceil(reservedBytes / APPEND_OVERHEAD_BYTES), this.#options.maxSlots);
    return blocks(reservedBytes) + BLOCK_BYTES * (slots + SPARE_BLOCKS);
  }

  async #growTo(sizeBytes: number): Promise<void> {
    if (sizeBytes <= this.#sizeBytes) return;
    const { path, syscalls } = this.#options;
    const before = this.#sizeBytes;
    try {
      this.#fd ??= await syscalls.open(path, constants.O_RDWR | constants.O_CREAT);
      for (let at = before; at < sizeBytes; at += ZEROS.length)
        await syscalls.write(this.#fd, [ZEROS.subarray(0, Math.min(ZEROS.length, sizeBytes - at))], at);
      // a network's file system may learn only now that there is no room
      await syscalls.datasync(this.#fd);
      this.#sizeBytes = sizeBytes;
    } catch (error) {
      if (this.#fd !== undefined) await syscalls.truncate(this.#fd, before).catch(() => undefined);
      await systemCall(`reserving room in ${path}`, Promise.reject(error));
    }
  }

  async #truncate(sizeBytes: number): Promise<void> {
    const { path, syscalls } = this.#options;
    await systemCall(`returning room of ${path}`, syscalls.truncate(this.#fd!, sizeBytes));
    this.#sizeBytes = sizeBytes;
    // some file systems reuse blocks only after that
    await systemCall(`returning room of ${path}`, syscalls.sync(this.#fd!));
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#change.then(change);
    this.#change = changed.catch(() => undefined);
    return changed;
  }
}

function blocks(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}
