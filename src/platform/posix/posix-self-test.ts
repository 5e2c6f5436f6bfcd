/**
 * Proves at start that the directory keeps the promises of a FileSystem: exclusive names under a race, a list that
 * shows what was just named, reads of ranges. A directory that breaks one is refused with an error that names it.
 */
import { constants } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { BigtableError, Code } from '../../base/index.ts';
import type { Directories } from './posix-directories.ts';
import { errnoOf } from './posix-errors.ts';
import type { Syscalls } from './posix-syscalls.ts';

const RACERS = 4;

export async function posixSelfTest(syscalls: Syscalls, directories: Directories): Promise<void> {
  const source = directories.temporaryPath();
  const target = directories.temporaryPath();
  const fd = await syscalls.open(source, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL);
  try {
    await syscalls.write(fd, [Buffer.from('promise'), Buffer.from('kept')], 0);
    const range = Buffer.alloc(6);
    const got = await syscalls.read(fd, range, 0, range.length, 5);
    if (got !== range.length || range.toString('latin1') !== 'sekept')
      throw broken(directories, 'a range of a file reads back as it was written');
    const racers = await Promise.allSettled(Array.from({ length: RACERS }, () => syscalls.link(source, target)));
    const lost = racers.filter((racer) => racer.status === 'rejected');
    const strange = lost.find((racer) => errnoOf(racer.reason) !== 'EEXIST');
    if (strange) throw broken(directories, 'files can be given names by link()', strange.reason);
    if (lost.length !== RACERS - 1)
      throw broken(
        directories,
        `of ${RACERS} that create one name together one succeeds (${RACERS - lost.length} did)`,
      );
    const names = (await syscalls.readdir(dirname(target))).map((entry) => entry.name);
    if (!names.includes(basename(target))) throw broken(directories, 'a list shows what was just named');
  } finally {
    await syscalls.close(fd);
    await directories.removeTree(source, false);
    await directories.removeTree(target, false);
  }
}

function broken(directories: Directories, promise: string, cause?: unknown): BigtableError {
  const where = join(directories.root, 'tmp');
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `${where} cannot hold a database: it breaks the promise that ${promise}`,
    { cause },
  );
}
