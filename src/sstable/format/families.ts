/**
 * Statistics of each column family in an SSTable, for the accounting of families and for choosing the files that a read
 * needs. Part of section "properties" of docs/formats/sstable.md.
 */
import { assert } from '../../base/index.ts';
import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';

export interface FamilyStatistics {
  /** Stored name of the family. */
  readonly family: string;
  /** Puts and merges. */
  readonly cells: number;
  /** Sum over cells of row + column + 8 + value. */
  readonly logicalBytes: number;
}

interface Tally {
  cells: number;
  logicalBytes: number;
}

/** Counts entries by family. Neighbours are mostly of one family, and always if they are of one column. */
export class FamilyCollector {
  readonly #families = new Map<string, Tally>();
  #column = '';
  #tally: Tally | undefined;

  /** Counts an entry; `column` is that of any entry but a row deletion. `bytes` counts if it is a cell. */
  add(column: string, isCell: boolean, bytes: number): void {
    if (column !== this.#column || this.#tally === undefined) this.#enter(column);
    if (!isCell) return;
    const tally = this.#tally!;
    tally.cells++;
    tally.logicalBytes += bytes;
  }

  /** By name, ascending. */
  statistics(): readonly FamilyStatistics[] {
    const families = [...this.#families].sort(([a], [b]) => (a < b ? -1 : 1));
    return families.map(([family, { cells, logicalBytes }]) => ({ family, cells, logicalBytes }));
  }

  #enter(column: string): void {
    const end = column.indexOf('\0');
    const family = end < 0 ? column : column.slice(0, end);
    this.#column = column;
    this.#tally = this.#families.get(family);
    if (this.#tally === undefined) this.#families.set(family, (this.#tally = { cells: 0, logicalBytes: 0 }));
  }
}

export function encodeFamilies(out: ByteWriter, families: readonly FamilyStatistics[]): void {
  out.varint(families.length);
  let before: string | undefined;
  for (const { family, cells, logicalBytes } of families) {
    assert(before === undefined || before < family, 'families ascend');
    before = family;
    out.string(family);
    out.varint(cells);
    out.varint(logicalBytes);
  }
}

export function decodeFamilies(reader: ByteReader): readonly FamilyStatistics[] {
  const families: FamilyStatistics[] = [];
  let before: string | undefined;
  for (let left = reader.varint(); left > 0; left--) {
    const family = reader.string();
    if (before !== undefined && family <= before) throw new RangeError('families ascend');
    before = family;
    families.push(Object.freeze({ family, cells: reader.varint(), logicalBytes: reader.varint() }));
  }
  reader.end();
  return Object.freeze(families);
}
