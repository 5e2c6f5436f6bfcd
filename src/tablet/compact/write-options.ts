/** How the SSTables of a locality group are written: its tuning, with the defaults. */
import type { LocalityGroup } from '../../model/index.ts';
import type { SsTableWriteOptions } from '../../sstable/index.ts';

/** `blockSizeBytes`: where the group has no size of its own. */
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
