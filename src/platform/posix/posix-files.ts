/**
 * Write-once files: written under a temporary name, made durable, then given their name by link(), which never
 * replaces.
 *
 * Invariant: the name exists only when the bytes are durable, and `close` resolves only when the name is durable too.
 */
import { constants } from 'node:fs';
import { assert, BigtableError, Code } from '../../base/index.ts';
import type { FileWriter } from '../../env/index.ts';
import type { Directories } from './posix-directories.ts';
import { errnoOf, systemCall } from './posix-errors.ts';
import type { Syscalls } from './posix-syscalls.ts';

/** Where files get their names. */
export type FileNames = Pick<Directories, 'temporaryPath' | 'filePath' | 'publish'>;

/** A large append is written in slices, so that none holds a thread of the pool for long. */
const SLICE_BYTES = 4 << 20;

export class PosixFileWriter implements FileWriter {
  readonly #syscalls: Syscalls;
  readonly #names: FileNames;
  readonly #path: string;
  readonly #temporary: string;
  readonly #fd: number;
  #sizeBytes = 0;
  #busy = false;
  #ended = false;
  #failed = false;

  private constructor(syscalls: Syscalls, names: FileNames, path: string, temporary: string, fd: number) {
    this.#syscalls = syscalls;
    this.#names = names;
    this.#path = path;
    this.#temporary = temporary;
    this.#fd = fd;
  }

  static async create(syscalls: Syscalls, names: FileNames, path: string): Promise<PosixFileWriter> {
    const temporary = names.temporaryPath();
    const fd = await systemCall(
      `creating ${path}`,
      syscalls.open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL),
    );
    return new PosixFileWriter(syscalls, names, path, temporary, fd);
  }

  async append(bytes: Uint8Array): Promise<void> {
    assert(!this.#ended && !this.#busy, `${this.#path}: an append after the end, or two concurrent ones`);
    this.#busy = true;
    try {
      for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
        const slice = bytes.subarray(at, at + SLICE_BYTES);
        await systemCall(`writing ${this.#path}`, this.#syscalls.write(this.#fd, [slice], this.#sizeBytes));
        this.#sizeBytes += slice.length;
      }
    } catch (error) {
      this.#failed = true;
      throw error;
    } finally {
      this.#busy = false;
    }
  }

  async close(): Promise<void> {
    assert(!this.#ended && !this.#busy, `${this.#path}: ended twice, or within an append`);
    if (this.#failed) {
      await this.abort();
      throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#path}: an earlier write failed`);
    }
    this.#ended = true;
    try {
      await this.#makeDurable();
    } catch (error) {
      await this.#syscalls.unlink(this.#temporary).catch(() => undefined);
      throw error;
    }
    try {
      await this.#names.publish(this.#temporary, this.#names.filePath(this.#path));
    } catch (error) {
      if (errnoOf(error) === 'EEXIST')
        throw new BigtableError(Code.ALREADY_EXISTS, `${this.#path}: the file exists already`, { cause: error });
      await systemCall(`naming ${this.#path}`, Promise.reject(error));
    }
  }

  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await systemCall(`aborting ${this.#path}`, this.#syscalls.close(this.#fd));
    await systemCall(`aborting ${this.#path}`, this.#removeTemporary());
  }

  async #removeTemporary(): Promise<void> {
    await this.#syscalls.unlink(this.#temporary).catch((error: unknown) => {
      // it is gone: it was old, or the answer to an earlier attempt was lost
      if (errnoOf(error) !== 'ENOENT') throw error;
    });
  }

  async #makeDurable(): Promise<void> {
    try {
      await systemCall(`syncing ${this.#path}`, this.#syscalls.sync(this.#fd));
      const sizeBytes = await systemCall(`sizing ${this.#path}`, this.#syscalls.fileSize(this.#fd));
      assert(
        sizeBytes === this.#sizeBytes,
        `${this.#path}: ${this.#sizeBytes} bytes were written, the file has ${sizeBytes}`,
      );
    } finally {
      await systemCall(`closing ${this.#path}`, this.#syscalls.close(this.#fd));
    }
  }
}
