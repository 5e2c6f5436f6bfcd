/**
 * Sorts a part of a fenced log, for recovery (paper section 6.5): by (table, row, epoch, sequence), so that each tablet
 * finds its records together, and the children of a split find those of their parent. Format:
 * docs/formats/sorted-log.md.
 *
 * Memory: `maxBytes`, for appends and what is noted of their rows. A part that has more becomes several files, of one
 * part each.
 */
import { assert, type ByteString, varintLength, writeVarint } from '../base/index.ts';
import {
  type Checksum,
  type Clock,
  type Codecs,
  type FileSystem,
  type FileWriter,
  type LogPosition,
  Pacer,
} from '../env/index.ts';
import { AppendDecoder } from './append-decoder.ts';
import { AppendEncoder } from './append-encoder.ts';
import { AppendOrder } from './append-order.ts';
import type { EncodedRecord, RecordOfAppend, RedoRecord } from './record.ts';
import {
  BLOCK_HEADER_BYTES,
  type BlockEntry,
  type BlockKind,
  encodeIndex,
  encodeTrailer,
  type LogPart,
} from './sorted-format.ts';

export interface SortOptions {
  readonly env: { readonly fileSystem: FileSystem; readonly clock: Clock; readonly codecs: Codecs };
  /** Path of the log. */
  readonly log: string;
  readonly part: LogPart;
  readonly maxBytes: number;
  /** Path of a new file, for the part of the log. */
  readonly pathOf: (part: LogPart) => string;
  /** Default: 16 KiB. */
  readonly blockBytes?: number;
  /** Rows that are sorted in one slice of the event loop. Default: 4096. */
  readonly rowsAtOnce?: number | undefined;
  /** True: the sorting ends, with what it has. */
  readonly isStopped?: () => boolean;
}

const BLOCK_BYTES = 16 << 10;
/** What a row takes in memory besides its append. */
const ROW_BYTES = 160;
const ROWS_AT_ONCE = 4096;

/** One row of a record, or a drop of a range. */
interface Piece {
  readonly tableId: string;
  readonly row: ByteString;
  readonly epoch: number;
  readonly sequence: number;
  readonly record: RecordOfAppend | RedoRecord;
}

/** Returns the bytes of the appends that were read. */
export async function sortLog(options: SortOptions): Promise<number> {
  const { env, log, part, maxBytes, rowsAtOnce = ROWS_AT_ONCE } = options;
  assert(part.to === undefined || part.to > part.from, 'a part of a log goes from a position to a later one');
  let bytes = 0;
  let pieces = new Pieces(env.clock, rowsAtOnce);
  let order = new AppendOrder(log, part.from === 0 ? 'log' : 'part');
  let from = part.from;
  const write = async (to: LogPosition | undefined): Promise<void> => {
    await writeSorted(options, { from, to }, order, pieces);
    order = new AppendOrder(log, 'part');
    pieces = new Pieces(env.clock, rowsAtOnce);
    from = to ?? from;
  };
  for await (const append of env.fileSystem.readLog(log, part.from === 0 ? undefined : part.from)) {
    if (part.to !== undefined && append.position >= part.to) break;
    if (options.isStopped?.()) return bytes;
    if (pieces.sizeBytes > 0 && pieces.sizeBytes + append.bytes.length > maxBytes) await write(append.position);
    const decoder = new AppendDecoder(log, append);
    order.next(append, decoder.header);
    bytes += append.bytes.length;
    pieces.sizeBytes += append.bytes.length;
    for (let record = decoder.nextEncoded(); record; record = decoder.nextEncoded()) await pieces.add(record);
  }
  await write(part.to);
  return bytes;
}

/** The rows of a part's records. */
class Pieces {
  sizeBytes = 0;
  readonly drops: Piece[] = [];
  readonly #runs: Piece[][] = [[]];
  readonly #pacer: Pacer;
  readonly #rowsAtOnce: number;

  constructor(clock: Clock, rowsAtOnce: number) {
    this.#rowsAtOnce = rowsAtOnce;
    this.#pacer = new Pacer(clock);
  }

  async add(record: RecordOfAppend): Promise<void> {
    const span = record.span();
    if (span === undefined) this.#addWhole(record);
    else if (span.first === span.last) this.#add(record, span.first, record);
    else {
      const redo = record.redo();
      assert(redo.body.kind === 'rows', 'a record with a span has rows');
      for (const row of redo.body.rows) {
        this.#add(record, row.row, { ...redo, body: { kind: 'rows', rows: [row] } });
        if (this.#pacer.due()) await this.#pacer.pause();
      }
    }
    if (this.#pacer.due()) await this.#pacer.pause();
  }

  #addWhole(record: EncodedRecord): void {
    const redo = record.redo();
    // a record without rows changes nothing: a log begins with one
    if (redo.body.kind === 'dropRows') this.drops.push(pieceOf(record, '', redo));
  }

  #add(record: RecordOfAppend, row: ByteString, contents: RecordOfAppend | RedoRecord): void {
    const run = this.#runs.at(-1)!;
    run.push(pieceOf(record, row, contents));
    this.sizeBytes += ROW_BYTES + row.length;
    if (run.length < this.#rowsAtOnce) return;
    run.sort(compare);
    this.#runs.push([]);
  }

  /** All rows in order. They may be taken once. */
  async sorted(): Promise<readonly Piece[]> {
    this.#runs.at(-1)!.sort(compare);
    let runs = this.#runs;
    while (runs.length > 1) {
      const merged: Piece[][] = [];
      for (let i = 0; i < runs.length; i += 2)
        merged.push(runs[i + 1] === undefined ? runs[i]! : await this.#merge(runs[i]!, runs[i + 1]!));
      runs = merged;
    }
    return runs[0]!;
  }

  async #merge(a: readonly Piece[], b: readonly Piece[]): Promise<Piece[]> {
    const merged: Piece[] = [];
    for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
      const takesA = j === b.length || (i < a.length && compare(a[i]!, b[j]!) <= 0);
      merged.push(takesA ? a[i++]! : b[j++]!);
      if (this.#pacer.due()) await this.#pacer.pause();
    }
    return merged;
  }
}

function pieceOf(
  { tableId, epoch, sequence }: EncodedRecord,
  row: ByteString,
  record: RecordOfAppend | RedoRecord,
): Piece {
  return { tableId, row, epoch, sequence, record };
}

function compare(a: Piece, b: Piece): number {
  if (a.tableId !== b.tableId) return a.tableId < b.tableId ? -1 : 1;
  if (a.row !== b.row) return a.row < b.row ? -1 : 1;
  return a.epoch - b.epoch || a.sequence - b.sequence;
}

async function writeSorted(options: SortOptions, part: LogPart, order: AppendOrder, pieces: Pieces): Promise<void> {
  const { env, log, pathOf, blockBytes = BLOCK_BYTES } = options;
  const { checksum } = env.codecs;
  const writer = await env.fileSystem.create(pathOf(part));
  try {
    const blocks = new BlockWriter(writer, checksum);
    const pacer = new Pacer(env.clock);
    let last: Piece | undefined;
    for (const piece of await pieces.sorted()) {
      assert(last === undefined || compare(last, piece) < 0, 'the rows of a sorted log ascend');
      last = piece;
      blocks.add(piece);
      if (blocks.pendingBytes >= blockBytes) await blocks.end('rows');
      else if (pacer.due()) await pacer.pause();
    }
    await blocks.end('rows');
    let tableId: string | undefined;
    for (const piece of pieces.drops.sort(compare)) {
      if (piece.tableId !== tableId) await blocks.end('ranges');
      tableId = piece.tableId;
      blocks.add(piece);
    }
    await blocks.end('ranges');
    const { entries, offset } = blocks;
    assert(entries.length === 0 || order.part.appends > 0, 'the records of a part come from its appends');
    const index = encodeIndex({ log, ...part, order: order.part, blocks: entries });
    await writer.append(index);
    const place = { offset, lengthBytes: index.length, checksum: checksum(index) };
    await writer.append(encodeTrailer(place, checksum));
  } catch (error) {
    await writer.abort();
    throw error;
  }
  await writer.close();
}

/** Writes the blocks of a file, one after another. */
class BlockWriter {
  readonly entries: BlockEntry[] = [];
  /** The end of the last block. */
  offset = 0;
  readonly #writer: FileWriter;
  readonly #checksum: Checksum;
  readonly #encoder = new AppendEncoder();
  #sequences: number[] = [];
  #first: Piece | undefined;

  constructor(writer: FileWriter, checksum: Checksum) {
    this.#writer = writer;
    this.#checksum = checksum;
  }

  /** Bytes of the block that has not ended. */
  get pendingBytes(): number {
    return this.#encoder.sizeBytes;
  }

  add(piece: Piece): void {
    const { record, sequence } = piece;
    this.#first ??= piece;
    if ('encoded' in record) this.#encoder.addEncoded(record.encoded());
    else this.#encoder.add(record);
    this.#sequences.push(sequence);
  }

  /** Ends the block, if it has any record. */
  async end(kind: BlockKind): Promise<void> {
    if (this.#first === undefined) return;
    const { tableId, row: firstRow } = this.#first;
    assert(this.#sequences.length === this.#encoder.count, 'each record of a block has its sequence number');
    const contents = blockOf(this.#encoder, this.#sequences);
    const header = Buffer.allocUnsafe(BLOCK_HEADER_BYTES);
    header.writeUInt32LE(contents.reduce((sum, bytes) => this.#checksum(bytes, sum), 0));
    header.writeUInt32LE(
      contents.reduce((sum, { length }) => sum + length, 0),
      4,
    );
    const bytes = Buffer.concat([header, ...contents]);
    await this.#writer.append(bytes);
    this.entries.push({ kind, offset: this.offset, lengthBytes: bytes.length, tableId, firstRow });
    this.offset += bytes.length;
    this.#encoder.reset();
    this.#sequences = [];
    this.#first = undefined;
  }
}

/** The sequence numbers of the records, then the records as an append. */
function blockOf(encoder: AppendEncoder, sequences: readonly number[]): readonly Uint8Array[] {
  const numbers = [sequences.length, ...sequences];
  const bytes = Buffer.allocUnsafe(numbers.reduce((sum, number) => sum + varintLength(number), 0));
  let at = 0;
  for (const number of numbers) at = writeVarint(bytes, at, number);
  return [bytes, ...encoder.finish({ previous: 0, count: sequences.length, firstSequence: 0, lowWater: 0 })];
}
