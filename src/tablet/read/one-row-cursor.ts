/**
 * The entries of one row in one layer, as the merged read shows them. Most reads of a row find it in one layer or in
 * none, and need no merge. Used in place of a MergeCursor, with the same result: the visible entries, without the
 * deletions of the layer, which apply to older layers only.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import type { Pacer } from '../../env/index.ts';
import {
  type AggregateKind,
  type ColumnKey,
  CursorState,
  EntryKind,
  type Layer,
  type LayerCursor,
} from '../../model/index.ts';
import type { ReadCredits } from '../layers/read-credits.ts';
import { MergeCursor, type RowsCursor, STEPS_BEFORE_PAUSE } from './merge-cursor.ts';
import { isPlain, PutMerge } from './put-merge.ts';

/**
 * The merged read of the layers, newest first, as MergeOptions say. With `row`, of that row only: layers without it may
 * be missing.
 */
export function cursorOver(
  layers: readonly Layer[],
  row: ByteString | undefined,
  aggregateOf: (family: string) => AggregateKind | undefined,
  pacer?: Pacer,
  credits?: ReadCredits,
): RowsCursor {
  if (row !== undefined && layers.length < 2) {
    const layer = layers[0];
    const cursor = layer?.rowCursor?.(row);
    if (layer === undefined || cursor !== undefined) return new OneRowCursor(row, cursor, pacer);
  } else if (row !== undefined && layers.every(isPlain)) {
    credits?.lookedUp(layers);
    return new PutMerge(layers, row);
  }
  return new MergeCursor(layers, { aggregateOf, row, pacer, credits });
}

class OneRowCursor implements RowsCursor {
  state: CursorState = CursorState.done;
  readonly row: ByteString;
  column: ColumnKey = '';
  timestamp: Int64 = 0;
  /** Sees this row only; undefined if no layer has it. */
  readonly #cursor: LayerCursor | undefined;
  readonly #pacer: Pacer | undefined;
  #yielding = false;

  constructor(row: ByteString, cursor: LayerCursor | undefined, pacer: Pacer | undefined) {
    this.row = row;
    this.#cursor = cursor;
    this.#pacer = pacer;
  }

  value(): Uint8Array {
    assert(this.#cursor !== undefined && this.state === CursorState.ready, 'a cursor is read while it is on an entry');
    return this.#cursor.value();
  }

  seekRow(row: ByteString): void {
    this.#seek(row <= this.row);
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#seek(row === undefined || this.row < row);
  }

  #seek(isThere: boolean): void {
    this.state = CursorState.done;
    if (!isThere || this.#cursor === undefined) return;
    this.#cursor.seekRow(this.row);
    this.#advance(this.#cursor);
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    const cursor = this.#cursor;
    assert(cursor !== undefined, 'a cursor over no layer is on no row');
    cursor.seekColumn(column, timestamp);
    this.#advance(cursor);
  }

  next(): void {
    const cursor = this.#cursor;
    assert(cursor !== undefined, 'a cursor over no layer is on no row');
    cursor.next();
    this.#advance(cursor);
  }

  skipRow(): void {
    assert(this.state !== CursorState.needsLoad, 'a row is skipped by a cursor that is in it');
    this.state = CursorState.done;
  }

  async load(): Promise<void> {
    const cursor = this.#cursor;
    assert(cursor !== undefined && this.state === CursorState.needsLoad, 'a cursor loads where it needs to');
    if (this.#yielding) await this.#pacer?.pause();
    else await cursor.load();
    this.#advance(cursor);
  }

  close(): void {
    this.#cursor?.close();
    this.state = CursorState.done;
  }

  /** Continues to the next cell after a move or a load. */
  #advance(cursor: LayerCursor): void {
    this.#yielding = false;
    for (let steps = 1; cursor.state === CursorState.ready && cursor.kind < EntryKind.put; steps++) {
      if (steps % STEPS_BEFORE_PAUSE === 0 && this.#pacer?.due(STEPS_BEFORE_PAUSE)) {
        this.#yielding = true;
        this.state = CursorState.needsLoad;
        return;
      }
      cursor.next();
    }
    this.state = cursor.state;
    if (cursor.state !== CursorState.ready) return;
    this.column = cursor.column;
    this.timestamp = cursor.timestamp;
  }
}
