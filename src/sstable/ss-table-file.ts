/**
 * Opens the frame of an SSTable: footer, directory, index, properties and row-range deletions, all checked. One read for most files.
 */
import { CorruptionError } from '../base/index.ts';
import type { RowRangeDeletion } from '../model/index.ts';
import { BlockIndex } from './block-index.ts';
import { decodeSection } from './byte-reader.ts';
import type { CheckedFile } from './checked-file.ts';
import { decodeDirectory, decodeFooter, type Extent, FOOTER_BYTES, type Footer, findSection, type Section, SectionName, TRAILER_BYTES } from './format.ts';
import { decodeProperties, type SsTableProperties, totalEntries } from './properties.ts';
import { decodeRowRangeDeletions } from './row-range-deletions.ts';

/** The end of the file, fetched first: holds the index of a file of about 100 MB. */
const TAIL_BYTES = 128 * 1024;

export interface SsTableFrame {
  readonly footer: Footer;
  readonly sections: readonly Section[];
  readonly index: BlockIndex;
  readonly properties: SsTableProperties;
  readonly rowRangeDeletions: readonly RowRangeDeletion[];
}

export async function openFrame(file: CheckedFile, checksum: (bytes: Uint8Array) => number): Promise<SsTableFrame> {
  const fileBytes = await file.size();
  const tailAt = Math.max(0, fileBytes - TAIL_BYTES);
  const tail = await file.read(tailAt, fileBytes - tailAt);
  const footer = decodeFooter(file.path, fileBytes, tail.subarray(Math.max(0, tail.length - FOOTER_BYTES)), checksum);
  /** A copy, so that what is kept does not hold the whole tail. */
  const part = async (extent: Extent): Promise<Buffer> => {
    const at = extent.offset - tailAt;
    if (at < 0) return file.readChecked(extent);
    return Buffer.from(await file.checkPaced(extent, tail.subarray(at, at + extent.lengthBytes + TRAILER_BYTES)));
  };
  const sections = decodeDirectory(file.path, footer.directory, await part(footer.directory));
  const section = (name: string): Section => findSection(file.path, footer.directory, sections, name);
  const indexAt = section(SectionName.index);
  const propertiesAt = section(SectionName.properties);
  const deletionsAt = section(SectionName.rowRangeDeletions);
  const index = BlockIndex.decode(file.path, indexAt, await part(indexAt), (sections[0] as Section).offset);
  const properties = decodeSection(file.path, propertiesAt.offset, propertiesAt.name, await part(propertiesAt), decodeProperties);
  const rowRangeDeletions = decodeSection(file.path, deletionsAt.offset, deletionsAt.name, await part(deletionsAt), decodeRowRangeDeletions);
  checkAgreement(file.path, propertiesAt, index, properties);
  return { footer, sections, index, properties, rowRangeDeletions };
}

/** Index and properties were written from the same entries. */
function checkAgreement(path: string, section: Section, index: BlockIndex, properties: SsTableProperties): void {
  const last = index.length - 1;
  const firstRow = last < 0 ? undefined : index.firstRow(0);
  const lastRow = last < 0 ? undefined : index.lastRow(last);
  let entries = 0;
  for (let block = 0; block <= last; block++) entries += index.entries(block);
  if (firstRow !== properties.firstRow || lastRow !== properties.lastRow || entries !== totalEntries(properties.entries)) {
    throw new CorruptionError(path, section.offset, 'index and properties disagree');
  }
}
