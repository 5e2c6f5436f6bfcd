/**
 * The origin of an SSTable: what METADATA knows of the file, stored in the file, so that METADATA can be rebuilt from
 * files and logs after it was lost (docs/REPAIR.md). Part of section "properties" of docs/formats/sstable.md.
 *
 * The file holds, for its table's rows in `range`, every record of the commit log after `since` and up to the file's
 * newest that affects one of `families`. So a file makes another superfluous if it holds at least the same records, and
 * logs must supply the records that no file holds.
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
  /** Row range of the tablet that the file was written for. */
  readonly range: RowRange;
  /** Stored names of the families. */
  readonly families: readonly string[];
  /** Undefined: from the table's beginning. */
  readonly since: RecordPoint | undefined;
}

/** A lineage as it is stored. */
export interface Lineage extends FileLineage {
  /** Path at which the file was written: a file with another path was copied there. */
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
