/**
 * Where the Webtable is kept, in the example's words: `EmbeddedStore` has it in a directory, through the library;
 * `ServerStore` on any server of the Cloud Bigtable API, through Google's client. The table is the paper's (section 2,
 * figure 1):
 *
 *   row  com.example.www/a/b.html
 *     contents:                    the page's bytes, three versions
 *     language:                    what the page declares, three versions
 *     anchor:<referring page's row>  the link's text
 *
 * Times are milliseconds since 1970: that is what a cloud table keeps by default.
 */

/** Cells that go into one row in one instant. */
export interface RowWrite {
  readonly row: string;
  readonly cells: readonly CellWrite[];
}

export interface CellWrite {
  readonly family: 'contents' | 'language' | 'anchor';
  /** Empty but for anchors. */
  readonly qualifier: string;
  readonly value: Uint8Array;
  readonly timeMs: number;
}

export interface StoredPage {
  readonly contents: Uint8Array;
  readonly timeMs: number;
  readonly language: string | undefined;
}

/** A page without its contents. */
export interface PageEntry {
  readonly row: string;
  readonly language: string | undefined;
  /** When its versions were stored, newest first; empty where only links speak of the page. */
  readonly timesMs: readonly number[];
  /** Counted up to MAX_COUNTED. */
  readonly anchors: number;
}

export interface Anchor {
  /** The referring page's row. */
  readonly from: string;
  readonly text: string;
  readonly timeMs: number;
}

export interface Store {
  /** How it is called in messages. */
  readonly name: string;
  /** Writes many rows, each atomically; all are on disk when it resolves. */
  write(writes: readonly RowWrite[]): Promise<void>;
  /** The page's newest version, or with `atMs` the newest at or before that. */
  page(row: string, atMs?: number): Promise<StoredPage | undefined>;
  /** In the order of the referring rows; read piece by piece, however many they are. */
  anchors(row: string): AsyncIterable<Anchor>;
  /** Pages in row order: those with the prefix, or the one of that row. */
  entries(range: { readonly prefix: string } | { readonly row: string }): AsyncIterable<PageEntry>;
  close(): Promise<void>;
}

export const TABLE = 'webtable';
export const VERSIONS = { contents: 3, language: 3, anchor: 1 } as const;
/** Anchors read at once, and the most that `entries` counts. */
export const ANCHORS_A_READ = 1000;
export const MAX_COUNTED = 1000;
