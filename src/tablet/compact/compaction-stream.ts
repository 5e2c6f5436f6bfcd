/**
 * The entries that a compaction writes into one file: those of its source in the range of the tablet and in the wanted
 * families, without deletions that nothing older needs, and, if garbage is collected, without what the rules drop.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import type { Pacer } from '../../env/index.ts';
import {
  type ColumnKey,
  CursorState,
  type EntryKind,
  EntryKind as Kind,
  type EntryStream,
  familyEnd,
  familyOf,
  isDeletion,
  type LayerCursor,
  type RowRange,
} from '../../model/index.ts';
import type { KeptVersions } from '../read/kept-versions.ts';

/** The number of entries to step over before a seek is cheaper. */
const STEPS_BEFORE_SEEK = 8;

export interface CompactionStreamOptions {
  readonly range: RowRange;
  /** True if cells of the family stored under that name go into this file. */
  readonly wants: (storedFamily: string) => boolean;
  /** Keeps deletions of rows; other deletions follow their family. */
  readonly rowDeletions: boolean;
  /** Keeps deletions of any kind. */
  readonly deletions: boolean;
  /** Undefined: keeps all versions. */
  readonly kept: KeptVersions | undefined;
  /** Called with the newest version of each column that is dropped because of the rules; older ones go with it. */
  readonly onCollected?: ((row: ByteString, column: ColumnKey, timestamp: Int64) => void) | undefined;
  /** True if the source can seek inside a row: a merge that keeps deletions cannot. */
  readonly seeks: boolean;
  readonly pacer: Pacer;
  /** Called at every load; throws if the compaction is cancelled. */
  readonly check?: () => void;
}

export class CompactionStream implements EntryStream {
  state: CursorState = CursorState.done;
  readonly #source: LayerCursor;
  readonly #options: CompactionStreamOptions;
  readonly #end: ByteString | undefined;
  #row: ByteString | undefined;
  #column: ColumnKey = '';
  #stored = '';
  #wanted = false;
  /** True if the newest version of the column that is dropped was reported. */
  #isCollected = false;
  #yielding = false;

  constructor(source: LayerCursor, options: CompactionStreamOptions) {
    this.#source = source;
    this.#options = options;
    this.#end = options.range.end;
  }

  get row(): ByteString {
    return this.#source.row;
  }

  get column(): ColumnKey {
    return this.#source.column;
  }

  get kind(): EntryKind {
    return this.#source.kind;
  }

  get timestamp(): Int64 {
    return this.#source.timestamp;
  }

  get rangeEnd(): Int64 | undefined {
    return this.#source.rangeEnd;
  }

  get valueLength(): number {
    return this.#source.valueLength;
  }

  value(): Uint8Array {
    return this.#source.value();
  }

  /** Moves to the first entry at or above the row and inside the range. */
  seekRow(row: ByteString): void {
    const { start } = this.#options.range;
    assert(this.#row === undefined, 'the entries of a file are walked once');
    this.#row = undefined;
    this.#source.seekRow(row > start ? row : start);
    this.#advance();
  }

  next(): void {
    assert(this.state === CursorState.ready, 'a walk continues from an entry');
    this.#source.next();
    this.#advance();
  }

  async load(): Promise<void> {
    assert(this.state === CursorState.needsLoad, 'a walk loads where it needs to');
    this.#options.check?.();
    if (this.#yielding) await this.#options.pacer.pause();
    else await this.#source.load();
    this.#yielding = false;
    this.#advance();
  }

  close(): void {
    this.#source.close();
    this.state = CursorState.done;
  }

  /** Moves on to the first entry that is to be written. */
  #advance(): void {
    const source = this.#source;
    for (;;) {
      if (source.state === CursorState.needsLoad) {
        this.state = CursorState.needsLoad;
        return;
      }
      if (source.state === CursorState.done || (this.#end !== undefined && source.row >= this.#end)) {
        this.state = CursorState.done;
        return;
      }
      if (this.#isWanted(source)) {
        this.state = CursorState.ready;
        return;
      }
      if (this.#options.pacer.due()) {
        this.#yielding = true;
        this.state = CursorState.needsLoad;
        return;
      }
    }
  }

  /** Returns false if the entry was skipped. */
  #isWanted(source: LayerCursor): boolean {
    const { kind, column, row } = source;
    const { deletions, rowDeletions, kept, onCollected } = this.#options;
    if (kind === Kind.rowDeletion) {
      if (deletions && rowDeletions) return true;
      source.next();
      return false;
    }
    if (column !== this.#column || row !== this.#row) this.#enterColumn(column, row);
    if (!this.#wanted) {
      this.#skip(source, (entry) => familyOf(entry) === this.#stored, familyEnd(this.#stored));
      return false;
    }
    if (isDeletion(kind)) {
      if (deletions) return true;
      source.next();
      return false;
    }
    if (kept === undefined || kept.keeps(source.timestamp)) return true;
    // a walk that waited for a block in the midst of the column comes to an older version
    if (!this.#isCollected) onCollected?.(row, column, source.timestamp);
    this.#isCollected = true;
    this.#skip(source, (entry) => entry === column, `${column}\0`);
    return false;
  }

  #enterColumn(column: ColumnKey, row: ByteString): void {
    this.#row = row;
    this.#column = column;
    this.#isCollected = false;
    const stored = familyOf(column);
    if (stored !== this.#stored) {
      this.#stored = stored;
      this.#wanted = this.#options.wants(stored);
    }
    if (this.#wanted && this.#options.kept !== undefined) this.#wanted = this.#options.kept.enterColumn(stored);
  }

  /** Steps past the entries of the row for which `belongs` is true; a few steps are cheaper than a seek. */
  #skip(source: LayerCursor, belongs: (column: ColumnKey) => boolean, past: ColumnKey): void {
    const { row } = source;
    for (let i = 0; i < STEPS_BEFORE_SEEK; i++) {
      source.next();
      if (source.state !== CursorState.ready || source.row !== row || !belongs(source.column)) return;
    }
    if (this.#options.seeks) source.seekColumn(past);
  }
}
