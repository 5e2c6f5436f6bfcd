/**
 * The properties of an SSTable: counts, bounds and origin. Format: section "properties" of docs/formats/sstable.md. A
 * `PropertiesCollector` gathers those that follow from the entries; `verify` gathers them again and compares.
 */
import { assert, type ByteString, type Int64, toText, utf8 } from '../../base/index.ts';
import { EntryKind, type EntryPosition, isDeletion } from '../../model/index.ts';
import type { CompressionKind } from '../../compress/index.ts';
import { type BloomFilterKind, BLOOM_FILTER_KINDS } from './bloom-filter.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { decodeFamilies, encodeFamilies, FamilyCollector, type FamilyStatistics } from './families.ts';
import { decodeLineage, encodeLineage, type Lineage, type RecordPoint } from './lineage.ts';

export type EntryKindName = keyof typeof EntryKind;

/** Properties that follow from the entries. */
export interface EntryStatistics {
  readonly entries: Readonly<Record<EntryKindName, number>>;
  /** Rows that have an entry. */
  readonly rows: number;
  /** Undefined if there is no entry. */
  readonly firstRow: ByteString | undefined;
  readonly lastRow: ByteString | undefined;
  /** Lowest timestamp of the cells (puts and merges); undefined if there is none. */
  readonly minTimestamp: Int64 | undefined;
  readonly maxTimestamp: Int64 | undefined;
  /** Sum over entries of row + column + 8 + value, before any compression. */
  readonly rawBytes: number;
  /**
   * Families that have an entry, by stored name, ascending; undefined for files of early versions, which may hold any.
   */
  readonly families: readonly FamilyStatistics[] | undefined;
}

export interface CompressionStatistics {
  /** Compression that the writer was set to; single blocks may be stored uncompressed. */
  readonly kind: CompressionKind;
  /** Bytes of all blocks before compression. */
  readonly rawBytes: number;
  /** Bytes of all blocks as stored, without their trailers. */
  readonly storedBytes: number;
}

export interface SsTableProperties extends EntryStatistics {
  /** Locality group. */
  readonly group: string;
  readonly createdMicros: Int64;
  /** The cluster whose writes these are; empty = the one that holds the file. */
  readonly origin: string;
  /** The newest record that is in the file; undefined if unknown. Orders files of different groups by age. */
  readonly newest: RecordPoint | undefined;
  /** Undefined if the writer did not store it. */
  readonly lineage: Lineage | undefined;
  /**
   * The newest server timestamp in the tablet when the file was written; 0 = none, undefined if the writer did not
   * store it.
   */
  readonly lastServerMicros: number | undefined;
  readonly compression: CompressionStatistics;
  readonly bloomFilter: BloomFilterKind;
}

const COMPRESSION_KINDS: readonly CompressionKind[] = ['none', 'lz4', 'zstd', 'zstd-dict', 'two-pass'];
const VERSION = 1;
const KIND_NAMES = Object.keys(EntryKind) as EntryKindName[];
const COUNT_NAMES = KIND_NAMES.map((name): [EntryKindName, string] => [name, `entries.${name}`]);
const NAME_OF_KIND: (EntryKindName | undefined)[] = new Array(256).fill(undefined);
for (const name of KIND_NAMES) NAME_OF_KIND[EntryKind[name]] = name;
const TIMESTAMP_BYTES = 8;

/** Undefined for an unknown number. */
export function kindName(kind: number): EntryKindName | undefined {
  return NAME_OF_KIND[kind];
}

export class PropertiesCollector {
  /** By kind number. */
  readonly #counts = new Float64Array(256);
  #rows = 0;
  #firstRow: ByteString | undefined;
  #lastRow: ByteString | undefined;
  #minTimestamp: Int64 | undefined;
  #maxTimestamp: Int64 | undefined;
  #rawBytes = 0;
  readonly #families = new FamilyCollector();

  add(entry: EntryPosition, valueLength: number): void {
    const { row, column, kind, timestamp } = entry;
    const bytes = row.length + column.length + TIMESTAMP_BYTES + valueLength;
    this.#counts[kind] = this.#counts[kind]! + 1;
    this.#rawBytes += bytes;
    if (kind !== EntryKind.rowDeletion) this.#families.add(column, !isDeletion(kind), bytes);
    if (row !== this.#lastRow) {
      this.#firstRow ??= row;
      this.#lastRow = row;
      this.#rows++;
    }
    if (isDeletion(kind)) return;
    if (this.#minTimestamp === undefined || timestamp < this.#minTimestamp) this.#minTimestamp = timestamp;
    if (this.#maxTimestamp === undefined || timestamp > this.#maxTimestamp) this.#maxTimestamp = timestamp;
  }

  statistics(): EntryStatistics {
    return {
      entries: Object.fromEntries(KIND_NAMES.map((name) => [name, this.#counts[EntryKind[name]]!])) as Record<
        EntryKindName,
        number
      >,
      rows: this.#rows,
      firstRow: this.#firstRow,
      lastRow: this.#lastRow,
      minTimestamp: this.#minTimestamp,
      maxTimestamp: this.#maxTimestamp,
      rawBytes: this.#rawBytes,
      families: this.#families.statistics(),
    };
  }
}

/** Number of all entries. */
export function totalEntries(entries: Readonly<Record<EntryKindName, number>>): number {
  return KIND_NAMES.reduce((sum, name) => sum + entries[name], 0);
}

export function encodeProperties(properties: SsTableProperties): Buffer {
  const pairs: [string, (out: ByteWriter) => void][] = [];
  const put = (name: string, write: (out: ByteWriter) => void): void => void pairs.push([name, write]);
  for (const [name, property] of COUNT_NAMES)
    if (properties.entries[name] > 0) put(property, (out) => out.varint(properties.entries[name]));
  put('rows', (out) => out.varint(properties.rows));
  const { firstRow, lastRow, minTimestamp, maxTimestamp } = properties;
  assert((firstRow ?? '') <= (lastRow ?? ''), 'the first row is at or below the last');
  assert((firstRow === undefined) === (totalEntries(properties.entries) === 0), 'a file with entries has a first row');
  if (firstRow !== undefined) put('firstRow', (out) => out.text(firstRow));
  if (lastRow !== undefined) put('lastRow', (out) => out.text(lastRow));
  if (minTimestamp !== undefined) put('minTimestamp', (out) => out.int64(minTimestamp));
  if (maxTimestamp !== undefined) put('maxTimestamp', (out) => out.int64(maxTimestamp));
  put('rawBytes', (out) => out.varint(properties.rawBytes));
  put('group', (out) => out.text(utf8(properties.group)));
  put('createdMicros', (out) => out.int64(properties.createdMicros));
  put('origin', (out) => out.text(utf8(properties.origin)));
  const { families, newest, lineage, lastServerMicros, compression, bloomFilter } = properties;
  if (families !== undefined) put('families', (out) => encodeFamilies(out, families));
  if (newest !== undefined) {
    put('newestEpoch', (out) => out.varint(newest.epoch));
    put('newestSequence', (out) => out.varint(newest.sequence));
  }
  if (lineage !== undefined) put('lineage', (out) => encodeLineage(out, lineage));
  if (lastServerMicros !== undefined) put('lastServerMicros', (out) => out.varint(lastServerMicros));
  if (compression.kind !== 'none') {
    put('compression', (out) => out.text(compression.kind));
    put('blockRawBytes', (out) => out.varint(compression.rawBytes));
    put('blockStoredBytes', (out) => out.varint(compression.storedBytes));
  }
  if (bloomFilter !== 'none') put('bloomFilter', (out) => out.text(bloomFilter));

  const out = new ByteWriter();
  out.varint(VERSION);
  out.varint(pairs.length);
  const value = new ByteWriter(256);
  for (const [name, write] of pairs) {
    value.clear();
    write(value);
    out.string(name);
    out.varint(value.length);
    out.raw(value.written());
  }
  return out.written();
}

/** `blockBytes` are those of all blocks in the index, before compression and as stored. */
export function decodeProperties(
  reader: ByteReader,
  blockBytes: { readonly raw: number; readonly stored: number },
): SsTableProperties {
  const version = reader.varint();
  if (version !== VERSION) throw new RangeError(`version ${version} instead of ${VERSION}`);
  const pairs = new Map<string, Buffer>();
  for (let left = reader.varint(); left > 0; left--) {
    const name = reader.string();
    if (pairs.has(name)) throw new RangeError(`"${name}" is listed twice`);
    pairs.set(name, reader.view());
  }
  const optional = <T>(name: string, decode: (value: ByteReader) => T): T | undefined => {
    const value = pairs.get(name);
    return value === undefined ? undefined : decode(new ByteReader(value));
  };
  const required = <T>(name: string, decode: (value: ByteReader) => T): T => {
    const value = optional(name, decode);
    if (value === undefined) throw new RangeError(`"${name}" is missing`);
    return value;
  };
  const text = (name: string): ByteString | undefined => {
    const value = pairs.get(name);
    return value?.latin1Slice(0, value.length);
  };
  const varint = (value: ByteReader): number => value.varint();
  const int64 = (value: ByteReader): Int64 => value.int64();
  const oneOf = <T extends string>(name: string, values: readonly T[], absent: T): T => {
    const found = text(name);
    const value = found === undefined ? absent : values.find((each) => each === found);
    if (value === undefined) throw new RangeError(`${name} "${found}"`);
    return value;
  };
  const newestEpoch = optional('newestEpoch', varint);
  const compression = {
    kind: oneOf('compression', COMPRESSION_KINDS, 'none'),
    rawBytes: blockBytes.raw,
    storedBytes: blockBytes.stored,
  };
  const { raw, stored } = blockBytes;
  if (
    (optional('blockRawBytes', varint) ?? raw) !== raw ||
    (optional('blockStoredBytes', varint) ?? stored) !== stored
  ) {
    throw new RangeError(
      `the index tells of ${stored} bytes of blocks, ${raw} before compression, and the properties of others`,
    );
  }
  const entries = COUNT_NAMES.map(([name, property]): [EntryKindName, number] => [
    name,
    optional(property, varint) ?? 0,
  ]);
  return Object.freeze({
    entries: Object.freeze(Object.fromEntries(entries) as Record<EntryKindName, number>),
    rows: required('rows', varint),
    firstRow: text('firstRow'),
    lastRow: text('lastRow'),
    minTimestamp: optional('minTimestamp', int64),
    maxTimestamp: optional('maxTimestamp', int64),
    rawBytes: required('rawBytes', varint),
    group: toText(text('group') ?? ''),
    createdMicros: required('createdMicros', int64),
    origin: toText(text('origin') ?? ''),
    families: optional('families', decodeFamilies),
    newest:
      newestEpoch === undefined
        ? undefined
        : Object.freeze({ epoch: newestEpoch, sequence: required('newestSequence', varint) }),
    lineage: optional('lineage', decodeLineage),
    lastServerMicros: optional('lastServerMicros', varint),
    compression: Object.freeze(compression),
    bloomFilter: oneOf('bloomFilter', BLOOM_FILTER_KINDS, 'none'),
  });
}
