/**
 * The file systems of inspection: a database's directory, or a single file, read-only and next to a running owner.
 * Nothing is locked, started or written.
 */
import type { Clock, Codecs, FileSystem } from '../../env/index.ts';
import {
  findDirectory,
  type LockFilesRead,
  nativeCodecs,
  openLoneFile,
  openReadOnlyDirectory,
  readAllLockFiles,
  type ReadOnlyDirectory,
  systemClock,
} from '../../platform/index.ts';

export { findDirectory };

interface Components {
  readonly codecs: Codecs;
  readonly clock: Clock;
}

/** Opens the database in the directory. NOT_FOUND where there is none. The caller closes it. */
export async function openForInspection(
  directory: string,
): Promise<ReadOnlyDirectory & Components & { readAllLockFiles(): Promise<LockFilesRead> }> {
  const codecs = nativeCodecs();
  const opened = await openReadOnlyDirectory(directory, { checksum: codecs.checksum, clock: systemClock });
  return { ...opened, codecs, clock: systemClock, readAllLockFiles: () => readAllLockFiles(opened.fileSystem) };
}

/** Opens a file that lies in no database: `path` is its name in the file system. The caller closes it. */
export function openFileForInspection(
  file: string,
): Components & { readonly fileSystem: FileSystem; readonly path: string; close(): Promise<void> } {
  const codecs = nativeCodecs();
  return { ...openLoneFile(file, { checksum: codecs.checksum, clock: systemClock }), codecs, clock: systemClock };
}
