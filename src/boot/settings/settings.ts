/**
 * The settings of a database: plain, frozen, checked once. Sizes are in bytes. A size bounds memory; it changes no
 * format and may differ at the next start. The table DATABASE_SETTINGS is the source of help and pages; a test compares
 * the docstrings here with it.
 */
import { checkOptions, invalidArgument, type OptionTable, plainText } from '../../base/index.ts';
import { LIMITS } from '../../model/index.ts';
import { memoryBytes } from '../../platform/index.ts';
import { DEFAULT_BLOCK_SIZE_BYTES } from '../../sstable/index.ts';
import type { TabletServerSettings } from '../../tabletserver/index.ts';
import { defaultsOf, isValueOf, type Setting, type SettingsOf } from './setting.ts';
import { formatSetting } from './setting-text.ts';

export interface DatabaseSettings {
  /**
   * Memory of all memtables together. Flushes begin at half of it; writes wait when all of it is used. Default: 64 MiB;
   * at least 1 MiB.
   */
  readonly memtableBytes: number;
  /** Blocks of SSTables kept in memory; 0 keeps none. Default: 64 MiB. */
  readonly blockCacheBytes: number;
  /** Single rows of SSTables kept in memory, for hot rows among cold ones; 0 keeps none. Default: 16 MiB. */
  readonly scanCacheBytes: number;
  /**
   * Indexes and Bloom filters of SSTables kept in memory, about 1 % of the bytes in files. Those that do not fit are
   * read again when they are needed. Default: 128 MiB.
   */
  readonly indexBytes: number;
  /** Memory of requests in flight and unsent responses together. Default: 128 MiB; at least 1 MiB. */
  readonly requestBytes: number;
  /**
   * In-memory locality groups: their files stay in memory after the first read. Files that do not fit are read through
   * the block cache.
   * Default: 64 MiB.
   */
  readonly inMemoryBytes: number;
  /**
   * When a write is acknowledged. `synced`: when it is on the disk; no acknowledged write is lost. `buffered`: when it
   * is passed to the commit log, which writes immediately and continuously. A power failure, or an end of the process
   * without `close`, then loses the newest writes: some milliseconds of them, at most 4 MiB and one write. `close`
   * writes all of them to the disk. Default: synced; synced or buffered.
   */
  readonly durability: 'synced' | 'buffered';
  /**
   * Length of the commit log at which memtables are flushed. It bounds the replay at a start. Default: 64 MiB; at least
   * 1 MiB.
   */
  readonly logLimitBytes: number;
  /**
   * Most bytes of the commit log that are kept for change streams alone. Beyond them, or where the disk is nearly full,
   * the oldest changes are lost to a consumer that has not read them. Default: 1 GiB; at least 1 MiB.
   */
  readonly changeLogBytes: number;
  /** Size at which a block of an SSTable is closed. Default: 64 KiB; 1 KiB to 16 MiB. */
  readonly blockSizeBytes: number;
  /** A tablet is split when its files take more than this. Default: 200 MiB; at least 1 MiB. */
  readonly tabletBytes: number;
  /**
   * A tablet of METADATA is split when its files take more than this, so that several servers share its commits. A
   * tablet of a table takes about 100 bytes. Default: 16 MiB; at least 1 MiB.
   */
  readonly metadataTabletBytes: number;
  /** Number of concurrent compactions of files, each in a thread of its own. Default: 1; 1 to 64. */
  readonly compactionsAtOnce: number;
  /**
   * Interval of the major compactions of each tablet: deleted data is removed from the disk within this time. Default:
   * 1 d; 1 s to 365 d.
   */
  readonly majorCompactionMs: number;
  /**
   * A tablet is listed as hot when it takes at least this share of its server's time, percent. Default: 10; 0 to 100.
   */
  readonly hotTabletPercent: number;
  /**
   * How long deleted tables are kept, so that they can be restored; 0 keeps none. Their files take space meanwhile.
   * Default: 0 ms; 0 ms to 365 d.
   */
  readonly keepDeletedMs: number;
  /**
   * Where backups are exported to: a directory, or `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, apart from the
   * database. All processes of a cluster need it. Default: none.
   */
  readonly backupStore: string | undefined;
  /**
   * Limits of the API. `cloud`: those of Cloud Bigtable. `default`: wider, with row keys up to 64 KiB as in the paper.
   * Default: default; default or cloud.
   */
  readonly limits: keyof typeof LIMITS;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const HOUR_MS = 3_600_000;

export const DATABASE_SETTINGS = {
  memtableBytes: {
    kind: 'bytes',
    least: MIB,
    default: 64 * MIB,
    group: 'Memory',
    doc: 'Memory of all memtables together. Flushes begin at half of it; writes wait when all of it is used.',
  },
  blockCacheBytes: {
    kind: 'bytes',
    least: 0,
    default: 64 * MIB,
    group: 'Memory',
    doc: 'Blocks of SSTables kept in memory; 0 keeps none.',
  },
  scanCacheBytes: {
    kind: 'bytes',
    least: 0,
    default: 16 * MIB,
    group: 'Memory',
    doc: 'Single rows of SSTables kept in memory, for hot rows among cold ones; 0 keeps none.',
  },
  indexBytes: {
    kind: 'bytes',
    least: 0,
    default: 128 * MIB,
    group: 'Memory',
    doc: 'Indexes and Bloom filters of SSTables kept in memory, about 1 % of the bytes in files. Those that do not fit are read again when they are needed.',
  },
  requestBytes: {
    kind: 'bytes',
    least: MIB,
    default: 128 * MIB,
    group: 'Memory',
    doc: 'Memory of requests in flight and unsent responses together.',
  },
  inMemoryBytes: {
    kind: 'bytes',
    least: 0,
    default: 64 * MIB,
    group: 'Memory',
    doc: 'In-memory locality groups: their files stay in memory after the first read. Files that do not fit are read through the block cache.',
  },
  durability: {
    kind: 'choice',
    choices: ['synced', 'buffered'],
    default: 'synced',
    group: 'Storage',
    brief:
      'when a write is acknowledged: synced = when it is on the disk; buffered = earlier, and a crash loses the last milliseconds',
    doc:
      'When a write is acknowledged. `synced`: when it is on the disk; no acknowledged write is lost. `buffered`: when it is passed to the commit log, ' +
      'which writes immediately and continuously. A power failure, or an end of the process without `close`, then loses the newest writes: some ' +
      'milliseconds of them, at most 4 MiB and one write. `close` writes all of them to the disk.',
  },
  logLimitBytes: {
    kind: 'bytes',
    least: MIB,
    default: 64 * MIB,
    group: 'Storage',
    doc: 'Length of the commit log at which memtables are flushed. It bounds the replay at a start.',
  },
  changeLogBytes: {
    kind: 'bytes',
    least: MIB,
    default: 1024 * MIB,
    group: 'Storage',
    brief: 'most bytes of the commit log that are kept for change streams alone',
    doc:
      'Most bytes of the commit log that are kept for change streams alone. Beyond them, or where the disk is nearly ' +
      'full, the oldest changes are lost to a consumer that has not read them.',
  },
  blockSizeBytes: {
    kind: 'bytes',
    least: KIB,
    most: 16 * MIB,
    default: DEFAULT_BLOCK_SIZE_BYTES,
    group: 'Storage',
    doc: 'Size at which a block of an SSTable is closed.',
  },
  tabletBytes: {
    kind: 'bytes',
    least: MIB,
    default: 200 * MIB,
    group: 'Storage',
    doc: 'A tablet is split when its files take more than this.',
  },
  metadataTabletBytes: {
    kind: 'bytes',
    least: MIB,
    default: 16 * MIB,
    group: 'Storage',
    doc: 'A tablet of METADATA is split when its files take more than this, so that several servers share its commits. A tablet of a table takes about 100 bytes.',
  },
  compactionsAtOnce: {
    kind: 'count',
    least: 1,
    most: 64,
    default: 1,
    group: 'Storage',
    doc: 'Number of concurrent compactions of files, each in a thread of its own.',
  },
  majorCompactionMs: {
    kind: 'duration',
    least: 1000,
    most: 365 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    group: 'Storage',
    doc: 'Interval of the major compactions of each tablet: deleted data is removed from the disk within this time.',
  },
  hotTabletPercent: {
    kind: 'count',
    least: 0,
    most: 100,
    default: 10,
    group: 'API',
    doc: "A tablet is listed as hot when it takes at least this share of its server's time, percent.",
  },
  keepDeletedMs: {
    kind: 'duration',
    least: 0,
    most: 365 * 24 * HOUR_MS,
    default: 0,
    group: 'Storage',
    doc: 'How long deleted tables are kept, so that they can be restored; 0 keeps none. Their files take space meanwhile.',
  },
  backupStore: {
    kind: 'text',
    placeholder: 'place',
    group: 'Storage',
    brief: 'where backups are exported to: a directory, or s3://BUCKET/PREFIX',
    doc:
      'Where backups are exported to: a directory, or `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, apart from the ' +
      'database. All processes of a cluster need it.',
  },
  limits: {
    kind: 'choice',
    choices: ['default', 'cloud'],
    default: 'default',
    group: 'API',
    brief: 'limits of the API: cloud = those of Cloud Bigtable; default = wider, with row keys up to 64 KiB',
    doc: 'Limits of the API. `cloud`: those of Cloud Bigtable. `default`: wider, with row keys up to 64 KiB as in the paper.',
  },
} as const satisfies { readonly [K in keyof DatabaseSettings]: Setting };

export const DEFAULT_SETTINGS: DatabaseSettings = Object.freeze(
  defaultsOf(DATABASE_SETTINGS) satisfies SettingsOf<typeof DATABASE_SETTINGS>,
);

const NAMES = Object.keys(DATABASE_SETTINGS) as (keyof DatabaseSettings)[];
/** No setting is a bound: an undefined one has its default. */
const OPTIONS = Object.fromEntries(NAMES.map((name) => [name, 'free'])) as OptionTable<DatabaseSettings>;

/** The defaults of a server's block cache and of its indexes: a share of the machine's memory, within bounds. */
const SERVER_CACHE_SHARE = 1 / 8;
const MIN_SERVER_CACHE_BYTES = 64 * MIB;
const MAX_SERVER_CACHE_BYTES = 256 * MIB;
/** Enough for the indexes of some 200 GB. */
const MAX_SERVER_INDEX_BYTES = 1024 * MIB;

/** `blockCacheBytes` of a process that only serves: whole MiB. */
export function serverCacheBytes(availableBytes = memoryBytes()): number {
  return Math.min(MAX_SERVER_CACHE_BYTES, serverShare(availableBytes));
}

/** `indexBytes` of a process that only serves: whole MiB. */
export function serverIndexBytes(availableBytes = memoryBytes()): number {
  return Math.min(MAX_SERVER_INDEX_BYTES, serverShare(availableBytes));
}

function serverShare(availableBytes: number): number {
  return Math.max(MIN_SERVER_CACHE_BYTES, Math.floor((availableBytes * SERVER_CACHE_SHARE) / MIB) * MIB);
}

/** The defaults with `given` over them. INVALID_ARGUMENT for an unknown name, or a value out of its range. */
export function checkSettings(given: Partial<DatabaseSettings> = {}): DatabaseSettings {
  checkOptions(given, OPTIONS, 'settings', 'setting');
  const settings = NAMES.map((name) => {
    const value = given[name] === undefined ? DEFAULT_SETTINGS[name] : given[name];
    // one without a default may be left out
    if (value === undefined || isValueOf(DATABASE_SETTINGS[name], value)) return [name, value];
    throw invalidArgument(`setting ${name} must be ${wantedValue(DATABASE_SETTINGS[name])}, not ${plainText(value)}`);
  });
  return Object.freeze(Object.fromEntries(settings) as DatabaseSettings);
}

/** The valid values of a program's setting, in plain numbers. */
function wantedValue(setting: Setting): string {
  if (setting.kind === 'choice') return `one of ${setting.choices.join(', ')}`;
  if (setting.kind === 'bytes' || setting.kind === 'count' || setting.kind === 'duration') {
    const unit = { bytes: ' of bytes', count: '', duration: ' of milliseconds' }[setting.kind];
    return `a whole number${unit} from ${setting.least} to ${setting.most ?? Number.MAX_SAFE_INTEGER}`;
  }
  return setting.kind === 'boolean' ? 'true or false' : 'a text';
}

/** Settings that several tablet servers share. Each server needs at least the minimum of one. */
const SHARED = ['memtableBytes', 'requestBytes', 'logLimitBytes', 'changeLogBytes'] as const;

/** INVALID_ARGUMENT where the shares of that number of tablet servers are too small to work with. */
export function checkShares(settings: DatabaseSettings, tabletServers: number): void {
  for (const name of SHARED) {
    const setting = DATABASE_SETTINGS[name];
    const needed = setting.least * tabletServers;
    if (settings[name] >= needed) continue;
    throw invalidArgument(
      `setting ${name} is ${formatSetting(setting, settings[name])}, which ${tabletServers} tablet servers share: they need at least ${formatSetting(setting, needed)}`,
    );
  }
}

/** The settings of each of several tablet servers: they share the sizes evenly. */
export function tabletServerSettings(settings: DatabaseSettings, tabletServers: number): TabletServerSettings {
  const { durability, blockSizeBytes, tabletBytes, metadataTabletBytes } = settings;
  const { compactionsAtOnce, majorCompactionMs, hotTabletPercent } = settings;
  const share = (bytes: number): number => Math.floor(bytes / tabletServers);
  return {
    durability,
    blockSizeBytes,
    tabletBytes,
    metadataTabletBytes,
    compactionsAtOnce,
    majorCompactionMs,
    hotTabletPercent,
    limits: LIMITS[settings.limits],
    memtableBytes: share(settings.memtableBytes),
    blockCacheBytes: share(settings.blockCacheBytes),
    scanCacheBytes: share(settings.scanCacheBytes),
    indexBytes: share(settings.indexBytes),
    inMemoryBytes: share(settings.inMemoryBytes),
    logLimitBytes: share(settings.logLimitBytes),
    changeLogBytes: share(settings.changeLogBytes),
  };
}
