/** The options for writing SSTables of a locality group: its tuning, with the defaults. */
import type { LocalityGroup } from '../../model/index.ts';
import type { SsTableWriteOptions } from '../../sstable/index.ts';

/** `blockSizeBytes`: the default of the group. */
export function writeOptions(
  group: string,
  tuning: LocalityGroup,
  blockSizeBytes: number,
): Required<Pick<SsTableWriteOptions, 'group' | 'blockSizeBytes' | 'compression' | 'bloomFilter'>> {
  return {
    group,
    blockSizeBytes: tuning.blockSizeBytes ?? blockSizeBytes,
    compression: tuning.compression ?? { kind: 'lz4' },
    bloomFilter: tuning.bloomFilter ?? 'row',
  };
}
