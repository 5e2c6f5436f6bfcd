/**
 * The lock that keeps a directory to one owner: the kernel's, on the file LOCK (docs/decisions/0003-directory-lock.md).
 *
 * Invariants:
 * - The lock belongs to the open file: it ends when its process ends, however that ends, and not before; a stopped
 *   process keeps it. The file is never removed, and its content decides nothing.
 * - A second owner is refused, whether in another container, another process, another thread or this one.
 * - Readers share the lock: there are any number of them, or one owner. They write nothing, not even a note of
 *   themselves.
 */
import { constants, fstatSync, ftruncateSync, readSync, statSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { BigtableError, Code } from '../../base/index.ts';
import { requirePackage } from '../threads/packages.ts';
import { errnoOf, systemCall, systemError } from '../posix/posix-errors.ts';
import { nodeSyscalls } from '../posix/posix-syscalls.ts';

export interface DirectoryLock {
  /** Frees the directory. */
  release(): Promise<void>;
}

export const LOCK_NAME = 'LOCK';
const OWNED = Symbol.for('edubba.ownedDirectories');

/** Bytes of another owner's note that are shown at most. */
const NOTE_BYTES = 300;

/** Takes the directory, or fails with FAILED_PRECONDITION where it has an owner. The directory must exist. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = join(directory, LOCK_NAME);
  // a plain descriptor and not a FileHandle, which is closed, and the lock lost, when it is collected as garbage
  const fd = await systemCall(`opening ${path}`, nodeSyscalls.open(path, constants.O_RDWR | constants.O_CREAT));
  try {
    if (!takeLock(fd, path)) throw alreadyOwned(fd, directory);
    if (!isSameFile(fd, path))
      throw new BigtableError(Code.FAILED_PRECONDITION, `${path} was replaced while it was being locked`);
    leaveNote(fd);
  } catch (error) {
    await nodeSyscalls.close(fd);
    throw systemError(error, `locking ${path}`);
  }
  const identity = identityOf(fd);
  ownedHere.set(identity, new Date().toISOString());
  return releaseOf(fd, () => ownedHere.delete(identity));
}

/**
 * Keeps owners away while the directory is read, or fails with FAILED_PRECONDITION where it has one. A directory
 * without the file LOCK, a copy, has no owner, and none is kept away.
 */
export async function lockForReading(directory: string): Promise<DirectoryLock> {
  const path = join(directory, LOCK_NAME);
  let fd: number;
  try {
    fd = await nodeSyscalls.open(path, constants.O_RDONLY);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return { release: async () => {} };
    throw systemError(error, `opening ${path}`);
  }
  try {
    if (!takeLock(fd, path, true)) throw alreadyOwned(fd, directory, 'read-only');
  } catch (error) {
    await nodeSyscalls.close(fd);
    throw systemError(error, `locking ${path}`);
  }
  return releaseOf(fd);
}

function releaseOf(fd: number, whenReleased?: () => void): DirectoryLock {
  const release = async (): Promise<void> => {
    whenReleased?.();
    await nodeSyscalls.close(fd);
  };
  let released: Promise<void> | undefined;
  return { release: () => (released ??= release()) };
}

/**
 * The times since which this thread owns directories, by the identity of their LOCK. State of the thread and not of
 * this module, of which a program that reloads its modules has several.
 */
const ownedHere = ownedBy(globalThis as { [OWNED]?: Map<string, string> });

function ownedBy(thread: { [OWNED]?: Map<string, string> }): Map<string, string> {
  return (thread[OWNED] ??= new Map());
}

/** The same for every path of the directory. */
function identityOf(fd: number): string {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
}

function takeLock(fd: number, path: string, shared = false): boolean {
  return loadLocks(path).tryLock(fd, { shared });
}

/**
 * Loaded here, so that a database in memory needs nothing native; and by `require`, because Node 22's `import()` was
 * seen to load this package without its exports where node_modules is a symbolic link.
 */
function loadLocks(path: string): typeof import('fs-native-extensions') {
  try {
    return requirePackage('fs-native-extensions');
  } catch (error) {
    if (error instanceof BigtableError)
      throw new BigtableError(error.code, `${path}: ${error.message}`, { cause: error });
    throw new BigtableError(Code.UNIMPLEMENTED, `${path}: ${noLocksText(isMusl())}`, { cause: error });
  }
}

/** The package brings a binary for each common platform; on Linux only one that needs glibc. */
export function noLocksText(musl: boolean): string {
  const machine = `${process.platform} ${process.arch}`;
  if (musl)
    return `no file locks on ${machine} with musl, as Alpine has it: the package fs-native-extensions needs glibc. Use an image with glibc, such as node:22-slim; ':memory:' works here`;
  return `no file locks on ${machine}: the package fs-native-extensions has no binary that loads here. ':memory:' works here`;
}

function isMusl(): boolean {
  if (process.platform !== 'linux') return false;
  const { header } = process.report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined;
}

function isSameFile(fd: number, path: string): boolean {
  const mine = fstatSync(fd, { bigint: true });
  const named = statSync(path, { bigint: true });
  return mine.ino === named.ino && mine.dev === named.dev;
}

/** `wanted`: the purpose of the opening. */
function alreadyOwned(
  fd: number,
  directory: string,
  wanted: 'read-only' | 'for writing' = 'for writing',
): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, `${directory} ${ownerText(fd, directory, wanted)}`);
}

function ownerText(fd: number, directory: string, wanted: 'read-only' | 'for writing'): string {
  const since = ownedHere.get(identityOf(fd));
  if (since !== undefined) {
    return (
      `is open in this very process, since ${since}: use that database, or close it first. ` +
      'A program that loads its modules again keeps it where they do not lose it, on globalThis for example'
    );
  }
  // the lock is held, and not by an owner
  if (wanted === 'for writing' && takeLock(fd, join(directory, LOCK_NAME), true)) {
    return 'is open read-only, here or in another process: close all readers first';
  }
  const note = readNote(fd);
  const holder = note === '' ? 'which has not written its note yet' : `which calls itself: ${note}`;
  const thisProcess = note.startsWith(`pid ${process.pid} on host ${hostname()},`)
    ? ' (the number of this very process: another thread of it, perhaps)'
    : '';
  const remedy =
    wanted === 'for writing'
      ? 'One process owns a directory: stop that one first'
      : 'A directory is opened read-only while no process writes to it: stop that process first, or send it the request';
  return `is in use by another Edubba, ${holder}${thisProcess}. ${remedy}. Deleting ${LOCK_NAME} frees nothing`;
}

/** A note for people only. */
function leaveNote(fd: number): void {
  ftruncateSync(fd, 0);
  writeSync(fd, `pid ${process.pid} on host ${hostname()}, since ${new Date().toISOString()}\n`, 0, 'utf8');
}

function readNote(fd: number): string {
  const bytes = Buffer.alloc(NOTE_BYTES);
  const [line = ''] = bytes.toString('utf8', 0, readSync(fd, bytes, 0, NOTE_BYTES, 0)).split('\n');
  return line.replace(/[^\x20-\x7e]/g, '?').trim();
}
