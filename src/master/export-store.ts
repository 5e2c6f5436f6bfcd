/** Manifests of the backup store, and its files as wholes (metadata/exported-backup-file.ts). */
import { Code, inParallel, toBigtableError } from '../base/index.ts';
import { readPieces, type StoredFiles } from '../env/index.ts';
import { decodeExport, exportIdOf, type ExportManifest, exportPath } from '../metadata/index.ts';
import type { ExportedBackup, ListedExport } from '../model/index.ts';

/** A large file is read in pieces. */
const PIECE_BYTES = 4 << 20;
const READ_AT_ONCE = 16;

/** Undefined where there is none. CorruptionError where it is damaged, or of a later release. */
export async function readExport(store: StoredFiles, id: string): Promise<ExportManifest | undefined> {
  const path = exportPath(id);
  try {
    return decodeExport(path, await readWhole(store, path));
  } catch (thrown) {
    if (toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
    return undefined;
  }
}

/** By id. */
export async function listExports(store: StoredFiles): Promise<readonly ListedExport[]> {
  const manifests = await store.list(exportPath(''));
  const listed: (ListedExport | undefined)[] = [];
  await inParallel(manifests.entries(), READ_AT_ONCE, async ([i, { path }]) => {
    const id = exportIdOf(path);
    try {
      const manifest = await readExport(store, id);
      listed[i] = manifest && exportedBackupOf(manifest);
    } catch (thrown) {
      if (toBigtableError(thrown).code !== Code.DATA_LOSS) throw thrown;
      listed[i] = { id, state: 'unreadable' };
    }
  });
  // one may have been deleted since it was listed
  return listed.filter((one) => one !== undefined);
}

export function exportedBackupOf(manifest: ExportManifest): ExportedBackup {
  const { id, backup, table, startMicros, endMicros, exportedMicros, files, sizeBytes } = manifest;
  return { id, state: 'ready', backup, table, startMicros, endMicros, exportedMicros, files, sizeBytes };
}

export async function hasFile(store: StoredFiles, path: string): Promise<boolean> {
  try {
    await store.size(path);
    return true;
  } catch (thrown) {
    if (toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
    return false;
  }
}

export async function readWhole(store: StoredFiles, path: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of readPieces(store, path, PIECE_BYTES)) pieces.push(piece);
  return Buffer.concat(pieces);
}
