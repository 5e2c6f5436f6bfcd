/**
 * The form of a table's locality groups: names, tuning, and that no family is in two. The master checks that the
 * families exist. All throw INVALID_ARGUMENT.
 */
import {
  type BigtableError,
  checkOptions,
  describeValue,
  invalidArgument,
  isObjectOfNames,
  type OptionTable,
  plainText,
  quote,
} from '../base/index.ts';
import {
  DEFAULT_GROUP,
  type GroupCompression,
  type GroupLayout,
  type Limits,
  type LocalityGroup,
} from '../model/index.ts';
import { checkFamilyName } from './check-names.ts';

/** Every flush of a tablet writes a file for each group. */
const MAX_GROUPS = 32;
const GROUP_NAME = /^[-_.a-zA-Z0-9]{1,64}$/;
const BLOCK_BYTES = { least: 1024, most: 16 * 1024 * 1024 } as const;
const COMPRESSIONS: readonly GroupCompression['kind'][] = ['none', 'lz4', 'zstd', 'zstd-dict', 'two-pass'];
const BLOOM_FILTERS: readonly LocalityGroup['bloomFilter'][] = ['none', 'row', 'row-column'];
const LEVELS = { least: 1, most: 19 } as const;
const OPTIONS = {
  families: 'free',
  blockSizeBytes: 'free',
  compression: 'free',
  bloomFilter: 'free',
  inMemory: 'free',
} satisfies OptionTable<GroupLayout[string]>;
const COMPRESSION = { kind: 'bound', level: 'free' } satisfies OptionTable<GroupCompression>;

export function checkGroupLayout(layout: GroupLayout, limits: Limits): void {
  const groupOf = new Map<string, string>();
  const names = Object.keys(layout);
  if (names.length > MAX_GROUPS)
    throw invalidArgument(`a table has at most ${MAX_GROUPS} locality groups, not ${names.length}`);
  for (const [name, { families = [], ...tuning }] of Object.entries(layout)) {
    if (!GROUP_NAME.test(name))
      throw invalidArgument(`locality group ${quote(name)} must be named by 1 to 64 characters of [-_.a-zA-Z0-9]`);
    checkTuning(name, tuning);
    for (const family of families) {
      checkFamilyName(family, limits);
      const other = groupOf.get(family);
      if (other !== undefined)
        throw invalidArgument(`column family ${quote(family)} is put into two locality groups, ${other} and ${name}`);
      groupOf.set(family, name);
    }
    if (families.length === 0 && name !== DEFAULT_GROUP)
      throw invalidArgument(`locality group ${quote(name)} has no column family`);
  }
}

function checkTuning(group: string, tuning: LocalityGroup): void {
  const wrong = (what: string): BigtableError => invalidArgument(`locality group ${quote(group)}: ${what}`);
  checkOptions(tuning, OPTIONS, `locality group ${quote(group)}`);
  const { blockSizeBytes, compression, bloomFilter, inMemory } = tuning;
  if (blockSizeBytes !== undefined && !isWhole(blockSizeBytes, BLOCK_BYTES)) {
    throw wrong(
      `blockSizeBytes must be a whole number from ${BLOCK_BYTES.least} to ${BLOCK_BYTES.most}, not ${plainText(blockSizeBytes)}`,
    );
  }
  if (compression !== undefined) {
    if (!isObjectOfNames(compression)) {
      throw wrong(`compression must be an object { kind }, or its kind as text, not ${describeValue(compression)}`);
    }
    checkOptions(compression, COMPRESSION, `locality group ${quote(group)}: compression`);
    if (!COMPRESSIONS.includes(compression.kind)) {
      throw wrong(`compression must be one of ${COMPRESSIONS.join(', ')}, not ${plainText(compression.kind)}`);
    }
    if (compression.level !== undefined && !isWhole(compression.level, LEVELS)) {
      throw wrong(
        `the level of a compression must be a whole number from ${LEVELS.least} to ${LEVELS.most}, not ${plainText(compression.level)}`,
      );
    }
  }
  if (bloomFilter !== undefined && !BLOOM_FILTERS.includes(bloomFilter))
    throw wrong(`bloomFilter must be one of ${BLOOM_FILTERS.join(', ')}, not ${plainText(bloomFilter)}`);
  if (inMemory !== undefined && typeof inMemory !== 'boolean')
    throw wrong(`inMemory must be true or false, not ${plainText(inMemory)}`);
}

function isWhole(value: number, { least, most }: { readonly least: number; readonly most: number }): boolean {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}
