/**
 * Reads every file of the local lock service, one by one, for a check of a whole directory: damaged files are reported
 * and skipped, where the service itself would refuse to open. Format: docs/formats/lock-service.md. Changes nothing.
 */
import { type BigtableError, Code, CorruptionError, toBigtableError } from '../../base/index.ts';
import type { FileSystem, LastingFile } from '../../env/index.ts';
import { FILES, NUMBERS, numbersName, readFile } from './local-lock-service.ts';
import { decodeLockFile, LockFileKind } from './lock-file-format.ts';

export interface LockFilesRead {
  /** The valid files, by path. */
  readonly files: readonly LastingFile[];
  /** Names of the damaged files, with the errors. */
  readonly damages: readonly { readonly name: string; readonly error: BigtableError }[];
  /** The number of all files. */
  readonly count: number;
}

export async function readAllLockFiles(fileSystem: FileSystem): Promise<LockFilesRead> {
  const damages: { name: string; error: BigtableError }[] = [];
  const newest = new Map<string, { readonly kind: LockFileKind; readonly file: LastingFile; readonly name: string }>();
  const infos = await fileSystem.list('lock-service/');
  let endOfNumbers = 0;
  for (const info of infos) {
    try {
      if (info.path.startsWith(FILES)) {
        const { kind, path, contents, version } = await readFile(fileSystem, info);
        if ((newest.get(path)?.file.version ?? 0) < version)
          newest.set(path, { kind, name: info.path, file: { path, contents, version } });
      } else if (info.path.startsWith(NUMBERS)) {
        const { kind, version } = decodeLockFile(info.path, await fileSystem.read(info.path, 0, info.sizeBytes));
        if (kind !== LockFileKind.numbers || numbersName(version) !== info.path)
          throw new CorruptionError(info.path, 20, `reserves numbers up to ${version}`);
        endOfNumbers = Math.max(endOfNumbers, version);
      } else {
        throw new CorruptionError(info.path, 0, 'not a file of the lock service');
      }
    } catch (thrown) {
      const error = toBigtableError(thrown);
      // a running owner has replaced it meanwhile
      if (error.code !== Code.NOT_FOUND) damages.push({ name: info.path, error });
    }
  }
  const numbersAreDamaged = damages.some(({ name }) => name.startsWith(NUMBERS));
  for (const { file, name } of newest.values()) {
    if (file.version < endOfNumbers || numbersAreDamaged) continue;
    damages.push({
      name,
      error: new CorruptionError(
        name,
        20,
        `version ${file.version} was never reserved: numbers are reserved up to ${endOfNumbers}, so a later reservation is gone`,
      ),
    });
  }
  const kept = [...newest.values()].sort((a, b) => (a.file.path < b.file.path ? -1 : 1));
  return {
    files: kept.filter(({ kind }) => kind === LockFileKind.contents).map(({ file }) => file),
    damages,
    count: infos.length,
  };
}
