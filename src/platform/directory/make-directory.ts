/** Makes the directory that holds a database, so that it outlives a loss of power. */
import { constants } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BigtableError, Code } from '../../base/index.ts';
import { errnoOf } from '../posix/posix-errors.ts';
import { DIRECTORY_MODE, nodeSyscalls } from '../posix/posix-syscalls.ts';

/**
 * Makes the directory with those above it, each made durable in the one above. Not by Node's recursive mkdir: that
 * tries again for ever where a file system answers ENOENT though the directory above exists, as /proc does.
 */
export async function makeDirectory(directory: string, isParentThere = false): Promise<void> {
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

export async function syncDirectory(directory: string): Promise<void> {
  const fd = await nodeSyscalls.open(directory, constants.O_RDONLY);
  try {
    await nodeSyscalls.sync(fd);
  } finally {
    await nodeSyscalls.close(fd);
  }
}
