/**
 * ReadRowsResponse messages back to rows: the other side of codec/chunk-writer.ts, for any server's chunks. A row comes
 * out whole, when it is committed. Chunks that break the protocol are INTERNAL: the server is at fault.
 */
import { BigtableError, Code, fromBytes, int64, utf8, type ByteString, type Int64 } from '../../base/index.ts';
import type { Cell, RowFragment } from '../../model/index.ts';
import type {
  ReadRowsResponse,
  ReadRowsResponse_CellChunk as CellChunk,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';

/** A cell whose value is not yet whole. */
interface Partial {
  readonly timestamp: Int64;
  readonly labels: readonly string[];
  readonly pieces: Uint8Array[];
}

export class ChunkReader {
  #row: ByteString | undefined;
  #family: string | undefined;
  #qualifier: ByteString | undefined;
  #cells: Cell[] = [];
  #partial: Partial | undefined;

  /** The rows that the message completes. */
  rows(message: ReadRowsResponse): RowFragment[] {
    const rows: RowFragment[] = [];
    for (const chunk of message.chunks) {
      if (chunk.rowStatus.case === 'resetRow' && chunk.rowStatus.value) this.#reset();
      else {
        this.#take(chunk);
        if (chunk.rowStatus.case === 'commitRow' && chunk.rowStatus.value) rows.push(this.#commit());
      }
    }
    return rows;
  }

  /** Called at the end of the stream. */
  end(): void {
    if (this.#row !== undefined) throw broken('the stream ended inside a row');
  }

  #take(chunk: CellChunk): void {
    if (this.#row === undefined) {
      if (chunk.rowKey.length === 0) throw broken('a row begins without a key');
      this.#row = fromBytes(chunk.rowKey);
    } else if (chunk.rowKey.length > 0 && fromBytes(chunk.rowKey) !== this.#row)
      throw broken('a row begins inside another');
    if (this.#partial === undefined) {
      if (chunk.familyName !== undefined) {
        if (chunk.qualifier === undefined) throw broken('a family comes without a qualifier');
        this.#family = utf8(chunk.familyName);
      }
      if (chunk.qualifier !== undefined) this.#qualifier = fromBytes(chunk.qualifier);
      this.#partial = { timestamp: int64(chunk.timestampMicros), labels: chunk.labels, pieces: [] };
    }
    this.#partial.pieces.push(chunk.value);
    if (chunk.valueSize > 0) return;
    const { timestamp, labels, pieces } = this.#partial;
    if (this.#family === undefined || this.#qualifier === undefined) throw broken('a cell comes without a column');
    const value = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    this.#cells.push({
      family: this.#family,
      qualifier: this.#qualifier,
      timestamp,
      value,
      ...(labels.length > 0 && { labels }),
    });
    this.#partial = undefined;
  }

  #commit(): RowFragment {
    if (this.#row === undefined || this.#partial !== undefined) throw broken('a row is committed inside a cell');
    const fragment = { row: this.#row, cells: this.#cells, last: true };
    this.#reset();
    return fragment;
  }

  #reset(): void {
    this.#row = undefined;
    this.#family = undefined;
    this.#qualifier = undefined;
    this.#cells = [];
    this.#partial = undefined;
  }
}

function broken(what: string): BigtableError {
  return new BigtableError(Code.INTERNAL, `the server broke the protocol of ReadRows: ${what}`);
}
