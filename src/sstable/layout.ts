/** The parts of an SSTable as plain data, for `inspect`. Reads and checks all but the blocks. */
import type { ByteString } from '../base/index.ts';
import { type Clock, type Codecs, type FileSystem, Metrics } from '../env/index.ts';
import type { EntryPosition, RowRangeDeletion } from '../model/index.ts';
import type { BloomFilterKind } from './format/bloom-filter.ts';
import { CheckedFile } from './format/checked-file.ts';
import type { Section } from './format/format.ts';
import type { SsTableProperties } from './format/properties.ts';
import { openFrame } from './read/ss-table-file.ts';

export interface BlockLayout {
  readonly offset: number;
  /** As stored, without the trailer. */
  readonly lengthBytes: number;
  /** Before compression. */
  readonly rawBytes: number;
  readonly entries: number;
  /** Pages that can be read on their own; 0 = the block is read as a whole. */
  readonly pages: number;
  readonly first: EntryPosition;
  readonly lastRow: ByteString;
}

export interface SsTableLayout {
  readonly path: string;
  readonly sizeBytes: number;
  readonly formatVersion: number;
  readonly requiredFeatures: number;
  readonly optionalFeatures: number;
  /** In the order of the file, unknown ones too. */
  readonly sections: readonly Section[];
  readonly properties: SsTableProperties;
  readonly rowRangeDeletions: readonly RowRangeDeletion[];
  readonly blocks: readonly BlockLayout[];
  /** Undefined if there is none. */
  readonly bloomFilter:
    | { readonly kind: BloomFilterKind; readonly keys: number; readonly sizeBytes: number }
    | undefined;
  /** Bytes that compressed blocks share: a dictionary, or the reference of long strings; 0 = none. */
  readonly compressionSharedBytes: number;
}

/** Errors are those of `SsTable.open`. */
export async function describeSsTable(
  components: { readonly fileSystem: FileSystem; readonly codecs: Codecs; readonly clock: Clock },
  path: string,
): Promise<SsTableLayout> {
  const file = new CheckedFile(path, { ...components, metrics: new Metrics() });
  const { footer, sections, index, pages, properties, rowRangeDeletions, bloom, compressionShared } = await openFrame(
    file,
    components.codecs.checksum,
  );
  const blocks = Array.from(
    { length: index.length },
    (_, block): BlockLayout => ({
      ...index.extent(block),
      rawBytes: index.rawLengthBytes(block),
      entries: index.entries(block),
      pages: pages?.pagesOf(block) ?? 0,
      first: index.first(block),
      lastRow: index.lastRow(block),
    }),
  );
  const { fileBytes, formatVersion, requiredFeatures, optionalFeatures } = footer;
  return {
    path,
    sizeBytes: fileBytes,
    formatVersion,
    requiredFeatures,
    optionalFeatures,
    sections,
    properties,
    rowRangeDeletions,
    blocks,
    bloomFilter: bloom && { kind: bloom.kind, keys: bloom.keys, sizeBytes: bloom.sizeBytes },
    compressionSharedBytes: compressionShared?.length ?? 0,
  };
}
