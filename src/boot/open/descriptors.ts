/**
 * The shares of the descriptors that a database's process may open: first the uses that must never lack them (Node
 * itself, commit logs, files being written), then SSTables kept open, then connections.
 *
 * Invariant: all shares together are at most the limit, so that no number of connections deprives a log of its next
 * segment.
 */
import { BigtableError, Code } from '../../base/index.ts';
import { descriptorLimit } from '../../platform/index.ts';
import { DEFAULT_SETTINGS } from '../settings/settings.ts';

/**
 * Descriptors of the process: event loop, pipes of its helper threads, standard streams, LOCK, modules being loaded,
 * look-ups of names. An idle server has 22. The rest is for the port with metrics and probes, and its eight
 * connections.
 */
const PER_PROCESS = 28 + 9;
/** Descriptors of each further thread: its event loop has 5. */
const PER_THREAD = 6;
/**
 * Descriptors of each commit log: two for the segment being written, two for the next one, two for directories being
 * synced.
 */
const PER_LOG = 6;
/**
 * Descriptors of each file system: SSTables and small files being written, directories being synced, opens that
 * overtake closes.
 */
const PER_FILE_SYSTEM = 8;
const MIN_OPEN_FILES = 4;
const MAX_OPEN_FILES = 256;
/** Connections of each tablet server. */
const MIN_CONNECTIONS = 16;

export interface DescriptorUse {
  readonly tabletServers: number;
  readonly compactionsAtOnce: number;
  /** True when connections are served. */
  readonly serves: boolean;
}

export interface DescriptorShares {
  /** SSTables that each file system keeps open. */
  readonly openFiles: number;
  /** Connections of all tablet servers together; Infinity where the process has no known limit. */
  readonly connections: number;
}

/** RESOURCE_EXHAUSTED, with the number needed, where the limit is too low. `limit`: undefined where there is none. */
export function shareDescriptors(
  limit: number | undefined,
  { tabletServers, compactionsAtOnce, serves }: DescriptorUse,
): DescriptorShares {
  const compactions = tabletServers * compactionsAtOnce;
  const serverThreads = tabletServers > 1 ? tabletServers : 0;
  const fileSystems = 1 + serverThreads + compactions;
  const fixed =
    PER_PROCESS + (serverThreads + compactions) * PER_THREAD + tabletServers * PER_LOG + fileSystems * PER_FILE_SYSTEM;
  const needed = fixed + fileSystems * MIN_OPEN_FILES + (serves ? tabletServers * MIN_CONNECTIONS : 0);
  if (limit === undefined) return { openFiles: MAX_OPEN_FILES, connections: Number.POSITIVE_INFINITY };
  if (limit < needed) {
    const servers = tabletServers === 1 ? '' : ` with ${tabletServers} tablet servers`;
    const message = `this process may open ${limit} files, and a database${servers} needs at least ${needed}: raise the limit of open files (ulimit -n ${needed} or more)`;
    throw new BigtableError(Code.RESOURCE_EXHAUSTED, message);
  }
  const free = limit - fixed;
  const openFiles = Math.max(MIN_OPEN_FILES, Math.min(MAX_OPEN_FILES, Math.floor(free / 4 / fileSystems)));
  return { openFiles, connections: free - openFiles * fileSystems };
}

/**
 * SSTables that each file system of a database in this process keeps open. RESOURCE_EXHAUSTED where the limit of
 * descriptors is too low.
 */
export function openFilesLimit(tabletServers: number, compactionsAtOnce: number): number {
  return shareDescriptors(descriptorLimit(), { tabletServers, compactionsAtOnce, serves: false }).openFiles;
}

/**
 * Connections that this process can serve next to a database. RESOURCE_EXHAUSTED where the limit of descriptors is too
 * low.
 */
export function connectionLimit(tabletServers: number, compactionsAtOnce = DEFAULT_SETTINGS.compactionsAtOnce): number {
  return shareDescriptors(descriptorLimit(), { tabletServers, compactionsAtOnce, serves: true }).connections;
}
