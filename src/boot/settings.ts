/**
 * The settings of a database: plain, frozen, checked once. Sizes are in bytes. A size set here bounds memory; it changes no format and may be
 * another at the next start.
 */
import { checkOptions, invalidArgument, type OptionTable } from '../base/index.ts';
import { LIMITS } from '../model/index.ts';
import { memoryBytes } from '../platform/index.ts';
import { DEFAULT_BLOCK_SIZE_BYTES } from '../sstable/index.ts';
import type { TabletServerSettings } from '../tabletserver/index.ts';

export interface DatabaseSettings {
  /** What all memtables take together: flushing begins at half of it, writes wait at it. Default 64 MiB, at least 1 MiB. */
  readonly memtableBytes: number;
  /** Blocks of SSTables kept in memory. Default 64 MiB; 0 keeps none. */
  readonly blockCacheBytes: number;
  /** Single rows of SSTables kept in memory, hot ones among cold. Default 16 MiB; 0 keeps none. */
  readonly scanCacheBytes: number;
  /** Requests in flight and answers not yet sent, all together. Default 128 MiB, at least 1 MiB. */
  readonly requestBytes: number;
  /** Size at which a block of an SSTable is closed. Default 64 KiB, from 1 KiB to 16 MiB. */
  readonly blockSizeBytes: number;
  /** Length of the commit log that forces flushes, and so bounds what a start replays. Default 64 MiB, at least 1 MiB. */
  readonly logLimitBytes: number;
  /** In-memory locality groups, whose files stay in memory once they were read. Reads of what does not fit fail. Default 64 MiB. */
  readonly inMemoryBytes: number;
  /** A tablet whose files take more is split. Default 200 MiB, at least 1 MiB. */
  readonly tabletBytes: number;
  /** Compactions of files at once, each in a thread of its own. Default 1, from 1 to 64. */
  readonly compactionsAtOnce: number;
  /** Every tablet gets a major compaction so often: within this time deleted data is gone from the disk. Default 24 hours; from a second to a year. */
  readonly majorCompactionMs: number;
  /**
   * When a write is acknowledged. `synced`, the default: when it is on the disk; nothing acknowledged is ever lost. `buffered`: when it is handed to the
   * commit log, whose writing goes on at once and without a pause; a power failure, or an end of the process without `close`, then loses the last
   * writes: always the newest ones, some milliseconds of them, 4 MiB and one write at the most. `close` brings all of them to the disk.
   */
  readonly durability: 'synced' | 'buffered';
  /** Limits of the API: `cloud` = those of Cloud Bigtable; `default` = wider where the paper is (row keys to 64 KiB). */
  readonly limits: keyof typeof LIMITS;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const HOUR_MS = 3_600_000;

export const DEFAULT_SETTINGS: DatabaseSettings = Object.freeze({
  memtableBytes: 64 * MIB,
  blockCacheBytes: 64 * MIB,
  scanCacheBytes: 16 * MIB,
  requestBytes: 128 * MIB,
  blockSizeBytes: DEFAULT_BLOCK_SIZE_BYTES,
  logLimitBytes: 64 * MIB,
  inMemoryBytes: 64 * MIB,
  tabletBytes: 200 * MIB,
  compactionsAtOnce: 1,
  majorCompactionMs: 24 * HOUR_MS,
  durability: 'synced',
  limits: 'default',
});

/** None is a bound: a setting that is undefined has its default. */
const SETTINGS = Object.fromEntries(
  Object.keys(DEFAULT_SETTINGS).map((name) => [name, 'free']),
) as OptionTable<DatabaseSettings>;

const DURABILITIES: readonly string[] = ['synced', 'buffered'] satisfies DatabaseSettings['durability'][];

const SIZES: Readonly<Record<Exclude<keyof DatabaseSettings, 'limits' | 'durability'>, readonly [least: number, most: number]>> = {
  memtableBytes: [MIB, Number.MAX_SAFE_INTEGER],
  blockCacheBytes: [0, Number.MAX_SAFE_INTEGER],
  scanCacheBytes: [0, Number.MAX_SAFE_INTEGER],
  requestBytes: [MIB, Number.MAX_SAFE_INTEGER],
  blockSizeBytes: [KIB, 16 * MIB],
  logLimitBytes: [MIB, Number.MAX_SAFE_INTEGER],
  inMemoryBytes: [0, Number.MAX_SAFE_INTEGER],
  tabletBytes: [MIB, Number.MAX_SAFE_INTEGER],
  compactionsAtOnce: [1, 64],
  majorCompactionMs: [1000, 365 * 24 * HOUR_MS],
};

/** A server's block cache where it is not told another size: a share of the machine's memory, in bounds. */
const SERVER_CACHE_SHARE = 1 / 8;
const LEAST_SERVER_CACHE_BYTES = 64 * MIB;
const MOST_SERVER_CACHE_BYTES = 4 * 1024 * MIB;

/** `blockCacheBytes` of a process that does nothing but serve. */
export function serverCacheBytes(availableBytes = memoryBytes()): number {
  return Math.min(MOST_SERVER_CACHE_BYTES, Math.max(LEAST_SERVER_CACHE_BYTES, Math.floor(availableBytes * SERVER_CACHE_SHARE)));
}

/** The defaults with `given` over them. INVALID_ARGUMENT for a name that is none, or a value out of its range. */
export function checkSettings(given: Partial<DatabaseSettings> = {}): DatabaseSettings {
  checkOptions(given, SETTINGS, 'settings', 'setting');
  const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const settings: DatabaseSettings = Object.freeze({ ...DEFAULT_SETTINGS, ...chosen });
  for (const [name, [least, most]] of Object.entries(SIZES)) {
    const value = settings[name as keyof typeof SIZES];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw invalidArgument(`setting ${name} must be a whole number from ${least} to ${most}, not ${String(value)}`);
    }
  }
  if (!DURABILITIES.includes(settings.durability)) throw invalidArgument(`setting durability must be one of ${DURABILITIES.join(', ')}, not ${String(settings.durability)}`);
  if (!Object.hasOwn(LIMITS, settings.limits)) throw invalidArgument(`setting limits must be one of ${Object.keys(LIMITS).join(', ')}, not ${String(settings.limits)}`);
  return settings;
}

/** What each of several tablet servers goes by: they share the sizes evenly. */
export function tabletServerSettings(settings: DatabaseSettings, tabletServers: number): TabletServerSettings {
  const { durability, blockSizeBytes, tabletBytes, compactionsAtOnce, majorCompactionMs } = settings;
  const share = (bytes: number): number => Math.floor(bytes / tabletServers);
  return {
    durability,
    blockSizeBytes,
    tabletBytes,
    compactionsAtOnce,
    majorCompactionMs,
    limits: LIMITS[settings.limits],
    memtableBytes: share(settings.memtableBytes),
    blockCacheBytes: share(settings.blockCacheBytes),
    scanCacheBytes: share(settings.scanCacheBytes),
    inMemoryBytes: share(settings.inMemoryBytes),
    logLimitBytes: share(settings.logLimitBytes),
  };
}
