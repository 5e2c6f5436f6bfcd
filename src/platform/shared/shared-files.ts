/**
 * The write-once files of a directory that many machines share.
 *
 * Invariant: those of file-system.ts, for all machines together. A file that another machine has deleted may be read
 * for as long as this one has it open.
 */
import { dirname } from 'node:path';
import { checkFilePath, type FileInfo, type FileWriter, type StoredFiles } from '../../env/index.ts';
import { errnoOf, isMissing, systemCall, systemError } from '../posix/posix-errors.ts';
import { PosixFileWriter } from '../posix/posix-files.ts';
import { listFilesOf } from '../posix/posix-listing.ts';
import { OpenFiles, readOpenFile } from '../posix/posix-open-files.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';
import type { SharedNames } from './shared-names.ts';

export class SharedFiles implements StoredFiles {
  readonly #names: SharedNames;
  readonly #syscalls: Syscalls;
  readonly #openFiles: OpenFiles;

  constructor(names: SharedNames, syscalls: Syscalls, maxOpenFiles: number) {
    this.#names = names;
    this.#syscalls = syscalls;
    this.#openFiles = new OpenFiles(syscalls, (path) => names.filePath(path), maxOpenFiles);
  }

  async create(path: string): Promise<FileWriter> {
    checkFilePath(path);
    return await PosixFileWriter.create(this.#syscalls, this.#names, path);
  }

  async size(path: string): Promise<number> {
    checkFilePath(path);
    return await systemCall(path, this.#syscalls.fileSize(this.#names.filePath(path)));
  }

  async read(path: string, offset: number, length: number): Promise<Buffer> {
    checkFilePath(path);
    const read = (): Promise<Buffer> =>
      this.#openFiles.use(path, (file) => readOpenFile(this.#syscalls, file, path, offset, length));
    try {
      return await read().catch((error: unknown) => {
        // NFS: another machine has deleted the file that is open here
        if (errnoOf(error) !== 'ESTALE') throw error;
        this.#openFiles.evict(path);
        return read();
      });
    } catch (error) {
      throw systemError(error, path);
    }
  }

  list(prefix: string): Promise<FileInfo[]> {
    const names = this.#names;
    const sizeOf = (path: string): Promise<number> => this.#syscalls.fileSize(names.filePath(path));
    return listFilesOf(names.walk(names.filePath(''), prefix), prefix, sizeOf);
  }

  async delete(path: string): Promise<void> {
    checkFilePath(path);
    const file = this.#names.filePath(path);
    try {
      await this.#syscalls.unlink(file);
      // not synced: a file that comes back after a loss of power is one that nothing lists
      await this.#names.afterDeletion(dirname(file), false);
    } catch (error) {
      if (!isMissing(error)) throw systemError(error, `deleting ${path}`);
    } finally {
      this.#openFiles.evict(path);
    }
  }

  /** Closes what is open once the reads under way have ended. */
  close(): void {
    this.#openFiles.evictAll();
  }
}
