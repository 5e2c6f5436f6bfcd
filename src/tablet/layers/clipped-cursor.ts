/**
 * A cursor over parts of a file: the rows for which a tablet lists the file, when its other rows do not belong to the
 * tablet any more (docs/decisions/0015-splits-and-merges.md).
 *
 * Invariant: when it is ready it is in one of the parts. When the inner cursor leaves one, it seeks the next in its
 * direction.
 */
import { assert, type ByteString, checksInvariants, type Int64 } from '../../base/index.ts';
import { type ColumnKey, CursorState, type EntryKind, type LayerCursor, type RowRange } from '../../model/index.ts';

export class ClippedCursor implements LayerCursor {
  readonly #inner: LayerCursor;
  /** Sorted, disjoint. */
  readonly #clips: readonly RowRange[];
  #isReversed = false;
  #isPastAll = true;

  constructor(inner: LayerCursor, clips: readonly RowRange[]) {
    this.#inner = inner;
    this.#clips = clips;
  }

  get state(): CursorState {
    return this.#isPastAll ? CursorState.done : this.#inner.state;
  }

  get row(): ByteString {
    return this.#inner.row;
  }

  get column(): ColumnKey {
    return this.#inner.column;
  }

  get kind(): EntryKind {
    return this.#inner.kind;
  }

  get timestamp(): Int64 {
    return this.#inner.timestamp;
  }

  get rangeEnd(): Int64 | undefined {
    return this.#inner.rangeEnd;
  }

  get valueLength(): number {
    return this.#inner.valueLength;
  }

  value(): Uint8Array {
    if (checksInvariants) this.#assertInside();
    return this.#inner.value();
  }

  seekRow(row: ByteString): void {
    this.#move(false);
    const clip = this.#clips.find(({ end }) => end === undefined || row < end);
    if (clip === undefined) return this.#end();
    this.#inner.seekRow(row > clip.start ? row : clip.start);
    this.#advance();
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#move(true);
    const clip = this.#clips.findLast(({ start }) => row === undefined || start < row);
    if (clip === undefined) return this.#end();
    this.#inner.seekRowBefore(row !== undefined && (clip.end === undefined || row < clip.end) ? row : clip.end);
    this.#advance();
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    assert(!this.#isPastAll, 'a cursor past all parts continues only by a seek to a row');
    this.#move(false);
    this.#inner.seekColumn(column, timestamp);
    this.#advance();
  }

  next(): void {
    assert(!this.#isPastAll, 'a cursor past all parts continues only by a seek to a row');
    this.#move(false);
    this.#inner.next();
    this.#advance();
  }

  async load(): Promise<void> {
    await this.#inner.load();
    this.#advance();
  }

  close(): void {
    this.#inner.close();
  }

  #move(isReversed: boolean): void {
    this.#isReversed = isReversed;
    this.#isPastAll = false;
  }

  #end(): void {
    this.#isPastAll = true;
  }

  #assertInside(): void {
    const { row } = this.#inner;
    assert(
      this.#clips.some(({ start, end }) => start <= row && (end === undefined || row < end)),
      'a cursor with parts is in one of them',
    );
  }

  /** Moves to the nearest row inside a part, in the direction of the last move. */
  #advance(): void {
    const inner = this.#inner;
    while (inner.state === CursorState.ready) {
      const { row } = inner;
      if (this.#isReversed) {
        const clip = this.#clips.findLast(({ start }) => start <= row);
        if (clip === undefined) return this.#end();
        if (clip.end === undefined || row < clip.end) return;
        inner.seekRowBefore(clip.end);
      } else {
        const clip = this.#clips.find(({ end }) => end === undefined || row < end);
        if (clip === undefined) return this.#end();
        if (clip.start <= row) return;
        inner.seekRow(clip.start);
      }
    }
  }
}
