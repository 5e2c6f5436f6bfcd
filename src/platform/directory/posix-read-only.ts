/**
 * A database's directory, read-only: the same files, logs and lock service files as its owner sees, without owning it.
 * No lock is taken, no self-test run, nothing removed and nothing written, so it works next to a running server.
 *
 * Invariants:
 * - Every system call that would change something fails with PERMISSION_DENIED.
 * - Next to a running owner: files are write-once, so a read of them is right or NOT_FOUND; of a log a prefix is read
 *   that was whole at some instant of the reading. A log that is trimmed under the reader ends with UNAVAILABLE, never
 *   with a hole.
 */
import { constants } from 'node:fs';
import { readFile as readSmallFile, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { BigtableError, Code, CorruptionError, notFound, unavailable } from '../../base/index.ts';
import {
  type Checksum,
  type Clock,
  type FileSystem,
  type LastingFile,
  type LogAppend,
  type LogMemo,
  type LogPosition,
  silentLogger,
} from '../../env/index.ts';
import { FORMAT_NAME, parseFormat } from './format-file.ts';
import { lockForReading } from '../locks/directory-lock.ts';
import { FILES, readFile as readLockFile, sortVersions } from '../locks/local-lock-service.ts';
import { LockFileKind } from '../locks/lock-file-format.ts';
import { Directories } from '../posix/posix-directories.ts';
import { errnoOf, systemCall } from '../posix/posix-errors.ts';
import { DirectoryFileSystem } from '../posix/posix-file-system.ts';
import { FENCE_NAME, frameBytes, SEGMENT_HEADER_BYTES, segmentBase } from '../posix/posix-log-format.ts';
import type { LogSetting } from '../posix/posix-log-writer.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';

export interface ReadOnlyOptions {
  readonly checksum: Checksum;
  readonly clock: Clock;
}

export interface LogFiles {
  readonly segments: readonly { readonly name: string; readonly base: LogPosition; readonly sizeBytes: number }[];
  /** True when the log takes no more appends. */
  readonly fenced: boolean;
  /** The position after the last whole append. */
  readonly end: LogPosition;
  /**
   * Bytes after the end, up to the last one that is not zero: the rest of an append that was cut off, or is being
   * written.
   */
  readonly tornBytes: number;
}

export interface ReadOnlyDirectory {
  /** Absolute. */
  readonly directory: string;
  readonly identity: string;
  readonly fileSystem: FileSystem;
  /** The lasting files of the lock service, by path. */
  lockServiceFiles(): Promise<readonly LastingFile[]>;
  /** A log's files on the disk. NOT_FOUND where there is none. */
  logFiles(path: string): Promise<LogFiles>;
  /** Closes open descriptors. */
  close(): Promise<void>;
}

/** Attempts at a read that a running owner may have disturbed. */
const MAX_ATTEMPTS = 5;
const TAIL_WINDOW_BYTES = 1 << 20;

/** The database directory that holds the path (or is it); undefined where there is none above it. */
export async function findDirectory(path: string): Promise<string | undefined> {
  for (let directory = resolve(path); ; directory = dirname(directory)) {
    const found = await stat(join(directory, FORMAT_NAME)).catch(() => undefined);
    if (found?.isFile()) return directory;
    if (dirname(directory) === directory) return undefined;
  }
}

/**
 * Opens the database directory for reading. NOT_FOUND where it is not one, FAILED_PRECONDITION where a later version
 * made it.
 */
export async function openReadOnlyDirectory(path: string, options: ReadOnlyOptions): Promise<ReadOnlyDirectory> {
  const directory = resolve(path);
  const format = join(directory, FORMAT_NAME);
  const identity = parseFormat(await systemCall(directory, readSmallFile(format, 'latin1')), format, 'directory');
  const fileSystem = new ReadOnlyFileSystem(settingOf(new Directories(directory, READ_ONLY, 'none'), options));
  return {
    directory,
    identity,
    fileSystem,
    lockServiceFiles: () => readLockServiceFiles(fileSystem),
    logFiles: (log) => fileSystem.logFiles(log),
    close: () => fileSystem.close(),
  };
}

/**
 * The same while no process writes to it, and keeps writers out. FAILED_PRECONDITION where a process has it open for
 * writing.
 */
export async function openDirectoryToRead(path: string, options: ReadOnlyOptions): Promise<ReadOnlyDirectory> {
  const lock = await lockForReading(resolve(path));
  try {
    const opened = await openReadOnlyDirectory(path, options);
    const close = async (): Promise<void> => {
      try {
        await opened.close();
      } finally {
        await lock.release();
      }
    };
    return { ...opened, close };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** A file system with a single file, which may lie anywhere: its `path` there. */
export function openLoneFile(
  file: string,
  options: ReadOnlyOptions,
): { readonly fileSystem: FileSystem; readonly path: string; close(): Promise<void> } {
  const fileSystem = new ReadOnlyFileSystem(settingOf(new LoneFile(resolve(file)), options));
  const name = basename(file);
  return {
    fileSystem,
    path: /^[A-Za-z0-9._-]+$/.test(name) && !/^\.{1,2}$/.test(name) ? name : 'file',
    close: () => fileSystem.close(),
  };
}

class LoneFile extends Directories {
  readonly #file: string;

  constructor(file: string) {
    super(dirname(file), READ_ONLY, 'none');
    this.#file = file;
  }

  override filePath(): string {
    return this.#file;
  }
}

function settingOf(directories: Directories, { checksum, clock }: ReadOnlyOptions): LogSetting {
  return {
    syscalls: READ_ONLY,
    directories,
    checksum,
    logger: silentLogger,
    segmentBytes: 0,
    pause: () => clock.yield(),
  };
}

async function denied(): Promise<never> {
  throw Object.assign(new Error('the directory is open read-only'), { code: 'EROFS' });
}

const READ_ONLY: Syscalls = Object.freeze({
  open: (path: string, flags: number) => (flags === constants.O_RDONLY ? nodeSyscalls.open(path, flags) : denied()),
  close: nodeSyscalls.close,
  read: nodeSyscalls.read,
  readNow: nodeSyscalls.readNow,
  diskReads: nodeSyscalls.diskReads,
  fileSize: nodeSyscalls.fileSize,
  space: nodeSyscalls.space,
  status: nodeSyscalls.status,
  readdir: nodeSyscalls.readdir,
  openDurable: denied,
  write: denied,
  writeDurable: denied,
  writeDurableNow: undefined,
  truncate: denied,
  datasync: denied,
  sync: denied,
  link: denied,
  rename: denied,
  unlink: denied,
  mkdir: denied,
  rmdir: denied,
} satisfies Syscalls);

class ReadOnlyFileSystem extends DirectoryFileSystem {
  readonly #logSetting: LogSetting;

  constructor(setting: LogSetting) {
    super(setting);
    this.#logSetting = setting;
  }

  /**
   * Reads as the owner does, but while the writer may be at work: a seemingly damaged part is read again, from the last
   * append on.
   */
  override async *readLog(path: string, from: LogPosition = 0, memo?: LogMemo): AsyncIterable<LogAppend> {
    let last: LogPosition | undefined;
    for (let looks = 1; ; looks++) {
      try {
        let isFirst = true;
        for await (const append of super.readLog(path, last ?? from, memo)) {
          const isHole = append.afterTrim || (isFirst && append.position !== last);
          if (isHole && last !== undefined) throw trimmed(path);
          isFirst = false;
          if (append.position === last) continue;
          last = append.position;
          looks = 1;
          yield append;
        }
        return;
      } catch (error) {
        const missing = error instanceof BigtableError && error.code === Code.NOT_FOUND;
        if (missing && last !== undefined) throw trimmed(path, error);
        if (!(missing || error instanceof CorruptionError) || looks >= MAX_ATTEMPTS) throw error;
      }
    }
  }

  async logFiles(path: string): Promise<LogFiles> {
    const { directories, syscalls } = this.#logSetting;
    const directory = directories.logPath(path);
    const entries = await systemCall(path, syscalls.readdir(directory));
    const segments: { name: string; base: LogPosition; sizeBytes: number }[] = [];
    for (const { name } of entries) {
      const base = segmentBase(name);
      if (base === undefined) continue;
      const sizeBytes = await syscalls.fileSize(join(directory, name)).catch((error: unknown) => {
        if (errnoOf(error) === 'ENOENT') throw trimmed(path, error);
        throw error;
      });
      segments.push({ name, base, sizeBytes });
    }
    segments.sort((a, b) => a.base - b.base);
    const fenced = entries.some(({ name }) => name === FENCE_NAME);
    if (segments.length === 0 && !fenced) throw notFound(`log ${path} not found`);
    const newest = segments.at(-1);
    let end = newest?.base ?? 0;
    if (newest)
      for await (const { position, bytes } of this.readLog(path, newest.base))
        end = position + frameBytes(bytes.length);
    // segments that were begun meanwhile are not read: they cannot be torn before this one's end
    const tornBytes = newest
      ? await this.#lastWritten(join(directory, newest.name), end - newest.base + SEGMENT_HEADER_BYTES)
      : 0;
    return { segments, fenced, end, tornBytes };
  }

  /** Bytes from `from` to the file's last one that is not zero. */
  async #lastWritten(file: string, from: number): Promise<number> {
    const { syscalls, pause } = this.#logSetting;
    const fd = await systemCall(file, syscalls.open(file, constants.O_RDONLY));
    try {
      const window = Buffer.allocUnsafe(TAIL_WINDOW_BYTES);
      let end = from;
      for (let at = from; ; ) {
        const got = await syscalls.read(fd, window, 0, window.length, at);
        if (got === 0) return end - from;
        for (let i = got - 1; i >= 0; i--) {
          if (window[i] === 0) continue;
          end = at + i + 1;
          break;
        }
        at += got;
        await pause();
      }
    } finally {
      await syscalls.close(fd);
    }
  }
}

function trimmed(path: string, cause?: unknown): BigtableError {
  return unavailable(`${path}: the log was trimmed or removed by its owner while it was read: read it again`, cause);
}

/**
 * The newest of the lock service's files, by path. A file that vanishes while they are read has been replaced: they are
 * listed again.
 */
async function readLockServiceFiles(fileSystem: FileSystem): Promise<LastingFile[]> {
  for (let looks = 1; ; looks++) {
    try {
      const { newest } = sortVersions(await fileSystem.list(FILES));
      const files: LastingFile[] = [];
      for (const info of newest) {
        const { kind, path, contents, version } = await readLockFile(fileSystem, info);
        if (kind === LockFileKind.contents) files.push({ path, contents, version });
      }
      return files.sort((a, b) => (a.path < b.path ? -1 : 1));
    } catch (error) {
      if (!(error instanceof BigtableError && error.code === Code.NOT_FOUND) || looks >= MAX_ATTEMPTS) throw error;
    }
  }
}
