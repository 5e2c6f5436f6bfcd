/**
 * The file system in a directory that this process alone owns (directory.ts takes the lock): write-once files by
 * link(), logs as preallocated segments. Formats: docs/formats/directory.md, docs/formats/log-file.md.
 *
 * Invariant: every promise of env's file-system.ts, against loss of power too, as far as the disk keeps what a sync
 * promises.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert, BigtableError, Code } from '../../base/index.ts';
import {
  type Checksum,
  type Clock,
  checkFilePath,
  type FileInfo,
  type FileSystem,
  type FileWriter,
  type Logger,
  type LogAppend,
  type LogMemo,
  type LogPosition,
  type LogWriter,
  silentLogger,
  type StorageSpace,
} from '../../env/index.ts';
import { Directories } from './posix-directories.ts';
import { errnoOf, isMissing, systemCall, systemError } from './posix-errors.ts';
import { PosixFileWriter } from './posix-files.ts';
import { listFilesOf } from './posix-listing.ts';
import { FENCE_NAME, NONCE_BYTES } from './posix-log-format.ts';
import { findLogTail, readLogSegments, SMALL_CHUNK_BYTES } from './posix-log-reader.ts';
import { type LogSetting, type LogWriterSetting, PosixLogWriter } from './posix-log-writer.ts';
import { DurableWrites } from './posix-durable-writes.ts';
import { OpenFiles, readOpenFile } from './posix-open-files.ts';
import { posixSelfTest } from './posix-self-test.ts';
import { QuickReads } from './posix-quick-reads.ts';
import { nodeSyscalls, type Syscalls } from './posix-syscalls.ts';

export interface PosixOptions {
  readonly checksum: Checksum;
  /** For pauses between slices of long work. Default: the event loop's own turns. */
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly syscalls?: Syscalls;
  /** Size at which a segment of a log ends. Default 16 MiB; at least one page. */
  readonly logSegmentBytes?: number;
  /** Write-once files that are kept open for reads. Default 256. */
  readonly maxOpenFiles?: number;
}

export type PosixFileSystem = FileSystem & {
  /** Closes descriptors and logs once the calls under way have ended. No call may follow. */
  close(): Promise<void>;
};

const LOG_SEGMENT_BYTES = 16 << 20;
const MAX_OPEN_FILES = 256;
const PAGE_BYTES = 4096;
const systemNowMs = (): number => performance.now();

/**
 * Opens the file system in an existing directory, removes unfinished files of an earlier owner, and runs the self-test.
 */
export async function openPosixFileSystem(directory: string, options: PosixOptions): Promise<PosixFileSystem> {
  const { syscalls = nodeSyscalls, logger = silentLogger, logSegmentBytes = LOG_SEGMENT_BYTES, clock } = options;
  assert(
    logSegmentBytes >= 4096 && logSegmentBytes % 4096 === 0,
    `invalid segment size ${logSegmentBytes}: expected whole pages`,
  );
  const directories = new Directories(directory, syscalls, randomBytes(NONCE_BYTES).toString('hex'));
  const pause = clock ? () => clock.yield() : () => new Promise<void>((resolve) => setImmediate(resolve));
  const setting: LogSetting = {
    syscalls,
    directories,
    checksum: options.checksum,
    logger,
    segmentBytes: logSegmentBytes,
    pause,
  };
  await systemCall(`opening ${directory}`, prepare(syscalls, directories, logger));
  const nowMs = clock && (() => clock.monotonicMs());
  return new DirectoryFileSystem(setting, { nowMs, maxOpenFiles: options.maxOpenFiles });
}

/**
 * The file system of a directory that another thread of this process owns and has opened, for a thread of its own. All
 * see the same files; each log belongs to the thread that opened it, and is touched by no other while that thread
 * lives.
 */
export function shareFiles(
  directory: string,
  options: Pick<PosixOptions, 'checksum' | 'logger' | 'maxOpenFiles'> & { readonly clock: Clock },
): PosixFileSystem {
  const { checksum, clock, logger = silentLogger } = options;
  const directories = new Directories(directory, nodeSyscalls, randomBytes(NONCE_BYTES).toString('hex'));
  const pause = (): Promise<void> => clock.yield();
  return new DirectoryFileSystem(
    {
      syscalls: nodeSyscalls,
      directories,
      checksum,
      logger,
      segmentBytes: LOG_SEGMENT_BYTES,
      pause,
    },
    { nowMs: () => clock.monotonicMs(), maxOpenFiles: options.maxOpenFiles },
  );
}

async function prepare(syscalls: Syscalls, directories: Directories, logger: Logger): Promise<void> {
  const temporary = dirname(directories.temporaryPath());
  for (const path of [temporary, directories.filePath(''), directories.logPath('')]) await directories.ensure(path);
  const leftovers = await syscalls.readdir(temporary);
  for (const entry of leftovers) await directories.removeTree(join(temporary, entry.name), entry.isDirectory);
  if (leftovers.length > 0)
    logger.info('removed unfinished files of an earlier owner', {
      directory: directories.root,
      count: leftovers.length,
    });
  await directories.removeEmpty(directories.filePath(''));
  await directories.removeEmpty(directories.logPath(''));
  await posixSelfTest(syscalls, directories);
}

interface DirectoryOptions {
  /** A monotonic clock: it times reads and appends. Default: the system's. */
  readonly nowMs?: (() => number) | undefined;
  readonly maxOpenFiles?: number | undefined;
}

/** `openPosixFileSystem` makes it, and for reading alone posix-read-only.ts. */
export class DirectoryFileSystem implements FileSystem {
  readonly #setting: LogWriterSetting;
  readonly #syscalls: Syscalls;
  readonly #directories: Directories;
  readonly #openFiles: OpenFiles;
  readonly #quickReads: QuickReads;
  /** The logs that were opened here and not deleted, by path. */
  readonly #writers = new Map<string, PosixLogWriter>();

  constructor(setting: LogSetting, { nowMs = systemNowMs, maxOpenFiles = MAX_OPEN_FILES }: DirectoryOptions = {}) {
    this.#setting = { ...setting, durableWrites: new DurableWrites(setting.syscalls, nowMs) };
    this.#quickReads = new QuickReads(nowMs, () => setting.syscalls.diskReads());
    this.#syscalls = setting.syscalls;
    this.#directories = setting.directories;
    this.#openFiles = new OpenFiles(setting.syscalls, (path) => setting.directories.filePath(path), maxOpenFiles);
  }

  async create(path: string): Promise<FileWriter> {
    checkFilePath(path);
    return await PosixFileWriter.create(this.#syscalls, this.#directories, path);
  }

  async size(path: string): Promise<number> {
    checkFilePath(path);
    return await systemCall(path, this.#syscalls.fileSize(this.#directories.filePath(path)));
  }

  async read(path: string, offset: number, length: number): Promise<Buffer> {
    checkFilePath(path);
    try {
      return await this.#openFiles.use(path, (file) => readOpenFile(this.#syscalls, file, path, offset, length));
    } catch (error) {
      throw systemError(error, path);
    }
  }

  readNow(path: string, offset: number, length: number, into?: Buffer): Buffer | undefined {
    const file = this.#openFiles.opened(path);
    if (file === undefined || !(offset >= 0 && length >= 0 && offset + length <= file.sizeBytes)) return undefined;
    return this.#quickReads.run(
      () => withMappedPages(into ?? Buffer.allocUnsafe(length)),
      (bytes) => {
        try {
          return this.#syscalls.readNow(file.fd, bytes, 0, length, offset) === length ? bytes : undefined;
        } catch {
          return undefined;
        }
      },
    );
  }

  async space(): Promise<StorageSpace | undefined> {
    return await systemCall('the space of the disk', this.#syscalls.space(this.#directories.root));
  }

  list(prefix: string): Promise<FileInfo[]> {
    const directories = this.#directories;
    const sizeOf = (path: string): Promise<number> => this.#syscalls.fileSize(directories.filePath(path));
    return listFilesOf(directories.walk(directories.filePath(''), prefix), prefix, sizeOf);
  }

  async delete(path: string): Promise<void> {
    checkFilePath(path);
    try {
      // not synced: a file that comes back after a loss of power is one that nothing lists
      await this.#syscalls.unlink(this.#directories.filePath(path));
    } catch (error) {
      if (!isMissing(error)) throw systemError(error, `deleting ${path}`);
    } finally {
      this.#openFiles.evict(path);
    }
  }

  async openLog(path: string): Promise<LogWriter> {
    checkFilePath(path);
    let writer: PosixLogWriter | undefined;
    try {
      const placed = await this.#makeLog(path, async (directory) => {
        writer = await PosixLogWriter.create(this.#setting, path, directory, randomBytes(NONCE_BYTES));
        return writer;
      });
      if (!placed) throw new BigtableError(Code.ALREADY_EXISTS, `${path}: the log exists already`);
      this.#writers.set(path, placed);
      return placed;
    } catch (error) {
      await writer?.close();
      throw error;
    }
  }

  async fence(path: string): Promise<void> {
    checkFilePath(path);
    await this.#writers.get(path)?.endWith('the log is fenced');
    // where there is no log its name is taken, so that a late writer does not find it free
    if (await this.#makeLog(path, (directory) => this.#makeFence(join(directory, FENCE_NAME)).then(() => true))) return;
    await this.#writers.get(path)?.endWith('the log is fenced');
    const temporary = this.#directories.temporaryPath();
    const directory = this.#directories.logPath(path);
    try {
      await this.#makeFence(temporary);
      await this.#directories.link(temporary, join(directory, FENCE_NAME)).catch((error: unknown) => {
        if (errnoOf(error) !== 'EEXIST') throw error;
      });
      // also where it exists already: its maker may have failed between the two calls
      await this.#directories.sync(directory);
    } catch (error) {
      throw systemError(error, `fencing ${path}`);
    }
  }

  async *readLog(path: string, from: LogPosition = 0, memo?: LogMemo): AsyncIterable<LogAppend> {
    checkFilePath(path);
    try {
      const chunkBytes = memo === undefined ? undefined : SMALL_CHUNK_BYTES;
      yield* readLogSegments(this.#setting, path, from, () => this.#writers.get(path)?.end, chunkBytes);
    } catch (error) {
      throw systemError(error, `reading ${path}`);
    }
  }

  async logTail(path: string): Promise<LogPosition> {
    checkFilePath(path);
    try {
      return await findLogTail(this.#setting, path);
    } catch (error) {
      throw systemError(error, `reading ${path}`);
    }
  }

  async listLogs(prefix: string): Promise<string[]> {
    const base = this.#directories.logPath('');
    const found: string[] = [];
    try {
      for await (const { directory, files } of this.#directories.walk(base, prefix)) {
        if (files.length > 0 && directory.startsWith(prefix)) found.push(directory);
      }
      return found.sort();
    } catch (error) {
      throw systemError(error, `listing logs ${prefix}`);
    }
  }

  async deleteLog(path: string): Promise<void> {
    checkFilePath(path);
    const directory = this.#directories.logPath(path);
    const grave = this.#directories.temporaryPath();
    const writer = this.#writers.get(path);
    try {
      await writer?.endWith('the log was deleted');
      const entries = await this.#syscalls.readdir(directory);
      if (!entries.some((entry) => !entry.isDirectory)) return;
      // by one rename, so that no part of it is ever found
      await this.#syscalls.rename(directory, grave);
      this.#writers.delete(path);
      await this.#directories.sync(dirname(directory));
      await writer?.close();
      await this.#directories.removeTree(grave);
    } catch (error) {
      if (!isMissing(error)) throw systemError(error, `deleting ${path}`);
    }
  }

  async close(): Promise<void> {
    for (const writer of this.#writers.values()) await writer.close();
    this.#writers.clear();
    this.#openFiles.evictAll();
  }

  /** Lets `make` fill a directory and renames it to the log's name; undefined where there is such a log. */
  async #makeLog<T>(path: string, make: (directory: string) => Promise<T>): Promise<T | undefined> {
    const directory = this.#directories.logPath(path);
    const temporary = this.#directories.temporaryPath();
    try {
      await this.#directories.ensure(dirname(directory));
      await this.#syscalls.mkdir(temporary);
      const made = await make(temporary);
      await this.#directories.sync(temporary);
      await this.#syscalls.rename(temporary, directory);
      await this.#directories.sync(dirname(directory));
      return made;
    } catch (error) {
      await this.#directories.removeTree(temporary).catch(() => undefined);
      if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'EEXIST') return undefined;
      throw systemError(error, `making ${path}`);
    }
  }

  async #makeFence(path: string): Promise<void> {
    const fd = await this.#syscalls.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL);
    try {
      await this.#syscalls.sync(fd);
    } finally {
      await this.#syscalls.close(fd);
    }
  }
}

/**
 * The buffer with its pages mapped: the system maps pages on the first write to them, which may take as long as a read
 * from disk and would be mistaken for one.
 */
function withMappedPages(bytes: Buffer): Buffer {
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) bytes[at] = 0;
  return bytes;
}
