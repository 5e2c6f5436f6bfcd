/**
 * What an SSTable says of itself: counts, bounds and where it comes from. Section "properties" of docs/formats/sstable.md.
 * A `PropertiesCollector` gathers the part that follows from the entries; `verify` gathers it again and compares.
 */
import { type ByteString, type Int64, toText, utf8 } from '../base/index.ts';
import { EntryKind, type EntryPosition, isDeletion } from '../model/index.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';

export type EntryKindName = keyof typeof EntryKind;

/** What follows from the entries. */
export interface EntryStatistics {
  readonly entries: Readonly<Record<EntryKindName, number>>;
  /** Rows that have an entry. */
  readonly rows: number;
  /** Undefined where there is no entry. */
  readonly firstRow: ByteString | undefined;
  readonly lastRow: ByteString | undefined;
  /** Of cells (puts and merges); undefined where there is none. */
  readonly minTimestamp: Int64 | undefined;
  readonly maxTimestamp: Int64 | undefined;
  /** Sum over entries of row + column + 8 + value, before any compression. */
  readonly rawBytes: number;
}

export interface SsTableProperties extends EntryStatistics {
  /** Locality group. */
  readonly group: string;
  readonly createdMicros: Int64;
  /** The cluster whose writes these are; empty = the one that holds the file. */
  readonly origin: string;
}

const VERSION = 1;
const KIND_NAMES = Object.keys(EntryKind) as EntryKindName[];
const NAME_OF_KIND = new Map<number, EntryKindName>(KIND_NAMES.map((name) => [EntryKind[name], name]));
const TIMESTAMP_BYTES = 8;

/** Undefined for a number that is no kind. */
export function kindName(kind: number): EntryKindName | undefined {
  return NAME_OF_KIND.get(kind);
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

  add(entry: EntryPosition, valueLength: number): void {
    const { row, kind, timestamp } = entry;
    this.#counts[kind] = (this.#counts[kind] as number) + 1;
    this.#rawBytes += row.length + entry.column.length + TIMESTAMP_BYTES + valueLength;
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
      entries: Object.fromEntries(KIND_NAMES.map((name) => [name, this.#counts[EntryKind[name]] as number])) as Record<EntryKindName, number>,
      rows: this.#rows,
      firstRow: this.#firstRow,
      lastRow: this.#lastRow,
      minTimestamp: this.#minTimestamp,
      maxTimestamp: this.#maxTimestamp,
      rawBytes: this.#rawBytes,
    };
  }
}

/** All entries together. */
export function totalEntries(entries: Readonly<Record<EntryKindName, number>>): number {
  return KIND_NAMES.reduce((sum, name) => sum + entries[name], 0);
}

export function encodeProperties(properties: SsTableProperties): Buffer {
  const pairs: [string, Buffer][] = [];
  const put = (name: string, write: (out: ByteWriter) => void): void => {
    const value = new ByteWriter(16);
    write(value);
    pairs.push([name, value.written()]);
  };
  for (const name of KIND_NAMES) if (properties.entries[name] > 0) put(`entries.${name}`, (out) => out.varint(properties.entries[name]));
  put('rows', (out) => out.varint(properties.rows));
  const { firstRow, lastRow, minTimestamp, maxTimestamp } = properties;
  if (firstRow !== undefined) put('firstRow', (out) => out.text(firstRow));
  if (lastRow !== undefined) put('lastRow', (out) => out.text(lastRow));
  if (minTimestamp !== undefined) put('minTimestamp', (out) => out.int64(minTimestamp));
  if (maxTimestamp !== undefined) put('maxTimestamp', (out) => out.int64(maxTimestamp));
  put('rawBytes', (out) => out.varint(properties.rawBytes));
  put('group', (out) => out.text(utf8(properties.group)));
  put('createdMicros', (out) => out.int64(properties.createdMicros));
  put('origin', (out) => out.text(utf8(properties.origin)));

  const out = new ByteWriter();
  out.varint(VERSION);
  out.varint(pairs.length);
  for (const [name, value] of pairs) {
    out.string(name);
    out.varint(value.length);
    out.raw(value);
  }
  return out.written();
}

export function decodeProperties(reader: ByteReader): SsTableProperties {
  const version = reader.varint();
  if (version !== VERSION) throw new RangeError(`version ${version} instead of ${VERSION}`);
  const pairs = new Map<string, ByteString>();
  for (let left = reader.varint(); left > 0; left--) {
    const name = reader.string();
    if (pairs.has(name)) throw new RangeError(`"${name}" stands there twice`);
    pairs.set(name, reader.string());
  }
  const optional = <T>(name: string, decode: (value: ByteReader) => T): T | undefined => {
    const value = pairs.get(name);
    return value === undefined ? undefined : decode(new ByteReader(Buffer.from(value, 'latin1')));
  };
  const required = <T>(name: string, decode: (value: ByteReader) => T): T => {
    const value = optional(name, decode);
    if (value === undefined) throw new RangeError(`"${name}" is missing`);
    return value;
  };
  const varint = (value: ByteReader): number => value.varint();
  const int64 = (value: ByteReader): Int64 => value.int64();
  const entries = KIND_NAMES.map((name): [EntryKindName, number] => [name, optional(`entries.${name}`, varint) ?? 0]);
  return Object.freeze({
    entries: Object.freeze(Object.fromEntries(entries) as Record<EntryKindName, number>),
    rows: required('rows', varint),
    firstRow: pairs.get('firstRow'),
    lastRow: pairs.get('lastRow'),
    minTimestamp: optional('minTimestamp', int64),
    maxTimestamp: optional('maxTimestamp', int64),
    rawBytes: required('rawBytes', varint),
    group: toText(pairs.get('group') ?? ''),
    createdMicros: required('createdMicros', int64),
    origin: toText(pairs.get('origin') ?? ''),
  });
}
