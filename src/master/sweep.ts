/**
 * Mark and sweep over files and logs, with METADATA as the roots (paper section 6.7; docs/ARCHITECTURE.md, "Location
 * and assignment"): lists all files; finds and fences the dead, whose logs alone may go; collects from every server
 * the files that it holds, writes or has not committed; scans METADATA; asks the servers again; deletes the files that
 * are neither held nor referenced.
 *
 * Invariant: in this order, and only if every server that is not dead has answered: one that does not may hold files of
 * rows that were removed, and no row names it. A file is listed before the scan, so one written meanwhile is not in
 * question. Asked before the scan, a server names files that its rows do not list yet. Asked after it, a server that
 * was given a tablet meanwhile names those that its row does not list any more: a compaction has replaced them, and a
 * read still is inside. A server is found dead before the rows are read, so one that lives then, and is given a tablet
 * after the scan has passed it, keeps its log, however soon it dies. The rows that the scan saw meet: a merge and then
 * a split could otherwise take a file past the scan, to a row below it that it did not see.
 */
import { assert, inParallel } from '../base/index.ts';
import { logOfSorted, SORTED_DIRECTORY } from '../commitlog/index.ts';
import type { Env, RequestContext } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import { continues, type MetadataRow, ROOT_RANGE, USER_RANGE } from '../metadata/index.ts';
import { FILES_DIRECTORY, type Holdings, LOGS_DIRECTORY, logPathOf } from '../protocol/index.ts';
import type { Servers } from './servers.ts';

export interface SweepResult {
  readonly files: number;
  readonly logs: number;
}

/** The number of files that are deleted at the same time: a store takes its time for each. */
const DELETED_AT_ONCE = 32;

const NOTHING: SweepResult = { files: 0, logs: 0 };

export async function sweep(
  env: Env,
  metadata: MetadataClient,
  servers: Servers,
  /** No row lists such a file yet, and a backup that is being imported will. */
  isArriving: (path: string) => boolean,
  context: RequestContext,
): Promise<SweepResult> {
  const { fileSystem } = env;
  const found = (await fileSystem.list(FILES_DIRECTORY)).filter(({ path }) => !isArriving(path));
  const files = new Map(found.map(({ path, sizeBytes }) => [path, sizeBytes]));
  // before the logs: that of a file that is listed is listed, too, if it still exists
  const sorted = await fileSystem.list(SORTED_DIRECTORY);
  const owners = (await fileSystem.listLogs(LOGS_DIRECTORY)).map((path) => path.slice(LOGS_DIRECTORY.length));
  const dead = await servers.findDead(owners);
  const logs = new Set([...dead].map(logPathOf));

  const spareHeld = (held: ReadonlyMap<string, Holdings>): void => {
    for (const [name, { files: paths, logs: own }] of held) {
      assert(!dead.has(name), 'a dead server holds no files');
      for (const path of paths) files.delete(path);
      for (const path of own) logs.delete(path);
    }
  };
  const holdings = await holdingsOfAll(servers, context);
  if (holdings === undefined) return NOTHING;
  spareHeld(holdings);

  const root = await metadata.readRoot(context);
  /** Logs with changes that a change stream may read. They are replayed no more, unless a row lists them, too. */
  const past = new Set<string>();
  const spare = (row: MetadataRow): boolean => {
    for (const group of Object.values(row.files)) for (const path of group) files.delete(path);
    for (const path of row.logs) logs.delete(path);
    for (const { server } of row.pastOwners ?? []) past.add(logPathOf(server));
    assert(!row.isOfBackup || row.pastOwners === undefined, 'a backup has no change stream');
    return row.server === undefined || holdings.has(row.server.name);
  };
  if (!root || !spare(root)) return NOTHING;
  let before: MetadataRow | undefined;
  for (const range of [ROOT_RANGE, USER_RANGE]) {
    for await (const rows of metadata.scan(range, context)) {
      for (const row of rows) {
        if (!continues(row, before) || !spare(row)) return NOTHING;
        before = row;
      }
    }
  }

  const later = await holdingsOfAll(servers, context);
  if (later === undefined) return NOTHING;
  spareHeld(later);

  // the largest first: what ends the sweep before its time leaves the least
  const bySize = [...files].sort(([, a], [, b]) => b - a);
  await inParallel(bySize, DELETED_AT_ONCE, ([path]) => fileSystem.delete(path));
  // those of a log that is replayed may be read, and are few
  const kept = new Set(owners.map(logPathOf).filter((log) => !logs.has(log)));
  for (const path of past) logs.delete(path);
  for (const path of logs) {
    await fileSystem.deleteLog(path);
    servers.logDeleted(path.slice(LOGS_DIRECTORY.length));
  }
  const unused = sorted.filter(({ path }) => !kept.has(logOfSorted(path)));
  await inParallel(unused, DELETED_AT_ONCE, ({ path }) => fileSystem.delete(path));
  env.metrics.add('master.sweptFiles', files.size);
  return { files: files.size, logs: logs.size };
}

/** What every server holds, by name; undefined unless all that are alive have answered. */
async function holdingsOfAll(
  servers: Servers,
  context: RequestContext,
): Promise<ReadonlyMap<string, Holdings> | undefined> {
  const asked = servers.all();
  const holdings = await servers.callAll('holdings', {}, context);
  return !servers.anySilent && asked.every(({ name }) => holdings.has(name)) ? holdings : undefined;
}
