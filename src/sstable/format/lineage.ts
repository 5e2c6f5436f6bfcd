/**
 * Where an SSTable comes from: what METADATA knows of it, told by the file itself, so that METADATA can be made again from files and logs after it was
 * lost (docs/REPAIR.md). A part of section "properties" of docs/formats/sstable.md.
 *
 * A file holds, of its table's rows in `range`, every record of the commit log behind `since` and up to the file's newest that bears on one of
 * `families`. So one file makes another superfluous where it holds at least the same, and what no file holds is what the logs must give again.
 */
import type { ByteString } from '../../base/index.ts';
import type { RowRange } from '../../model/index.ts';
import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';

/** A record of a commit log. */
export interface RecordPoint {
  readonly epoch: number;
  readonly sequence: number;
}

export interface FileLineage {
  readonly tableId: ByteString;
  /** Range of the tablet that it was written for. */
  readonly range: RowRange;
  /** Names under which families are stored. */
  readonly families: readonly string[];
  /** Undefined: from the table's beginning. */
  readonly since: RecordPoint | undefined;
}

/** As it is stored. */
export interface Lineage extends FileLineage {
  /** Under which it was written: a file that stands elsewhere was put there by somebody else. */
  readonly path: string;
}

export function encodeLineage(out: ByteWriter, { path, tableId, range, families, since }: Lineage): void {
  out.string(path);
  out.string(tableId);
  out.string(range.start);
  out.byte(range.end === undefined ? 0 : 1);
  if (range.end !== undefined) out.string(range.end);
  out.byte(since === undefined ? 0 : 1);
  if (since !== undefined) {
    out.varint(since.epoch);
    out.varint(since.sequence);
  }
  out.varint(families.length);
  for (const family of families) out.string(family);
}

export function decodeLineage(reader: ByteReader): Lineage {
  const path = reader.string();
  const tableId = reader.string();
  const range = Object.freeze({ start: reader.string(), end: reader.flag() ? reader.string() : undefined });
  const since = reader.flag() ? Object.freeze({ epoch: reader.varint(), sequence: reader.varint() }) : undefined;
  const families: string[] = [];
  for (let left = reader.varint(); left > 0; left--) families.push(reader.string());
  reader.end();
  return Object.freeze({ path, tableId, range, since, families: Object.freeze(families) });
}
