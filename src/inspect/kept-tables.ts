/** The deleted tables that are kept, as the files of the lock service tell of them. */
import { type BigtableError, CorruptionError, toBigtableError } from '../base/index.ts';
import type { LastingFile } from '../env/index.ts';
import { decodeDeletionMark, decodeSchema, deletionPath, keptFilePath, schemaPath } from '../metadata/index.ts';
import type { TableSchema } from '../model/index.ts';

export interface InspectedKeptTable {
  readonly name: string;
  /** The path of its mark. */
  readonly path: string;
  /** The copy of its schema, or the reason why there is none. */
  readonly schema: TableSchema | BigtableError;
}

/** By table id. Marks that cannot be read are left out. */
export function keptTables(files: readonly LastingFile[]): Map<string, InspectedKeptTable> {
  const byPath = new Map(files.map(({ path, contents }) => [path, contents]));
  const kept = new Map<string, InspectedKeptTable>();
  for (const { path, contents } of files) {
    if (!path.startsWith(deletionPath())) continue;
    try {
      const { tableId, name, kept: times } = decodeDeletionMark(path, contents);
      if (times === undefined) continue;
      kept.set(tableId, { name, path, schema: copyOf(byPath, tableId, name) });
    } catch {
      // it is reported where all files are read
    }
  }
  return kept;
}

function copyOf(files: ReadonlyMap<string, Uint8Array>, tableId: string, name: string): TableSchema | BigtableError {
  const path = keptFilePath(tableId, schemaPath(name));
  const contents = files.get(path);
  if (contents === undefined) return new CorruptionError(path, 0, 'the copy of the schema is missing');
  try {
    return decodeSchema(path, contents);
  } catch (thrown) {
    return toBigtableError(thrown);
  }
}
