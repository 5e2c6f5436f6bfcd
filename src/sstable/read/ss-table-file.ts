/**
 * Opens the frame of an SSTable: footer, directory, index, pages, properties, row-range deletions, Bloom filter and
 * what compressed blocks share, all checked. One read for most files.
 */
import { CorruptionError } from '../../base/index.ts';
import type { RowRangeDeletion } from '../../model/index.ts';
import { BlockIndex } from '../format/block-index.ts';
import { BloomFilter } from '../format/bloom-filter.ts';
import { decodeSection } from '../format/byte-reader.ts';
import type { CheckedFile } from '../format/checked-file.ts';
import {
  COMPRESSED_BLOCKS,
  decodeDirectory,
  decodeFooter,
  type Extent,
  FOOTER_BYTES,
  type Footer,
  findSection,
  optionalSection,
  type Section,
  SectionName,
  TRAILER_BYTES,
} from '../format/format.ts';
import { PageIndex } from '../format/page-index.ts';
import { decodeProperties, type SsTableProperties, totalEntries } from '../format/properties.ts';
import { decodeRowRangeDeletions } from '../format/row-range-deletions.ts';

/** Bytes at the end of the file that are read first: they hold all sections of a file of about 30 MB. */
const TAIL_BYTES = 128 * 1024;

export interface SsTableFrame {
  readonly footer: Footer;
  readonly sections: readonly Section[];
  readonly index: BlockIndex;
  /** Undefined if no block has pages, as in files of early versions. */
  readonly pages: PageIndex | undefined;
  readonly properties: SsTableProperties;
  readonly rowRangeDeletions: readonly RowRangeDeletion[];
  readonly bloom: BloomFilter | undefined;
  /** Bytes that compressed blocks share. */
  readonly compressionShared: Buffer | undefined;
  /** Memory of index, pages, filter and what compressed blocks share. */
  readonly memoryBytes: number;
}

/** Memory of a frame's objects, in addition to its bytes. */
const OVERHEAD_BYTES = 1024;

export async function openFrame(file: CheckedFile, checksum: (bytes: Uint8Array) => number): Promise<SsTableFrame> {
  const fileBytes = await file.size();
  const tailAt = Math.max(0, fileBytes - TAIL_BYTES);
  const tail = await file.read(tailAt, fileBytes - tailAt);
  const footer = decodeFooter(file.path, fileBytes, tail.subarray(Math.max(0, tail.length - FOOTER_BYTES)), checksum);
  /** The bytes of a section. A copy, so that it does not keep the whole tail in memory, which is less than a slice. */
  const part = (extent: Extent): Buffer | Promise<Buffer> => {
    const at = extent.offset - tailAt;
    if (at < 0) return file.readSection(extent);
    const stored = tail.subarray(at, at + extent.lengthBytes + TRAILER_BYTES);
    return file.uncompressed(extent, Buffer.from(file.check(extent, stored)), stored[extent.lengthBytes]!);
  };
  const sections = decodeDirectory(file.path, footer.directory, await part(footer.directory));
  const section = (name: string): Section => findSection(file.path, footer.directory, sections, name);
  const optional = (name: string): Buffer | Promise<Buffer> | undefined => {
    const found = optionalSection(sections, name);
    return found && part(found);
  };
  const indexAt = section(SectionName.index);
  const propertiesAt = section(SectionName.properties);
  const deletionsAt = section(SectionName.rowRangeDeletions);
  const [indexBytes, propertiesBytes, deletionsBytes, bloomBytes, shared, pagesBytes] = await Promise.all([
    part(indexAt),
    part(propertiesAt),
    part(deletionsAt),
    optional(SectionName.bloom),
    optional(SectionName.compressionShared),
    optional(SectionName.pages),
  ]);
  const index = BlockIndex.decode(file.path, indexAt, indexBytes, sections[0]!.offset);
  const pages = pagesBytes && PageIndex.decode(file.path, section(SectionName.pages), pagesBytes, index);
  const blockBytes = { raw: index.rawBytes, stored: index.storedBytes };
  const properties = decodeSection(file.path, propertiesAt.offset, propertiesAt.name, propertiesBytes, (reader) =>
    decodeProperties(reader, blockBytes),
  );
  const rowRangeDeletions = decodeSection(
    file.path,
    deletionsAt.offset,
    deletionsAt.name,
    deletionsBytes,
    decodeRowRangeDeletions,
  );
  let bloom: BloomFilter | undefined;
  if (bloomBytes !== undefined) {
    const { offset, name } = section(SectionName.bloom);
    bloom = decodeSection(file.path, offset, name, bloomBytes, (reader) => new BloomFilter(reader, bloomBytes));
  }
  const frame = {
    footer,
    sections,
    index,
    pages,
    properties,
    rowRangeDeletions,
    bloom,
    compressionShared: shared,
    memoryBytes:
      OVERHEAD_BYTES + index.memoryBytes + (pages?.memoryBytes ?? 0) + (bloom?.sizeBytes ?? 0) + (shared?.length ?? 0),
  };
  checkAgreement(file.path, propertiesAt, frame);
  return frame;
}

/** The sections must describe the same entries. */
function checkAgreement(path: string, section: Section, { footer, index, properties, bloom }: SsTableFrame): void {
  const last = index.length - 1;
  const firstRow = last < 0 ? undefined : index.firstRow(0);
  const lastRow = last < 0 ? undefined : index.lastRow(last);
  let entries = 0;
  for (let block = 0; block <= last; block++) entries += index.entries(block);
  if (
    firstRow !== properties.firstRow ||
    lastRow !== properties.lastRow ||
    entries !== totalEntries(properties.entries)
  ) {
    throw new CorruptionError(path, section.offset, 'index and properties disagree');
  }
  if ((bloom?.kind ?? 'none') !== properties.bloomFilter)
    throw new CorruptionError(path, section.offset, 'filter and properties disagree');
  if (index.hasCompressed && (footer.requiredFeatures & COMPRESSED_BLOCKS) === 0) {
    throw new CorruptionError(path, section.offset, 'the index tells of compressed blocks and the footer does not');
  }
}
