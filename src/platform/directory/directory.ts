/**
 * A directory that holds a database: its lock, its format file EDUBBA, and the file system in it. Format:
 * docs/formats/directory.md.
 *
 * Invariant: nothing is read or written before the lock is held and the format is known; a directory of a later format,
 * or with other content, is refused with a message and left unchanged.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { BigtableError, Code, CorruptionError, crc32c } from '../../base/index.ts';
import { LOCK_NAME, lockDirectory } from '../locks/directory-lock.ts';
import { errnoOf, systemCall, systemError } from '../posix/posix-errors.ts';
import { openPosixFileSystem, type PosixFileSystem, type PosixOptions } from '../posix/posix-file-system.ts';
import { DIRECTORY_MODE, nodeSyscalls } from '../posix/posix-syscalls.ts';

export interface OpenDirectory {
  readonly fileSystem: PosixFileSystem;
  /** The database's identity, made with it: 32 lower-case hexadecimal digits. */
  readonly identity: string;
  /** Closes the file system and frees the directory. */
  release(): Promise<void>;
}

export const FORMAT_NAME = 'EDUBBA';
const VERSION = 1;
const FORMAT =
  /^edubba directory\nversion (\d{1,9})\nrequires ([0-9a-f]{8})\nidentity ([0-9a-f]{32})\nchecksum ([0-9a-f]{8})\n$/;

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

/** The text of the format file. */
export function formatText(identity: string, version = VERSION, requires = 0): string {
  const text = `edubba directory\nversion ${version}\nrequires ${hex32(requires)}\nidentity ${identity}\n`;
  return `${text}checksum ${hex32(crc32c(Buffer.from(text, 'latin1')))}\n`;
}

/** The identity in the text of a format file. */
export function parseFormat(text: string, file: string): string {
  const match = FORMAT.exec(text);
  if (!match) throw new CorruptionError(file, 0, 'not the format file of an Edubba directory');
  const [, version = '', requires = '', identity = '', checksum] = match;
  const checked = text.slice(0, text.lastIndexOf('checksum '));
  if (hex32(crc32c(Buffer.from(checked, 'latin1'))) !== checksum)
    throw new CorruptionError(file, checked.length, 'the checksum is wrong');
  if (Number(version) !== VERSION || requires !== hex32(0)) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${file}: a directory of version ${version} that requires the features ${requires}; this Edubba knows version ${VERSION} and no features`,
    );
  }
  return identity;
}

function hex32(value: number): string {
  return value.toString(16).padStart(8, '0');
}

/**
 * Makes the directory with those above it, each made durable in the one above. Not by Node's recursive mkdir: that
 * tries again for ever where a file system answers ENOENT though the directory above exists, as /proc does.
 */
async function makeDirectory(directory: string, isParentThere = false): Promise<void> {
  try {
    await mkdir(directory, { mode: DIRECTORY_MODE });
  } catch (error) {
    if (await isDirectory(directory)) return;
    if (errnoOf(error) === 'EEXIST')
      throw new BigtableError(Code.FAILED_PRECONDITION, `${directory} is a file, and must be a directory`);
    // ENOTDIR: a directory above is a file, which the call on it will report
    if (isParentThere || !['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) throw error;
    await makeDirectory(dirname(directory));
    return makeDirectory(directory, true);
  }
  await syncDirectory(dirname(directory));
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function syncDirectory(directory: string): Promise<void> {
  const fd = await nodeSyscalls.open(directory, constants.O_RDONLY);
  try {
    await nodeSyscalls.sync(fd);
  } finally {
    await nodeSyscalls.close(fd);
  }
}

/** The identity in the format file, which is written where the directory is new. */
async function checkFormat(directory: string): Promise<string> {
  const file = join(directory, FORMAT_NAME);
  try {
    return parseFormat(await readFile(file, 'latin1'), file);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw systemError(error, file);
  }
  const strange = (await readdir(directory)).find((name) => !HARMLESS.has(name));
  if (strange !== undefined) {
    const what = `it has no file ${FORMAT_NAME} but holds ${JSON.stringify(strange)}`;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${directory} is not an Edubba directory: ${what}`);
  }
  const identity = randomBytes(16).toString('hex');
  await writeFormat(file, formatText(identity));
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
