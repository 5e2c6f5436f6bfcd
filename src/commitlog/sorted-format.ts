/**
 * The format of a sorted part of a log: docs/formats/sorted-log.md. A file has blocks of records, ascending, then an
 * index of them, then a trailer.
 *
 * Integers of fixed length are little-endian.
 */
import {
  assert,
  type ByteString,
  CorruptionError,
  utf8,
  VarintReader,
  varintLength,
  writeVarint,
} from '../base/index.ts';
import type { Checksum, FileSystem, LogPosition } from '../env/index.ts';
import type { PartOrder } from './append-order.ts';

/** The directory of sorted logs in the file system; in it each log has one, of its writer's name. */
export const SORTED_DIRECTORY = 'sorted/';

const MAGIC = Buffer.from('EDUBSORT', 'latin1');
const VERSION = 1;
/** Magic, version, required features, offset, length and checksum of the index, checksum of the trailer. */
export const TRAILER_BYTES = 36;
/** Checksum and length. */
export const BLOCK_HEADER_BYTES = 8;

/** `rows`: by (table, row, epoch, sequence), one row a record. `ranges`: drops of ranges of rows of one table. */
export type BlockKind = 'rows' | 'ranges';
const KINDS: readonly BlockKind[] = ['rows', 'ranges'];

export interface BlockEntry {
  readonly kind: BlockKind;
  readonly offset: number;
  /** With its header. */
  readonly lengthBytes: number;
  readonly tableId: string;
  /** The row of its first record; empty for ranges. */
  readonly firstRow: ByteString;
}

/** The part of a log: its appends from one position to before another; 0 = the beginning, undefined = the end. */
export interface LogPart {
  readonly from: LogPosition;
  readonly to: LogPosition | undefined;
}

export interface SortedIndex extends LogPart {
  /** Path of the log. */
  readonly log: string;
  readonly order: PartOrder;
  readonly blocks: readonly BlockEntry[];
}

export interface IndexPlace {
  readonly offset: number;
  readonly lengthBytes: number;
  readonly checksum: number;
}

const ORDER_FIELDS = [
  'appends',
  'firstPrevious',
  'end',
  'firstSequence',
  'nextSequence',
  'missingBefore',
  'lowWater',
] as const;

export function encodeIndex({ log, from, to, order, blocks }: SortedIndex): Buffer {
  const parts: Buffer[] = [];
  const varint = (value: number): void => {
    const bytes = Buffer.allocUnsafe(varintLength(value));
    writeVarint(bytes, 0, value);
    parts.push(bytes);
  };
  const text = (value: ByteString): void => {
    varint(value.length);
    parts.push(Buffer.from(value, 'latin1'));
  };
  text(utf8(log));
  varint(from);
  varint(to === undefined ? 0 : to);
  for (const field of ORDER_FIELDS) varint(order[field]);
  varint(blocks.length);
  for (const { kind, lengthBytes, tableId, firstRow } of blocks) {
    varint(KINDS.indexOf(kind));
    varint(lengthBytes);
    text(utf8(tableId));
    text(firstRow);
  }
  return Buffer.concat(parts);
}

/** `path` is the file's, for messages. CorruptionError if it is malformed. */
export function decodeIndex(path: string, { offset: indexAt }: IndexPlace, bytes: Buffer): SortedIndex {
  const reader = new VarintReader(bytes);
  const text = (): ByteString => {
    const length = reader.next();
    const at = reader.offset;
    if (at + length > bytes.length) throw new RangeError(`${length} bytes at ${at} exceed the index`);
    reader.offset = at + length;
    return bytes.latin1Slice(at, at + length);
  };
  const asText = (value: ByteString): string => Buffer.from(value, 'latin1').toString('utf8');
  try {
    const log = asText(text());
    const from = reader.next();
    const to = reader.next() || undefined;
    const order: PartOrder = {
      appends: reader.next(),
      firstPrevious: reader.next(),
      end: reader.next(),
      firstSequence: reader.next(),
      nextSequence: reader.next(),
      missingBefore: reader.next(),
      lowWater: reader.next(),
    };
    const blocks: BlockEntry[] = [];
    let offset = 0;
    for (let left = reader.next(); left > 0; left--) {
      const kind = KINDS[reader.next()];
      if (kind === undefined) throw new RangeError('a block of an unknown kind');
      const lengthBytes = reader.next();
      blocks.push({ kind, offset, lengthBytes, tableId: asText(text()), firstRow: text() });
      offset += lengthBytes;
    }
    if (reader.offset !== bytes.length || offset !== indexAt) throw new RangeError('its lengths do not add up');
    return { log, from, to, order, blocks };
  } catch (error) {
    if (error instanceof RangeError) throw new CorruptionError(path, indexAt, `the index: ${error.message}`, error);
    throw error;
  }
}

export function encodeTrailer({ offset, lengthBytes, checksum }: IndexPlace, sum: Checksum): Buffer {
  const bytes = Buffer.alloc(TRAILER_BYTES);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(VERSION, 8);
  bytes.writeUInt32LE(0, 12);
  bytes.writeBigUInt64LE(BigInt(offset), 16);
  bytes.writeUInt32LE(lengthBytes, 24);
  bytes.writeUInt32LE(checksum, 28);
  bytes.writeUInt32LE(sum(bytes.subarray(0, 32)), 32);
  return bytes;
}

/** `offset` is the trailer's, where the index ends. CorruptionError also for what a newer version wrote. */
export function decodeTrailer(path: string, offset: number, bytes: Buffer, sum: Checksum): IndexPlace {
  const corrupt = (what: string): CorruptionError => new CorruptionError(path, offset, `the trailer: ${what}`);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw corrupt('no sorted log ends like this');
  if (sum(bytes.subarray(0, 32)) !== bytes.readUInt32LE(32)) throw corrupt('its checksum is wrong');
  const [version, features] = [bytes.readUInt32LE(8), bytes.readUInt32LE(12)];
  if (version !== VERSION || features !== 0) throw corrupt(`version ${version}, features 0x${features.toString(16)}`);
  const place = {
    offset: Number(bytes.readBigUInt64LE(16)),
    lengthBytes: bytes.readUInt32LE(24),
    checksum: bytes.readUInt32LE(28),
  };
  if (place.offset + place.lengthBytes !== offset) throw corrupt('the index does not end before it');
  return place;
}

/** A file, with the part of the log that its name says it has. */
export interface SortedPart extends LogPart {
  readonly path: string;
}

/** The directory of logs. */
const LOGS = 'logs/';

/** The path of the log that a sorted file at this path has a part of. */
export function logOfSorted(path: string): string {
  return LOGS + path.slice(SORTED_DIRECTORY.length, path.lastIndexOf('/'));
}

/** The path of a file with a part of the log. `unique`: no other file of the part has it. */
export function sortedPath(log: string, { from, to }: LogPart, unique: string): string {
  return `${directoryOf(log)}${from}.${to ?? 'end'}.${unique}`;
}

/** The files of the log, of all that have sorted it; files with other names are left out. */
export async function listSorted(fileSystem: Pick<FileSystem, 'list'>, log: string): Promise<SortedPart[]> {
  const directory = directoryOf(log);
  const files = await fileSystem.list(directory);
  return files.flatMap(({ path }) => {
    const part = partOfName(path.slice(directory.length));
    return part === undefined ? [] : [{ ...part, path }];
  });
}

function directoryOf(log: string): string {
  assert(log.startsWith(LOGS), 'a log lies in the directory of logs');
  return `${SORTED_DIRECTORY}${log.slice(LOGS.length)}/`;
}

function partOfName(name: string): LogPart | undefined {
  const match = /^(\d{1,15})\.(\d{1,15}|end)\.[A-Za-z0-9_-]+$/.exec(name);
  if (match === null) return undefined;
  const from = Number(match[1]);
  const to = match[2] === 'end' ? undefined : Number(match[2]);
  return to !== undefined && to <= from ? undefined : { from, to };
}
