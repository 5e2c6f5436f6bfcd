/**
 * One owner a directory: a lock on its file LOCK that the kernel keeps (docs/decisions/0003-directory-lock.md).
 *
 * Invariants:
 * - The lock belongs to the open file: it ends when its process ends, however that ends, and not before; a stopped process
 *   keeps it. Nobody ever removes the file, and nothing is decided by what is written in it.
 * - A second owner is refused, be it in another container, another process, another thread or this one.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { BigtableError, Code } from '../base/index.ts';
import { systemCall, systemError } from './posix-errors.ts';

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
  const file = await systemCall(`opening ${path}`, open(path, constants.O_RDWR | constants.O_CREAT, 0o644));
  try {
    if (!(await takeLock(file, path))) throw await alreadyOwned(file, directory);
    const [mine, named] = await Promise.all([file.stat({ bigint: true }), stat(path, { bigint: true })]);
    if (!sameFile(mine, named)) throw new BigtableError(Code.FAILED_PRECONDITION, `${path} was replaced while it was being locked`);
    await leaveNote(file);
  } catch (error) {
    await file.close();
    throw systemError(error, `locking ${path}`);
  }
  let released: Promise<void> | undefined;
  return { release: () => (released ??= file.close()) };
}

async function takeLock(file: FileHandle, path: string): Promise<boolean> {
  // loaded here, so that a database in memory needs nothing native
  const { tryLock } = await import('fs-native-extensions').catch((error: unknown) => {
    throw new BigtableError(Code.UNIMPLEMENTED, `${path}: this platform (${process.platform} ${process.arch}) has no file locks here`, { cause: error });
  });
  return tryLock(file.fd);
}

function sameFile(a: BigIntStats, b: BigIntStats): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}

async function alreadyOwned(file: FileHandle, directory: string): Promise<BigtableError> {
  const note = await readNote(file);
  const holder = note === '' ? 'which has not said yet who it is' : `which calls itself: ${note}`;
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `${directory} is in use by another Edubba, ${holder}. One process owns a directory; stop that one first. Never delete ${LOCK_NAME}: it holds nothing after its process ended`,
  );
}

/** For people only. */
async function leaveNote(file: FileHandle): Promise<void> {
  const note = `pid ${process.pid} on host ${hostname()}, since ${new Date().toISOString()}\n`;
  await file.truncate(0);
  await file.write(note, 0, 'utf8');
}

async function readNote(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(NOTE_BYTES), 0, NOTE_BYTES, 0);
  const [line] = buffer.toString('utf8', 0, bytesRead).split('\n');
  return (line ?? '').replace(/[^\x20-\x7e]/g, '?').trim();
}
