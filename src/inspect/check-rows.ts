/**
 * Checks METADATA's rows as a whole: they partition every table (invariant I3), no tablet lies across two tablets of
 * METADATA, each table has a schema and each schema a table, and the fields of each row are consistent. Rows come in
 * the order of METADATA; of each table only the last end is kept.
 */
import { type ByteString, quote } from '../base/index.ts';
import { dividesTablet, lookupKey, METADATA_TABLE_ID, ROOT_RANGE, USER_RANGE } from '../metadata/index.ts';
import type { TableSchema } from '../model/index.ts';
import type { Findings } from './findings.ts';
import type { InspectedTablet } from './metadata.ts';

/** A table that has rows and no schema. */
export interface SchemalessTable {
  readonly tableId: string;
  tablets: number;
  files: number;
  /** True if any of its tablets was ever given to a server, which is done only once the schema exists. */
  wasServed: boolean;
  /** What its rows leave out or hold twice. They need not be whole while they are created or deleted. */
  readonly gaps: string[];
}

export class RowCheck {
  readonly schemaless = new Map<string, SchemalessTable>();
  /** By id, what the rows of backups leave out or hold twice. They need not be whole while one is made or deleted. */
  readonly backups = new Map<string, string[]>();
  readonly #findings: Findings;
  readonly #schemas: ReadonlyMap<string, TableSchema>;
  readonly #seen = new Set<string>();
  /** The ends of METADATA's tablets that are not below the rows checked so far. */
  readonly #boundaries: ByteString[] = [];
  /** The table under way, and where its last tablet ended; undefined after its last. */
  #table: { readonly id: string; next: ByteString | undefined } | undefined;

  /** `schemas`: by table id. */
  constructor(findings: Findings, schemas: ReadonlyMap<string, TableSchema>) {
    this.#findings = findings;
    this.#schemas = schemas;
  }

  add({ row, rowIn, key }: InspectedTablet): void {
    const { tableId, range, epoch, version, redo, files } = row;
    const where = `the tablet of table ${tableId} that begins at ${quote(range.start)}`;
    // a backup, and a table from one that no server has had, begin with the redo point of their files
    if (redo.epoch > epoch && epoch > 0)
      this.#wrong(`${where} is at epoch ${epoch} and its redo point at the later epoch ${redo.epoch}`);
    if (version < 1) this.#wrong(`${where} has version ${version}: a row that was committed has at least 1`);
    if (rowIn === 'root file') {
      if (range.start !== ROOT_RANGE.start || range.end !== ROOT_RANGE.end)
        this.#findings.add('root', undefined, `the root tablet ends at ${quote(range.end ?? '')}: it is never split`);
      return;
    }
    if (row.isOfBackup) {
      if (!this.backups.has(tableId)) this.backups.set(tableId, []);
    } else if (tableId !== METADATA_TABLE_ID && !this.#schemas.has(tableId)) {
      const known = this.schemaless.get(tableId) ?? { tableId, tablets: 0, files: 0, wasServed: false, gaps: [] };
      known.tablets++;
      known.wasServed ||= epoch > 0;
      known.files += Object.values(files).flat().length;
      this.schemaless.set(tableId, known);
    }
    if (tableId === METADATA_TABLE_ID) {
      if (range.end !== undefined) this.#boundaries.push(range.end);
    } else {
      while (this.#boundaries[0] !== undefined && this.#boundaries[0] <= lookupKey(tableId, range.start))
        this.#boundaries.shift();
      const [boundary] = this.#boundaries;
      if (boundary !== undefined && dividesTablet(boundary, tableId, range))
        this.#wrong(`${where} lies across a boundary of METADATA's tablets, ${quote(boundary)}: it cannot be split`);
    }
    this.#addToTable(tableId, range.start, range.end, key);
  }

  end(): void {
    this.#endTable();
    if (!this.#seen.has(METADATA_TABLE_ID)) this.#wrong('the root tablet lists no tablet of METADATA');
    for (const { id, name } of this.#schemas.values())
      if (!this.#seen.has(id)) this.#wrong(`table ${id} (${name}) has a schema and no tablet`);
  }

  #addToTable(id: string, start: ByteString, end: ByteString | undefined, key: string): void {
    if (this.#table?.id !== id) {
      this.#endTable();
      if (this.#seen.has(id)) this.#wrong(`rows of table ${id} stand apart: ${quote(key)}`);
      this.#seen.add(id);
      this.#table = { id, next: id === METADATA_TABLE_ID ? USER_RANGE.start : '' };
    }
    const { next } = this.#table;
    if (next === undefined) this.#gap(id, `a tablet begins at ${quote(start)}, after the last`);
    else if (start > next) this.#gap(id, `no tablet holds rows from ${quote(next)} to ${quote(start)}`);
    else if (start < next) this.#gap(id, `two tablets hold rows from ${quote(start)} on`);
    this.#table.next = end;
  }

  #endTable(): void {
    if (this.#table?.next !== undefined)
      this.#gap(this.#table.id, `no tablet holds rows from ${quote(this.#table.next)} on`);
    this.#table = undefined;
  }

  #gap(id: string, what: string): void {
    const message = `table ${id}: ${what}`;
    const gaps = this.schemaless.get(id)?.gaps ?? this.backups.get(id);
    if (gaps === undefined) this.#wrong(message);
    else gaps.push(message);
  }

  #wrong(message: string): void {
    this.#findings.add('METADATA', undefined, message);
  }
}
