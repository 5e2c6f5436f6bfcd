/**
 * The frame of an SSTable: trailer, directory and footer. Format: docs/formats/sstable.md. All of it reaches the disk:
 * never renumber.
 */
import { assert, BigtableError, Code, CorruptionError } from '../../base/index.ts';
import type { Checksum } from '../../env/index.ts';
import { ByteReader, decodeSection } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';

export const FORMAT_VERSION = 1;
export const MAGIC = 'EDUBBASS';
export const FOOTER_BYTES = 44;
const CRC_AT = 32;
const MAGIC_AT = 36;

/** Codec and checksum after every block and section. */
export const TRAILER_BYTES = 5;
export const CRC_BYTES = 4;
/** Codec of an uncompressed part. */
export const CODEC_NONE = 0;

/** Required feature: blocks are stored with codecs other than none. */
export const COMPRESSED_BLOCKS = 1;
const KNOWN_FEATURES = COMPRESSED_BLOCKS;

export const SectionName = {
  compressionShared: 'compression-shared',
  pages: 'pages',
  bloom: 'bloom',
  index: 'index',
  properties: 'properties',
  rowRangeDeletions: 'row-range-deletions',
} as const;

/** A part of the file; the length is without the trailer. */
export interface Extent {
  readonly offset: number;
  readonly lengthBytes: number;
}

export interface Section extends Extent {
  readonly name: string;
}

export interface Footer {
  readonly directory: Extent;
  readonly formatVersion: number;
  readonly requiredFeatures: number;
  readonly optionalFeatures: number;
  readonly fileBytes: number;
}

export function encodeFooter(footer: Footer, checksum: Checksum): Buffer {
  const out = new ByteWriter(FOOTER_BYTES);
  out.uint64(footer.directory.offset);
  out.uint32(footer.directory.lengthBytes);
  out.uint32(footer.formatVersion);
  out.uint32(footer.requiredFeatures);
  out.uint32(footer.optionalFeatures);
  out.uint64(footer.fileBytes);
  out.uint32(checksum(out.written()));
  out.text(MAGIC);
  assert(out.length === FOOTER_BYTES, 'a footer has its length');
  return out.written();
}

/**
 * Decodes the last bytes of a file of `fileBytes`. CorruptionError if it is damaged, FAILED_PRECONDITION if only a
 * newer program can read it.
 */
export function decodeFooter(file: string, fileBytes: number, bytes: Buffer, checksum: Checksum): Footer {
  const at = fileBytes - FOOTER_BYTES;
  if (at < 0) throw new CorruptionError(file, fileBytes, `a file of ${fileBytes} bytes is too short for an SSTable`);
  if (bytes.latin1Slice(MAGIC_AT, FOOTER_BYTES) !== MAGIC) {
    throw new CorruptionError(file, at + MAGIC_AT, `not the end of an SSTable: "${MAGIC}" is missing`);
  }
  if (checksum(bytes.subarray(0, CRC_AT)) !== bytes.readUInt32BE(CRC_AT))
    throw new CorruptionError(file, at, 'the checksum of the footer is wrong');
  const reader = new ByteReader(bytes);
  const footer: Footer = {
    directory: { offset: reader.uint64(), lengthBytes: reader.uint32() },
    formatVersion: reader.uint32(),
    requiredFeatures: reader.uint32(),
    optionalFeatures: reader.uint32(),
    fileBytes: reader.uint64(),
  };
  if (footer.formatVersion !== FORMAT_VERSION) {
    throw refusal(
      `${file} is an SSTable of format version ${footer.formatVersion}; this version of Edubba reads version ${FORMAT_VERSION}`,
    );
  }
  const unknown = footer.requiredFeatures & ~KNOWN_FEATURES;
  if (unknown !== 0) {
    throw refusal(`${file} needs features 0x${(unknown >>> 0).toString(16)} that this version of Edubba does not know`);
  }
  if (footer.fileBytes !== fileBytes)
    throw new CorruptionError(file, at, `the file has ${fileBytes} bytes and was written with ${footer.fileBytes}`);
  if (footer.directory.offset + footer.directory.lengthBytes + TRAILER_BYTES !== at) {
    throw new CorruptionError(file, at, 'the directory does not end where the footer begins');
  }
  return footer;
}

/** The error for a sound file that only a newer program can read. */
export function refusal(message: string): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, message);
}

export function encodeDirectory(sections: readonly Section[]): Buffer {
  const out = new ByteWriter();
  out.varint(sections.length);
  let end = sections[0]?.offset;
  for (const { name, offset, lengthBytes } of sections) {
    assert(offset === end, 'sections follow one another without gaps');
    end = offset + lengthBytes + TRAILER_BYTES;
    out.string(name);
    out.varint(offset);
    out.varint(lengthBytes);
  }
  return out.written();
}

/** The sections in the order of the file. They fill it without gaps up to the directory. */
export function decodeDirectory(file: string, directory: Extent, bytes: Buffer): Section[] {
  return decodeSection(file, directory.offset, 'directory', bytes, (reader) => {
    const sections: Section[] = [];
    for (let left = reader.varint(); left > 0; left--)
      sections.push({ name: reader.string(), offset: reader.varint(), lengthBytes: reader.varint() });
    let end = directory.offset;
    for (const section of sections.toReversed()) {
      if (section.offset + section.lengthBytes + TRAILER_BYTES !== end)
        throw new RangeError(`section "${section.name}" does not end at ${end}`);
      end = section.offset;
    }
    if (new Set(sections.map(({ name }) => name)).size !== sections.length)
      throw new RangeError('a section is listed twice');
    return sections;
  });
}

export function findSection(file: string, directory: Extent, sections: readonly Section[], name: string): Section {
  const section = optionalSection(sections, name);
  if (!section) throw new CorruptionError(file, directory.offset, `section "${name}" is missing`);
  return section;
}

export function optionalSection(sections: readonly Section[], name: string): Section | undefined {
  return sections.find((each) => each.name === name);
}
