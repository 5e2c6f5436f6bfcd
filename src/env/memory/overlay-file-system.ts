/**
 * A file system over another one that is only read: created files lie in memory, deleted ones are only hidden.
 *
 * Invariants: nothing below is ever created, changed or deleted. A path is in memory or below, never both: a path that
 * exists below cannot be created again, even after its deletion here.
 */
import { BigtableError, Code, notFound } from '../../base/index.ts';
import { checkFilePath } from '../seams/file-path.ts';
import type {
  FileInfo,
  FileSystem,
  FileWriter,
  LogAppend,
  LogMemo,
  LogPosition,
  LogWriter,
} from '../seams/file-system.ts';
import { MemoryFileSystem } from './memory-file-system.ts';

export class OverlayFileSystem implements FileSystem {
  readonly #below: FileSystem;
  readonly #memory = new MemoryFileSystem();
  /** Created here. */
  readonly #ownFiles = new Set<string>();
  readonly #ownLogs = new Set<string>();
  /** Deleted files of the file system below. */
  readonly #deletedFiles = new Set<string>();
  readonly #deletedLogs = new Set<string>();

  constructor(below: FileSystem) {
    this.#below = below;
  }

  async create(path: string): Promise<FileWriter> {
    checkFilePath(path);
    if (!this.#ownFiles.has(path) && (await this.#isBelow(path))) throw exists(path, 'file');
    const writer = await this.#memory.create(path);
    this.#ownFiles.add(path);
    return writer;
  }

  async size(path: string): Promise<number> {
    return this.#filesOf(path).size(path);
  }

  async read(path: string, offset: number, length: number): Promise<Buffer> {
    return this.#filesOf(path).read(path, offset, length);
  }

  readNow(path: string, offset: number, length: number, into?: Buffer): Buffer | undefined {
    if (this.#ownFiles.has(path) || this.#deletedFiles.has(path)) return undefined;
    return this.#below.readNow?.(path, offset, length, into);
  }

  async list(prefix: string): Promise<FileInfo[]> {
    const below = (await this.#below.list(prefix)).filter(({ path }) => !this.#deletedFiles.has(path));
    return [...below, ...(await this.#memory.list(prefix))].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async delete(path: string): Promise<void> {
    if (this.#ownFiles.has(path)) await this.#memory.delete(path);
    else this.#deletedFiles.add(path);
  }

  async openLog(path: string): Promise<LogWriter> {
    checkFilePath(path);
    if (!this.#ownLogs.has(path) && (await this.#below.listLogs(path)).includes(path)) throw exists(path, 'log');
    const writer = await this.#memory.openLog(path);
    this.#ownLogs.add(path);
    return writer;
  }

  /** A log below has no writer. */
  async fence(path: string): Promise<void> {
    checkFilePath(path);
    if (!this.#ownLogs.has(path) && (await this.#below.listLogs(path)).includes(path)) return;
    await this.#memory.fence(path);
    this.#ownLogs.add(path);
  }

  async *readLog(path: string, from?: LogPosition, memo?: LogMemo): AsyncIterable<LogAppend> {
    if (this.#deletedLogs.has(path)) return;
    yield* (this.#ownLogs.has(path) ? this.#memory : this.#below).readLog(path, from, memo);
  }

  async listLogs(prefix: string): Promise<string[]> {
    const below = (await this.#below.listLogs(prefix)).filter((path) => !this.#deletedLogs.has(path));
    return [...below, ...(await this.#memory.listLogs(prefix))].sort();
  }

  async deleteLog(path: string): Promise<void> {
    if (this.#ownLogs.has(path)) await this.#memory.deleteLog(path);
    else this.#deletedLogs.add(path);
  }

  #filesOf(path: string): FileSystem {
    if (this.#deletedFiles.has(path)) throw notFound(`${path}: no such file`);
    return this.#ownFiles.has(path) ? this.#memory : this.#below;
  }

  async #isBelow(path: string): Promise<boolean> {
    try {
      await this.#below.size(path);
      return true;
    } catch (error) {
      if (error instanceof BigtableError && error.code === Code.NOT_FOUND) return false;
      throw error;
    }
  }
}

function exists(path: string, what: string): BigtableError {
  return new BigtableError(Code.ALREADY_EXISTS, `${path}: the ${what} exists`);
}
