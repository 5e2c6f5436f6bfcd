/**
 * What a compaction writes into one file: the entries of its source that lie in the tablet's range and in the wanted families, without the
 * deletions that nothing older needs, and, where garbage is collected, without what the rules drop.
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

/** Entries stepped over one by one before a seek pays. */
const STEPS_BEFORE_SEEK = 8;

export interface CompactionStreamOptions {
  readonly range: RowRange;
  /** Whether cells of the family stored under that name go into this file. */
  readonly wants: (storedFamily: string) => boolean;
  /** Deletions of rows; other deletions follow their family. */
  readonly rowDeletions: boolean;
  /** Deletions of anything. */
  readonly deletions: boolean;
  /** Undefined: all versions are kept. */
  readonly kept: KeptVersions | undefined;
  /** Whether the source can seek inside a row: a merge that keeps deletions cannot. */
  readonly seeks: boolean;
  readonly pacer: Pacer;
  /** Called with every load: throws where the compaction is to end. */
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

  /** To the first entry at or above the row and inside the range. */
  seekRow(row: ByteString): void {
    const { start } = this.#options.range;
    assert(this.#row === undefined, 'the entries of a file are walked once');
    this.#row = undefined;
    this.#source.seekRow(row > start ? row : start);
    this.#advance();
  }

  next(): void {
    assert(this.state === CursorState.ready, 'a walk goes on from an entry');
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

  /** From wherever the source stands to the first entry that is to be written. */
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

  /** False where the entry was left behind. */
  #isWanted(source: LayerCursor): boolean {
    const { kind, column, row } = source;
    const { deletions, rowDeletions, kept } = this.#options;
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
    this.#skip(source, (entry) => entry === column, `${column}\0`);
    return false;
  }

  #enterColumn(column: ColumnKey, row: ByteString): void {
    this.#row = row;
    this.#column = column;
    const stored = familyOf(column);
    if (stored !== this.#stored) {
      this.#stored = stored;
      this.#wanted = this.#options.wants(stored);
    }
    if (this.#wanted && this.#options.kept !== undefined) this.#wanted = this.#options.kept.enterColumn(stored);
  }

  /** Steps past the entries of the row that `belongs` tells; some steps are cheaper than a seek. */
  #skip(source: LayerCursor, belongs: (column: ColumnKey) => boolean, past: ColumnKey): void {
    const { row } = source;
    for (let i = 0; i < STEPS_BEFORE_SEEK; i++) {
      source.next();
      if (source.state !== CursorState.ready || source.row !== row || !belongs(source.column)) return;
    }
    if (this.#options.seeks) source.seekColumn(past);
  }
}
