/**
 * Searches a row for the token of a write: was it made within the time that tokens are kept? Deletions of the row, or
 * of its range, do not touch tokens, so the first layer that has the token decides.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { type ColumnKey, CursorState, EntryKind, type LayerCursor, TOKEN_MS, tokenColumn } from '../../model/index.ts';
import type { LayerHold, LayerSet } from '../layers/layer-set.ts';
import type { Search } from './search.ts';

export class TokenSearch implements Search {
  /** The result. */
  isFound = false;
  readonly #hold: LayerHold;
  readonly #row: ByteString;
  readonly #column: ColumnKey;
  readonly #oldestMicros: number;
  /** Index of the layer that is searched. */
  #at = 0;
  #cursor: LayerCursor | undefined;
  #isInColumn = false;

  constructor(layers: LayerSet, row: ByteString, token: ByteString, nowMicros: number) {
    this.#row = row;
    this.#column = tokenColumn(token);
    this.#oldestMicros = nowMicros - TOKEN_MS * 1000;
    this.#hold = layers.holdTokens(row, this.#column);
  }

  advance(): boolean {
    const { layers } = this.#hold;
    for (; this.#at < layers.length && !this.isFound; this.#at++) {
      const cursor = (this.#cursor ??= this.#enter(layers[this.#at]!));
      if (needsLoad(cursor)) return false;
      if (!this.#isInColumn && this.#isOnRow(cursor)) {
        cursor.seekColumn(this.#column);
        this.#isInColumn = true;
        if (needsLoad(cursor)) return false;
      }
      this.isFound = this.#isInColumn && this.#isOnToken(cursor);
      this.#leave();
    }
    return true;
  }

  #enter(layer: LayerHold['layers'][number]): LayerCursor {
    const cursor = layer.rowCursor?.(this.#row) ?? layer.cursor();
    cursor.seekRow(this.#row);
    return cursor;
  }

  #leave(): void {
    this.#cursor?.close();
    this.#cursor = undefined;
    this.#isInColumn = false;
  }

  #isOnRow(cursor: LayerCursor): boolean {
    return cursor.state === CursorState.ready && cursor.row === this.#row;
  }

  #isOnToken(cursor: LayerCursor): boolean {
    if (!this.#isOnRow(cursor) || cursor.column !== this.#column) return false;
    assert(cursor.kind === EntryKind.put, 'tokens are cells, and never deleted by calls');
    return cursor.timestamp >= this.#oldestMicros;
  }

  load(): Promise<void> {
    assert(this.#cursor !== undefined, 'a search that waits is in a layer');
    return this.#cursor.load();
  }

  close(): void {
    this.#leave();
    this.#hold.release();
  }
}

function needsLoad({ state }: LayerCursor): boolean {
  return state === CursorState.needsLoad;
}
