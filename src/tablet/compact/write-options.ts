/** The options for writing SSTables of a locality group: its tuning, with the defaults. */
import type { GroupCompression, LocalityGroup } from '../../model/index.ts';
import type { SsTable, SsTableWriteOptions } from '../../sstable/index.ts';

/** The share of its raw bytes of which a file is at least that hardly shrank. */
const HARDLY_SHRANK = 63 / 64;

/**
 * `blockSizeBytes`: the default of the group. `before`: files of the group whose contents are like those of the new
 * one. What they say of their compression saves its attempts, also in another thread and after a restart.
 */
export function writeOptions(
  group: string,
  tuning: LocalityGroup,
  blockSizeBytes: number,
  before: readonly Pick<SsTable, 'properties'>[],
): Required<
  Pick<SsTableWriteOptions, 'group' | 'blockSizeBytes' | 'compression' | 'isCompressionDoubtful' | 'bloomFilter'>
> {
  const compression = tuning.compression ?? { kind: 'lz4' };
  return {
    group,
    blockSizeBytes: tuning.blockSizeBytes ?? blockSizeBytes,
    compression,
    isCompressionDoubtful: before.length > 0 && before.every(({ properties }) => hardlyShrank(properties, compression)),
    bloomFilter: tuning.bloomFilter ?? 'row',
  };
}

function hardlyShrank({ compression }: SsTable['properties'], { kind }: GroupCompression): boolean {
  const { rawBytes, storedBytes } = compression;
  return compression.kind === kind && rawBytes > 0 && storedBytes >= rawBytes * HARDLY_SHRANK;
}
