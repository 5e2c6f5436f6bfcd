/**
 * The settings of a database: plain, frozen, checked once. Sizes are in bytes. A size set here bounds memory; it changes no format and may be
 * another at the next start.
 */
import { BigtableError, Code } from '../base/index.ts';
import { LIMITS } from '../model/index.ts';
import { DEFAULT_BLOCK_SIZE_BYTES } from '../sstable/index.ts';

export interface DatabaseSettings {
  /** What all memtables take together: flushing begins at half of it, writes wait at it. Default 64 MiB, at least 1 MiB. */
  readonly memtableBytes: number;
  /** Blocks of SSTables kept in memory. Default 64 MiB; 0 keeps none. */
  readonly blockCacheBytes: number;
  /** Requests in flight and answers not yet sent, all together. Default 128 MiB, at least 1 MiB. */
  readonly requestBytes: number;
  /** Size at which a block of an SSTable is closed. Default 64 KiB, from 1 KiB to 16 MiB. */
  readonly blockSizeBytes: number;
  /** Length of the commit log that forces flushes, and so bounds what a start replays. Default 64 MiB, at least 1 MiB. */
  readonly logLimitBytes: number;
  /** Limits of the API: `cloud` = those of Cloud Bigtable; `default` = wider where the paper is (row keys to 64 KiB). */
  readonly limits: keyof typeof LIMITS;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const DEFAULT_SETTINGS: DatabaseSettings = Object.freeze({
  memtableBytes: 64 * MIB,
  blockCacheBytes: 64 * MIB,
  requestBytes: 128 * MIB,
  blockSizeBytes: DEFAULT_BLOCK_SIZE_BYTES,
  logLimitBytes: 64 * MIB,
  limits: 'default',
});

const SIZES: Readonly<Record<Exclude<keyof DatabaseSettings, 'limits'>, readonly [least: number, most: number]>> = {
  memtableBytes: [MIB, Number.MAX_SAFE_INTEGER],
  blockCacheBytes: [0, Number.MAX_SAFE_INTEGER],
  requestBytes: [MIB, Number.MAX_SAFE_INTEGER],
  blockSizeBytes: [KIB, 16 * MIB],
  logLimitBytes: [MIB, Number.MAX_SAFE_INTEGER],
};

/** The defaults with `given` over them. INVALID_ARGUMENT for a name that is none, or a value out of its range. */
export function checkSettings(given: Partial<DatabaseSettings> = {}): DatabaseSettings {
  const names = Object.keys(DEFAULT_SETTINGS);
  for (const name of Object.keys(given)) if (!names.includes(name)) throw wrong(`there is no setting "${name}"; there are ${names.join(', ')}`);
  const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const settings: DatabaseSettings = Object.freeze({ ...DEFAULT_SETTINGS, ...chosen });
  for (const [name, [least, most]] of Object.entries(SIZES)) {
    const value = settings[name as keyof typeof SIZES];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw wrong(`setting ${name} must be a number of bytes from ${least} to ${most}, not ${String(value)}`);
    }
  }
  if (!Object.hasOwn(LIMITS, settings.limits)) throw wrong(`setting limits must be one of ${Object.keys(LIMITS).join(', ')}, not ${String(settings.limits)}`);
  return settings;
}

function wrong(message: string): BigtableError {
  return new BigtableError(Code.INVALID_ARGUMENT, message);
}
