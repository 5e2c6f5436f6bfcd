/**
 * Paths of SSTables that were imported from a backup store. A file has in it the path at which it was written; an
 * imported one has that name after the id of the backup that it was imported for. So a backup that is imported where
 * its files still are, or twice, has files of its own.
 */

const IMPORTED = /(^|\/)imported-[0-9a-f]{8}-/;

/**
 * The path of a file that is imported for the backup of that id. `path`: at which it was written, or imported before.
 */
export function importedPath(path: string, backupId: string): string {
  const name = writtenPath(path);
  const at = name.lastIndexOf('/') + 1;
  return `${name.slice(0, at)}imported-${backupId}-${name.slice(at)}`;
}

export function isImportedPath(path: string): boolean {
  return IMPORTED.test(path);
}

/** The path at which the file was written. */
export function writtenPath(path: string): string {
  return path.replace(IMPORTED, '$1');
}
