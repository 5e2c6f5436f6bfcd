/**
 * One row of several layers that hold nothing but puts, merged: of equal cells the newest layer's wins. Most look-ups
 * that find a row in several layers are of this kind, and need neither a heap nor the rules of deletions and merge
 * operands. Used in place of a MergeCursor, with the same result.
 *
 * Invariant: the cursors see this row only, and are on it from the seek on.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import { type ColumnKey, CursorState, EntryKind, type Layer, type LayerCursor } from '../../model/index.ts';
import type { RowsCursor } from './merge-cursor.ts';

/** True if `PutMerge` can read the layer, at least in this slice of the event loop. */
export function isPlain(layer: Layer): boolean {
  return layer.hasOnlyPuts === true && layer.rowCursor !== undefined;
}

export class PutMerge implements RowsCursor {
  state: CursorState = CursorState.done;
  readonly row: ByteString;
  column: ColumnKey = '';
  timestamp: Int64 = 0;
  /** Newest first. */
  readonly #cursors: readonly LayerCursor[];
  /** The cursor on the present cell, the newest of them. */
  #best: LayerCursor | undefined;

  /** `layers`: newest first, all plain. */
  constructor(layers: readonly Layer[], row: ByteString) {
    this.row = row;
    const cursors = new Array<LayerCursor>(layers.length);
    for (let age = 0; age < layers.length; age++) cursors[age] = layers[age]!.rowCursor!(row);
    this.#cursors = cursors;
  }

  value(): Uint8Array {
    assert(this.#best !== undefined && this.state === CursorState.ready, 'a cursor is read while it is on an entry');
    return this.#best.value();
  }

  seekRow(row: ByteString): void {
    this.#seek(row <= this.row);
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#seek(row === undefined || this.row < row);
  }

  #seek(isThere: boolean): void {
    this.state = CursorState.done;
    if (!isThere) return;
    for (const cursor of this.#cursors) cursor.seekRow(this.row);
    this.#findCell();
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    assert(this.state === CursorState.ready, 'a cursor moves in the row that it is on');
    for (const cursor of this.#cursors) if (cursor.state === CursorState.ready) cursor.seekColumn(column, timestamp);
    this.#findCell();
  }

  next(): void {
    assert(this.state === CursorState.ready, 'a cursor moves in the row that it is on');
    const { column, timestamp } = this;
    for (const cursor of this.#cursors) {
      if (cursor.state === CursorState.ready && cursor.column === column && cursor.timestamp === timestamp)
        cursor.next();
    }
    this.#findCell();
  }

  skipRow(): void {
    assert(this.state !== CursorState.needsLoad, 'a row is skipped by a cursor that is in it');
    this.state = CursorState.done;
  }

  async load(): Promise<void> {
    assert(this.state === CursorState.needsLoad, 'a cursor loads where it needs to');
    const waiting = this.#cursors.filter(({ state }) => state === CursorState.needsLoad);
    await Promise.all(waiting.map((cursor) => cursor.load()));
    this.#findCell();
  }

  close(): void {
    for (const cursor of this.#cursors) cursor.close();
    this.#best = undefined;
    this.state = CursorState.done;
  }

  /** To the first cell of all layers, the newest of equals. */
  #findCell(): void {
    let best: LayerCursor | undefined;
    this.state = CursorState.needsLoad;
    for (const cursor of this.#cursors) {
      if (cursor.state === CursorState.needsLoad) return;
      if (cursor.state === CursorState.done) continue;
      assert(cursor.kind === EntryKind.put, 'a layer of nothing but puts has no other entry');
      if (best === undefined || isBefore(cursor, best)) best = cursor;
    }
    this.#best = best;
    if (best === undefined) {
      this.state = CursorState.done;
      return;
    }
    this.state = CursorState.ready;
    this.column = best.column;
    this.timestamp = best.timestamp;
  }
}

function isBefore(a: LayerCursor, b: LayerCursor): boolean {
  const column = a.column;
  const other = b.column;
  return column === other ? a.timestamp > b.timestamp : column < other;
}
