/** The contract of LayerCursor in its plainest form: a cursor over a sorted list of entries. */
import assert from 'node:assert/strict';
import type { ByteString, Int64 } from '../src/base/index.ts';
import {
  type ColumnKey,
  CursorState,
  type Entry,
  type EntryKind,
  isDeletion,
  type LayerCursor,
} from '../src/model/index.ts';

export class ListCursor implements LayerCursor {
  readonly entries: readonly Entry[];
  /** Index of the entry under the cursor; their number if it is done. */
  position: number;
  closed = false;
  readonly #isLazy: () => boolean;
  /** The position that a load will reach. */
  #target: number | undefined;

  /**
   * `isLazy`: called at each move and each load; true = a load is needed before the cursor is there. Default: never.
   */
  constructor(entries: readonly Entry[], isLazy = () => false) {
    this.entries = entries;
    this.position = entries.length;
    this.#isLazy = isLazy;
  }

  get state(): CursorState {
    if (this.#target !== undefined) return CursorState.needsLoad;
    return this.position < this.entries.length ? CursorState.ready : CursorState.done;
  }

  get present(): Entry {
    assert.equal(this.state, CursorState.ready, 'fields are read only where the cursor is ready');
    return this.entries[this.position] as Entry;
  }

  get row(): ByteString {
    return this.present.row;
  }

  get column(): ColumnKey {
    return this.present.column;
  }

  get kind(): EntryKind {
    return this.present.kind;
  }

  get timestamp(): Int64 {
    return this.present.timestamp;
  }

  get rangeEnd(): Int64 | undefined {
    return this.present.rangeEnd;
  }

  get valueLength(): number {
    return this.present.value.length;
  }

  value(): Uint8Array {
    return this.present.value;
  }

  seekRow(row: ByteString): void {
    this.#seek((entry) => entry.row >= row, 0);
  }

  seekRowBefore(row: ByteString | undefined): void {
    const last = this.entries.findLast((entry) => row === undefined || entry.row < row);
    this.#seek((entry) => entry.row === last?.row, 0);
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    const stand = this.entries[this.position];
    if (stand === undefined) return;
    this.#seek((entry) => {
      if (entry.row !== stand.row || entry.column > column) return true;
      if (entry.column < column) return false;
      return timestamp === undefined || (!isDeletion(entry.kind) && entry.timestamp <= timestamp);
    }, this.position);
  }

  next(): void {
    assert.notEqual(this.state, CursorState.needsLoad, 'a cursor moves on after its load');
    this.#go(Math.min(this.position + 1, this.entries.length));
  }

  async load(): Promise<void> {
    await Promise.resolve();
    if (!this.#isLazy()) this.#land();
  }

  close(): void {
    this.closed = true;
  }

  #seek(isFound: (entry: Entry) => boolean, from: number): void {
    const at = this.entries.findIndex((entry, i) => i >= from && isFound(entry));
    this.#go(at < 0 ? this.entries.length : at);
  }

  #go(target: number): void {
    this.#target = target;
    if (!this.#isLazy()) this.#land();
  }

  #land(): void {
    this.position = this.#target ?? this.position;
    this.#target = undefined;
  }
}
