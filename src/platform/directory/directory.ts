/**
 * A directory that holds a database: its lock, its format file EDUBBA, and the file system in it. Format:
 * docs/formats/directory.md.
 *
 * Invariant: nothing is read or written before the lock is held and the format is known; a directory of a later format,
 * or with other content, is refused with a message and left unchanged.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BigtableError, Code } from '../../base/index.ts';
import { FORMAT_NAME, formatText, parseFormat } from './format-file.ts';
import { makeDirectory, syncDirectory } from './make-directory.ts';
import { LOCK_NAME, lockDirectory } from '../locks/directory-lock.ts';
import { errnoOf, systemCall, systemError } from '../posix/posix-errors.ts';
import { openPosixFileSystem, type PosixFileSystem, type PosixOptions } from '../posix/posix-file-system.ts';
import { nodeSyscalls } from '../posix/posix-syscalls.ts';

export interface OpenDirectory {
  readonly fileSystem: PosixFileSystem;
  /** The database's identity, made with it: 32 lower-case hexadecimal digits. */
  readonly identity: string;
  /** Closes the file system and frees the directory. */
  release(): Promise<void>;
}

/** Names that a foreign directory may have. */
const HARMLESS = new Set([LOCK_NAME, `${FORMAT_NAME}.new`, 'lost+found']);

/**
 * Opens the database directory, making it where there is none. FAILED_PRECONDITION where another process owns it or it
 * has other content.
 */
export async function openDirectory(path: string, options: PosixOptions): Promise<OpenDirectory> {
  const directory = resolve(path);
  await systemCall(`making ${directory}`, makeDirectory(directory));
  const lock = await lockDirectory(directory);
  try {
    const identity = await systemCall(`opening ${directory}`, checkFormat(directory));
    const fileSystem = await openPosixFileSystem(directory, options);
    const release = async (): Promise<void> => {
      try {
        await fileSystem.close();
      } finally {
        await lock.release();
      }
    };
    return { fileSystem, identity, release };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The identity in the format file, which is written where the directory is new. */
async function checkFormat(directory: string): Promise<string> {
  const file = join(directory, FORMAT_NAME);
  try {
    return parseFormat(await readFile(file, 'latin1'), file, 'directory');
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw systemError(error, file);
  }
  const strange = (await readdir(directory)).find((name) => !HARMLESS.has(name));
  if (strange !== undefined) {
    const what = `it has no file ${FORMAT_NAME} but holds ${JSON.stringify(strange)}`;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${directory} is not an Edubba directory: ${what}`);
  }
  const identity = randomBytes(16).toString('hex');
  await writeFormat(file, formatText('directory', identity));
  await syncDirectory(directory);
  return identity;
}

/** Writes the file whole or not at all. The lock is held: no other process writes it. */
async function writeFormat(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  const fd = await nodeSyscalls.open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
  try {
    await nodeSyscalls.write(fd, [Buffer.from(text, 'latin1')], 0);
    await nodeSyscalls.sync(fd);
  } finally {
    await nodeSyscalls.close(fd);
  }
  await nodeSyscalls.rename(temporary, file);
}
