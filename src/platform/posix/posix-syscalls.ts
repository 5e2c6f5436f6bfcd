/**
 * The system calls that the POSIX adapter is made of, as one object, so that a test can delay, count and fail each of
 * them. The default is Node's own `fs`.
 *
 * Durable writes are one call: on Linux a write to a descriptor opened with O_DSYNC, elsewhere a write and an fdatasync
 * (on macOS O_DSYNC does not reach the drive, Node's fdatasync does). Figures: docs/decisions/0004-log-segments.md.
 */
import * as fs from 'node:fs';
import type { StorageSpace } from '../../env/index.ts';

export interface DirectoryEntry {
  readonly name: string;
  readonly isDirectory: boolean;
}

export interface FileStatus {
  /** Names of the file. */
  readonly links: number;
  /** When it was last written to, by the clock of the storage. */
  readonly modifiedMs: number;
}

export interface Syscalls {
  /** A new file is its owner's alone (mode 0600). */
  open(path: string, flags: number): Promise<number>;
  /** Opens an existing file for `writeDurable`. */
  openDurable(path: string): Promise<number>;
  close(fd: number): Promise<void>;
  /** Bytes read, fewer than `length` only at the end of the file. */
  read(fd: number, into: Buffer, offset: number, length: number, position: number): Promise<number>;
  /** The same synchronously. */
  readNow(fd: number, into: Buffer, offset: number, length: number, position: number): number;
  /** Grows when the process has read from a disk; 0 as long as it has not, or where the system does not say. */
  diskReads(): number;
  /** Writes all buffers one after another. */
  write(fd: number, buffers: readonly Uint8Array[], position: number): Promise<void>;
  /** Writes all buffers and makes them durable, inside the file's size. */
  writeDurable(fd: number, buffers: readonly Uint8Array[], position: number): Promise<void>;
  /** The same synchronously; undefined where that takes more than one call. */
  readonly writeDurableNow: ((fd: number, buffers: readonly Uint8Array[], position: number) => void) | undefined;
  /** Sets a file's size; added bytes read as zeros and take no space. */
  truncate(fd: number, sizeBytes: number): Promise<void>;
  /** Makes a file's bytes and size durable. */
  datasync(fd: number): Promise<void>;
  /** Makes a file or a directory durable with all its metadata. */
  sync(fd: number): Promise<void>;
  fileSize(of: string | number): Promise<number>;
  status(path: string): Promise<FileStatus>;
  /** The space of the disk on which the path is, for this process. */
  space(path: string): Promise<StorageSpace>;
  link(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Makes a directory that is its owner's alone (mode 0700). */
  mkdir(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  readdir(path: string): Promise<DirectoryEntry[]>;
}

/** Only the user of the process may read a database, whatever the umask: docs/decisions/0025-the-door.md. */
const FILE_MODE = 0o600;
export const DIRECTORY_MODE = 0o700;

/** A write of more bytes than this is made in several: the system call itself ends at 2 GiB. */
const MAX_BYTES_PER_WRITE = 64 << 20;

type Callback<T> = (error: NodeJS.ErrnoException | null, value: T) => void;

function promise<T>(call: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => call((error, value) => (error ? reject(error) : resolve(value))));
}

function done(call: (callback: fs.NoParamCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => call((error) => (error ? reject(error) : resolve())));
}

function writeOnce(fd: number, buffers: readonly Uint8Array[], position: number): Promise<number> {
  return promise((callback) => fs.writev(fd, buffers, position, callback));
}

async function writeAll(fd: number, buffers: readonly Uint8Array[], position: number): Promise<void> {
  let totalBytes = 0;
  for (const buffer of buffers) totalBytes += buffer.length;
  if (totalBytes === 0) return;
  if (totalBytes <= MAX_BYTES_PER_WRITE && (await writeOnce(fd, buffers, position)) === totalBytes) return;
  // rare: a large write, or one that the system cut short: the same bytes are written again from the start
  let at = position;
  for (const buffer of buffers) {
    for (let from = 0; from < buffer.length; ) {
      const written = await writeOnce(fd, [buffer.subarray(from, from + MAX_BYTES_PER_WRITE)], at);
      if (written === 0) throw Object.assign(new Error('the system wrote nothing'), { code: 'EIO' });
      from += written;
      at += written;
    }
  }
}

/** A short write is continued. */
function writeAllNow(fd: number, buffers: readonly Uint8Array[], position: number): void {
  let rest = buffers;
  for (let at = position; rest.length > 0; ) {
    const written = fs.writevSync(fd, rest, at);
    if (written === 0) throw Object.assign(new Error('the system wrote nothing'), { code: 'EIO' });
    at += written;
    rest = after(rest, written);
  }
}

/** What is left of the buffers after that number of bytes. */
function after(buffers: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let left = bytes;
  for (const [i, buffer] of buffers.entries()) {
    if (left < buffer.length) return [buffer.subarray(left), ...buffers.slice(i + 1)];
    left -= buffer.length;
  }
  return [];
}

const ON_LINUX = process.platform === 'linux';

export const nodeSyscalls: Syscalls = Object.freeze({
  open: (path, flags) => promise<number>((callback) => fs.open(path, flags, FILE_MODE, callback)),
  openDurable: (path) =>
    promise<number>((callback) =>
      fs.open(path, fs.constants.O_WRONLY | (ON_LINUX ? fs.constants.O_DSYNC : 0), callback),
    ),
  close: (fd) => done((callback) => fs.close(fd, callback)),
  read: (fd, into, offset, length, position) =>
    promise<number>((callback) => fs.read(fd, into, offset, length, position, callback)),
  readNow: fs.readSync,
  diskReads: () => process.resourceUsage().fsRead,
  write: writeAll,
  writeDurable: ON_LINUX
    ? writeAll
    : async (fd, buffers, position) => {
        await writeAll(fd, buffers, position);
        await done((callback) => fs.fdatasync(fd, callback));
      },
  writeDurableNow: ON_LINUX ? writeAllNow : undefined,
  truncate: (fd, sizeBytes) => done((callback) => fs.ftruncate(fd, sizeBytes, callback)),
  datasync: (fd) => done((callback) => fs.fdatasync(fd, callback)),
  sync: (fd) => done((callback) => fs.fsync(fd, callback)),
  space: async (path) => {
    const { bavail, blocks, bsize } = await promise<fs.StatsFs>((callback) => fs.statfs(path, callback));
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  },
  fileSize: async (of) => {
    const stats = await promise<fs.Stats>((callback) =>
      typeof of === 'number' ? fs.fstat(of, callback) : fs.stat(of, callback),
    );
    if (!stats.isFile()) throw Object.assign(new Error(`not a file: ${of}`), { code: 'ENOENT' });
    return stats.size;
  },
  status: async (path) => {
    const { nlink, mtimeMs } = await promise<fs.Stats>((callback) => fs.stat(path, callback));
    return { links: nlink, modifiedMs: mtimeMs };
  },
  link: (from, to) => done((callback) => fs.link(from, to, callback)),
  rename: (from, to) => done((callback) => fs.rename(from, to, callback)),
  unlink: (path) => done((callback) => fs.unlink(path, callback)),
  mkdir: (path) => done((callback) => fs.mkdir(path, DIRECTORY_MODE, callback)),
  rmdir: (path) => done((callback) => fs.rmdir(path, callback)),
  readdir: async (path) => {
    const entries = await promise<fs.Dirent[]>((callback) => fs.readdir(path, { withFileTypes: true }, callback));
    return entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
  },
} satisfies Syscalls);
