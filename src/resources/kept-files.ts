/**
 * The files of the lock service that belong to a table, when the table is deleted and kept: its policies, views and
 * schema bundles. They lie apart, so that a later table of the name has no part of them, until the table is restored.
 *
 * Invariant: a file is removed at one place only once it is at the other. A file that cannot be read stays where it is:
 * it closes what it is the policy of.
 */
import { BigtableError, Code, toBigtableError } from '../base/index.ts';
import { type Clock, listFiles, type LockHandle, type LockService, removeSettled, writeSettled } from '../env/index.ts';
import { keptFilePath, PlainObject } from '../metadata/index.ts';
import { policyPath } from './policy-file.ts';
import { resourcePath } from './resource-file.ts';

export interface KeptFilesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  /** Nothing is changed once it is lost. */
  readonly lock: LockHandle;
}

/** The kinds of resources that a table has. */
const KINDS = ['authorizedViews', 'schemaBundles'];
/** Others may change a file while it is moved. */
const MAX_ATTEMPTS = 20;

/** Moves the files of the table with that name and id to their place apart. */
export async function keepFiles(parts: KeptFilesParts, table: string, tableId: string): Promise<void> {
  for (const path of await pathsOf(parts.lockService, table)) {
    for (let attempt = 1; ; attempt++) {
      const file = await parts.lockService.read(path);
      if (file === undefined || ownerOf(path, file.contents) !== tableId) break;
      await put(parts, keptFilePath(tableId, path), file.contents);
      if (await isRemoved(parts, path, file.version)) break;
      if (attempt === MAX_ATTEMPTS)
        throw new BigtableError(Code.ABORTED, `${path} is being changed by many others: try again`);
    }
  }
}

/**
 * Puts copies of the kept files back, for a table that has no schema yet, and removes what is left there of other
 * tables. Returns the paths of the files that were changed.
 */
export async function returnFiles(parts: KeptFilesParts, table: string, tableId: string): Promise<string[]> {
  const changed: string[] = [];
  for (const path of await pathsOf(parts.lockService, table)) {
    const file = await parts.lockService.read(path);
    const owner = file && ownerOf(path, file.contents);
    if (file === undefined || owner === undefined || owner === tableId) continue;
    await removeSettled(parts, path, { version: file.version, lock: parts.lock });
    changed.push(path);
  }
  const apart = keptFilePath(tableId);
  const places = [policyPath(table), ...KINDS.map((kind) => resourcePath(kind, table))];
  for (const { path: from, contents } of await listFiles(parts.lockService, apart)) {
    const path = from.slice(apart.length);
    // the copy of the schema is not one of them
    if (!places.some((place) => path.startsWith(place))) continue;
    // one that is there was written after the table was deleted, or is what an earlier attempt has put back
    if ((await parts.lockService.read(path)) === undefined) await put(parts, path, contents);
    changed.push(path);
  }
  return changed;
}

/** Removes the kept files. */
export async function forgetFiles(parts: KeptFilesParts, tableId: string): Promise<void> {
  for (const { path, version } of await listFiles(parts.lockService, keptFilePath(tableId)))
    await removeSettled(parts, path, { version, lock: parts.lock });
}

async function pathsOf(lockService: LockService, table: string): Promise<string[]> {
  const prefixes = [policyPath(`${table}/`), ...KINDS.map((kind) => resourcePath(kind, `${table}/`))];
  const inside = await Promise.all(prefixes.map((prefix) => listFiles(lockService, prefix)));
  return [policyPath(table), ...inside.flat().map(({ path }) => path)];
}

/** The id of the table that the file belongs to; undefined where it cannot be read. */
function ownerOf(path: string, contents: Uint8Array): string | undefined {
  try {
    const [tableId] = PlainObject.parse(path, contents).text('owner').split('/');
    return tableId;
  } catch {
    return undefined;
  }
}

/** Writes the file, whatever is there. */
async function put({ lock, ...parts }: KeptFilesParts, path: string, contents: Uint8Array): Promise<void> {
  const version = (await parts.lockService.read(path))?.version ?? 0;
  await writeSettled(parts, path, contents, { version, lock });
}

/** False where it is of another version by now. */
async function isRemoved({ lock, ...parts }: KeptFilesParts, path: string, version: number): Promise<boolean> {
  try {
    await removeSettled(parts, path, { version, lock });
    return true;
  } catch (thrown) {
    // also where the lock is lost: then the next attempt finds it
    if (toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
    return false;
  }
}
