/**
 * Reads the records of a tablet from a log that was sorted: of each part those of its rows alone. Format:
 * docs/formats/sorted-log.md.
 *
 * Invariant: the parts of a sorted log are all of it, from its first append to its last: they are checked as a reader
 * of the log itself checks its appends. Whatever is wrong with a file is a CorruptionError, or NOT_FOUND; the log is
 * still there.
 */
import { assert, type ByteString, CorruptionError, VarintReader } from '../base/index.ts';
import type { Checksum, FileSystem } from '../env/index.ts';
import type { RowRange } from '../model/index.ts';
import { AppendDecoder } from './append-decoder.ts';
import { AppendOrder } from './append-order.ts';
import { allOf } from './log-reader.ts';
import {
  type EncodedRecord,
  isAfter,
  type LogRecord,
  type RedoPoint,
  type RedoRecord,
  type RowSpan,
} from './record.ts';
import {
  BLOCK_HEADER_BYTES,
  type BlockEntry,
  decodeIndex,
  decodeTrailer,
  type SortedIndex,
  type SortedPart,
  TRAILER_BYTES,
} from './sorted-format.ts';

/** The end of a file that is read first: most indexes are shorter. */
const TAIL_BYTES = 64 << 10;
/** Blocks that follow one another are read in pieces of at most this, or one by one if they are longer. */
const READ_BYTES = 1 << 20;

interface Components {
  readonly fileSystem: Pick<FileSystem, 'size' | 'read'>;
  readonly checksum: Checksum;
}

interface OpenFile {
  readonly path: string;
  readonly index: SortedIndex;
}

export class SortedLog {
  readonly #components: Components;
  readonly #files: readonly OpenFile[];

  private constructor(components: Components, files: readonly OpenFile[]) {
    this.#components = components;
    this.#files = files;
  }

  /** `parts`: from the beginning of the log to its end, or from where a replay begins. */
  static async open(log: string, parts: readonly SortedPart[], components: Components): Promise<SortedLog> {
    assert(
      parts.every(({ from }, i) => i === 0 || from === parts[i - 1]?.to) && parts.at(-1)?.to === undefined,
      'the parts of a sorted log follow one another, up to its end',
    );
    const from = parts[0]?.from ?? 0;
    const files: OpenFile[] = [];
    const order = new AppendOrder(log, from === 0 ? 'log' : { replayFrom: from });
    for (const part of parts) {
      const index = await readSortedIndex(part.path, components);
      if (index.log !== log || index.from !== part.from || index.to !== part.to)
        throw new CorruptionError(part.path, 0, `it has a part of ${index.log} from ${index.from} to ${index.to}`);
      order.nextPart(index.order);
      files.push({ path: part.path, index });
    }
    order.finish();
    if (order.part.appends === 0)
      throw new CorruptionError(log, 0, 'the log was sorted when it was missing or empty, and every log has a record');
    return new SortedLog(components, files);
  }

  /** The bytes that `records` reads. */
  bytesOf(tableId: string, range: RowRange): number {
    let bytes = 0;
    for (const { index } of this.#files)
      for (const blocks of readsOf(index.blocks, tableId, range))
        for (const { lengthBytes } of blocks) bytes += lengthBytes;
    return bytes;
  }

  /** Records of the table that change rows of the range and are after the redo point, each once, in any order. */
  async records(tableId: string, range: RowRange, redo: RedoPoint): Promise<EncodedRecord[]> {
    const pieces: EncodedRecord[] = [];
    for (const file of this.#files) {
      for (const blocks of readsOf(file.index.blocks, tableId, range)) {
        const { offset } = blocks[0]!;
        const last = blocks.at(-1)!;
        const bytes = await this.#components.fileSystem.read(
          file.path,
          offset,
          last.offset + last.lengthBytes - offset,
        );
        for (const block of blocks) {
          const from = block.offset - offset;
          for (const record of this.#recordsOf(file.path, block, bytes.subarray(from, from + block.lengthBytes)))
            if (record.tableId === tableId && isAfter(record, redo) && record.touches(range)) pieces.push(record);
        }
      }
    }
    return joined(pieces);
  }

  #recordsOf(path: string, { offset, kind }: BlockEntry, bytes: Buffer): EncodedRecord[] {
    const contents = bytes.subarray(BLOCK_HEADER_BYTES);
    if (contents.length !== bytes.readUInt32LE(4) || this.#components.checksum(contents) !== bytes.readUInt32LE(0))
      throw new CorruptionError(path, offset, 'the checksum of a block is wrong');
    const reader = new VarintReader(contents);
    const sequences: number[] = [];
    try {
      for (let left = reader.next(); left > 0; left--) sequences.push(reader.next());
    } catch (error) {
      if (error instanceof RangeError) throw new CorruptionError(path, offset, error.message, error);
      throw error;
    }
    const decoder = new AppendDecoder(path, { position: offset, bytes: contents.subarray(reader.offset) }, sequences);
    const { count } = decoder.header;
    if (count !== sequences.length)
      throw new CorruptionError(path, offset, `a block of ${kind} has ${sequences.length} numbers of ${count} records`);
    return allOf(decoder);
  }
}

/** What the file says of its part. */
export async function readSortedIndex(path: string, { fileSystem, checksum }: Components): Promise<SortedIndex> {
  const size = await fileSystem.size(path);
  if (size < TRAILER_BYTES) throw new CorruptionError(path, 0, `${size} bytes are no sorted log`);
  const tailAt = Math.max(0, size - TAIL_BYTES);
  const tail = await fileSystem.read(path, tailAt, size - tailAt);
  const trailerAt = size - TRAILER_BYTES;
  const place = decodeTrailer(path, trailerAt, tail.subarray(tail.length - TRAILER_BYTES), checksum);
  const bytes =
    place.offset >= tailAt
      ? tail.subarray(place.offset - tailAt, trailerAt - tailAt)
      : await fileSystem.read(path, place.offset, place.lengthBytes);
  if (checksum(bytes) !== place.checksum)
    throw new CorruptionError(path, place.offset, 'the checksum of the index is wrong');
  return decodeIndex(path, place, bytes);
}

/** The blocks that may have records of the range, those that follow one another together. */
function* readsOf(
  blocks: readonly BlockEntry[],
  tableId: string,
  range: RowRange,
): Iterable<readonly [BlockEntry, ...BlockEntry[]]> {
  let together: [BlockEntry, ...BlockEntry[]] | undefined;
  for (const [i, block] of blocks.entries()) {
    if (!mayHave(block, blocks[i + 1], tableId, range)) continue;
    const start = together?.[0].offset ?? 0;
    const last = together?.at(-1);
    const end = block.offset + block.lengthBytes;
    if (together !== undefined && last!.offset + last!.lengthBytes === block.offset && end - start <= READ_BYTES)
      together.push(block);
    else {
      if (together !== undefined) yield together;
      together = [block];
    }
  }
  if (together !== undefined) yield together;
}

/** A block of rows goes up to the first row of the next one, and may share it. */
function mayHave(block: BlockEntry, next: BlockEntry | undefined, tableId: string, range: RowRange): boolean {
  if (block.kind === 'ranges') return block.tableId === tableId;
  const beginsBefore =
    block.tableId < tableId || (block.tableId === tableId && (range.end === undefined || block.firstRow < range.end));
  if (!beginsBefore) return false;
  if (next === undefined || next.kind === 'ranges') return true;
  return next.tableId > tableId || (next.tableId === tableId && next.firstRow >= range.start);
}

/** Rows of one record as one record again. */
function joined(pieces: EncodedRecord[]): EncodedRecord[] {
  const firstRow = (piece: EncodedRecord): ByteString => piece.span()?.first ?? '';
  pieces.sort((a, b) => {
    const difference = a.epoch - b.epoch || a.sequence - b.sequence;
    if (difference !== 0) return difference;
    const [rowOfA, rowOfB] = [firstRow(a), firstRow(b)];
    return rowOfA < rowOfB ? -1 : rowOfA > rowOfB ? 1 : 0;
  });
  const records: EncodedRecord[] = [];
  for (let i = 0; i < pieces.length; ) {
    const piece = pieces[i]!;
    const rows = [piece];
    for (i++; i < pieces.length; i++) {
      const other = pieces[i]!;
      if (other.epoch !== piece.epoch || other.sequence !== piece.sequence) break;
      assert(firstRow(other) > firstRow(rows.at(-1)!), 'the parts of a log have each row of a record once');
      rows.push(other);
    }
    records.push(rows.length === 1 ? piece : new JoinedRecord(rows));
  }
  return records;
}

/** The rows of one record that were found, each in a record of its own. */
class JoinedRecord implements EncodedRecord {
  readonly tableId: string;
  readonly epoch: number;
  readonly sequence: number;
  readonly #rows: readonly EncodedRecord[];

  constructor(rows: readonly EncodedRecord[]) {
    const { tableId, epoch, sequence } = rows[0]!;
    this.tableId = tableId;
    this.epoch = epoch;
    this.sequence = sequence;
    this.#rows = rows;
  }

  span(): RowSpan {
    return { first: this.#rows[0]!.span()!.first, last: this.#rows.at(-1)!.span()!.last };
  }

  touches(range: RowRange): boolean {
    return this.#rows.some((row) => row.touches(range));
  }

  decode(): LogRecord {
    return joinBodies(this.#rows.map((row) => row.decode()));
  }

  redo(): RedoRecord {
    return joinBodies(this.#rows.map((row) => row.redo()));
  }
}

function joinBodies<R extends RedoRecord>(records: readonly R[]): R {
  const rows = records.flatMap(({ body }) => {
    assert(body.kind === 'rows', 'only records of rows are cut into rows');
    return body.rows;
  });
  return { ...records[0]!, body: { kind: 'rows', rows } };
}
