/**
 * One owner a directory: a lock on its file LOCK that the kernel keeps (docs/decisions/0003-directory-lock.md).
 *
 * Invariants:
 * - The lock belongs to the open file: it ends when its process ends, however that ends, and not before; a stopped process
 *   keeps it. Nobody ever removes the file, and nothing is decided by what is written in it.
 * - A second owner is refused, be it in another container, another process, another thread or this one.
 */
import { constants, fstatSync, ftruncateSync, readSync, statSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { BigtableError, Code } from '../base/index.ts';
import { requirePackage } from './packages.ts';
import { systemCall, systemError } from './posix-errors.ts';
import { nodeSyscalls } from './posix-syscalls.ts';

export interface DirectoryLock {
  /** Gives the directory free. */
  release(): Promise<void>;
}

export const LOCK_NAME = 'LOCK';

/** Most of what another owner left in the file that is shown. */
const NOTE_BYTES = 300;

/** Takes the directory, or fails with FAILED_PRECONDITION where it has an owner. The directory must exist. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = join(directory, LOCK_NAME);
  // a plain descriptor and not a FileHandle: that is closed, and the lock lost, when it is collected as garbage
  const fd = await systemCall(`opening ${path}`, nodeSyscalls.open(path, constants.O_RDWR | constants.O_CREAT));
  try {
    if (!takeLock(fd, path)) throw alreadyOwned(fd, directory);
    if (!isSameFile(fd, path)) throw new BigtableError(Code.FAILED_PRECONDITION, `${path} was replaced while it was being locked`);
    leaveNote(fd);
  } catch (error) {
    await nodeSyscalls.close(fd);
    throw systemError(error, `locking ${path}`);
  }
  let released: Promise<void> | undefined;
  return { release: () => (released ??= nodeSyscalls.close(fd)) };
}

function takeLock(fd: number, path: string): boolean {
  return loadLocks(path).tryLock(fd);
}

/**
 * Loaded here, so that a database in memory needs nothing native; and by `require`, because Node 22's `import()` was seen to give this package
 * without its exports where node_modules is a symbolic link.
 */
function loadLocks(path: string): typeof import('fs-native-extensions') {
  try {
    return requirePackage('fs-native-extensions');
  } catch (error) {
    if (error instanceof BigtableError) throw new BigtableError(error.code, `${path}: ${error.message}`, { cause: error });
    throw new BigtableError(Code.UNIMPLEMENTED, `${path}: ${noLocksHere(isMusl())}`, { cause: error });
  }
}

/** The package brings a binary for each common platform; on Linux only one that needs glibc. */
export function noLocksHere(musl: boolean): string {
  const machine = `${process.platform} ${process.arch}`;
  if (musl) return `no file locks on ${machine} with musl, as Alpine has it: the package fs-native-extensions needs glibc. Use an image with glibc, such as node:22-slim; ':memory:' works here`;
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

function alreadyOwned(fd: number, directory: string): BigtableError {
  const note = readNote(fd);
  const holder = note === '' ? 'which has not said yet who it is' : `which calls itself: ${note}`;
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `${directory} is in use by another Edubba, ${holder}. One process owns a directory: stop that one first. Deleting ${LOCK_NAME} frees nothing`,
  );
}

/** For people only. */
function leaveNote(fd: number): void {
  ftruncateSync(fd, 0);
  writeSync(fd, `pid ${process.pid} on host ${hostname()}, since ${new Date().toISOString()}\n`, 0, 'utf8');
}

function readNote(fd: number): string {
  const bytes = Buffer.alloc(NOTE_BYTES);
  const [line = ''] = bytes.toString('utf8', 0, readSync(fd, bytes, 0, NOTE_BYTES, 0)).split('\n');
  return line.replace(/[^\x20-\x7e]/g, '?').trim();
}
