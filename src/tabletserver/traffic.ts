/**
 * What the calls of clients have read and written of each table since the start of this server
 * (docs/decisions/0107-usage-and-quotas.md). A tablet that moves away leaves its counts here.
 *
 * Bounds: the tables and families that exist, and as many again.
 */
import { assert, type ByteString, ownOf } from '../base/index.ts';
import {
  type ByteTally,
  type FamilyTraffic,
  type Mutations,
  NO_TRAFFIC,
  type ReadBatch,
  type TableSchema,
  type TableTraffic,
  tallyBatch,
  tallyMutations,
} from '../model/index.ts';

/** Entries that are kept without a look at whether their tables or families are there. */
const MIN_KEPT = 100;

class FamilyCount {
  rowsWritten = 0;
  rowsRead = 0;
  bytesIn = 0;
  bytesOut = 0;
  /** The last row that was counted, by its number: a family may come several times in a row. */
  row = 0;
}

/** The counts of one table. As a tally it takes the cells of the row that was begun last. */
export class TrafficCount implements ByteTally {
  reads = 0;
  writes = 0;
  rowsWritten = 0;
  rowsRead = 0;
  #families = new Map<string, FamilyCount>();
  #lastFamily = '';
  #lastCount: FamilyCount | undefined;
  /** The number of the row that is counted, and whether it is written. */
  #row = 0;
  #isWritten = false;
  readonly #hasFamily: (family: string) => boolean;
  #familiesAllowed = MIN_KEPT;
  readonly #rowRead = (): void => {
    this.rowsRead++;
    this.#row++;
  };

  /** `hasFamily`: false for families that were dropped. */
  constructor(hasFamily: (family: string) => boolean) {
    this.#hasFamily = hasFamily;
  }

  /** The mutations of a row that a call writes. */
  written(row: ByteString, mutations: Mutations): void {
    this.rowsWritten++;
    this.#row++;
    this.#isWritten = true;
    tallyMutations(row, mutations, this);
  }

  /** A batch that a read answers. */
  answered(batch: ReadBatch): void {
    this.#isWritten = false;
    tallyBatch(batch, this, this.#rowRead);
  }

  add(family: string, bytes: number): void {
    assert(bytes >= 0, 'traffic only grows');
    const count = family === this.#lastFamily && this.#lastCount !== undefined ? this.#lastCount : this.#of(family);
    const isFirst = count.row !== this.#row;
    count.row = this.#row;
    if (this.#isWritten) {
      if (isFirst) count.rowsWritten++;
      count.bytesIn += bytes;
    } else {
      if (isFirst) count.rowsRead++;
      count.bytesOut += bytes;
    }
  }

  snapshot(): TableTraffic {
    const { reads, writes, rowsWritten, rowsRead } = this;
    const families = [...this.#families].flatMap(([family, count]): FamilyTraffic[] => {
      if (!this.#hasFamily(family)) return [];
      const { bytesIn, bytesOut } = count;
      return [{ family, rowsWritten: count.rowsWritten, rowsRead: count.rowsRead, bytesIn, bytesOut }];
    });
    return { reads, writes, rowsWritten, rowsRead, families };
  }

  #of(family: string): FamilyCount {
    let count = this.#families.get(family);
    if (count === undefined) {
      assert(this.#families.size <= this.#familiesAllowed, 'families that are gone are forgotten in time');
      this.#familiesAllowed = dropped(this.#families, this.#familiesAllowed, this.#hasFamily);
      count = new FamilyCount();
      this.#families.set(family, count);
    }
    this.#lastFamily = family;
    this.#lastCount = count;
    return count;
  }
}

export class Traffic {
  readonly #tables = new Map<string, TrafficCount>();
  readonly #schemaOf: (tableId: string) => TableSchema | undefined;
  #tablesAllowed = MIN_KEPT;
  /** The table of the last call: the next one is often of the same. */
  #lastId = '';
  #lastCount: TrafficCount | undefined;

  /** `schemaOf`: undefined for tables that are not there. */
  constructor(schemaOf: (tableId: string) => TableSchema | undefined) {
    this.#schemaOf = schemaOf;
  }

  /** The counts of the table, to be added to. */
  of(tableId: string): TrafficCount {
    if (tableId === this.#lastId && this.#lastCount !== undefined) return this.#lastCount;
    let count = this.#tables.get(tableId);
    if (count === undefined) {
      assert(this.#tables.size <= this.#tablesAllowed, 'tables that are gone are forgotten in time');
      this.#tablesAllowed = dropped(this.#tables, this.#tablesAllowed, (id) => this.#schemaOf(id) !== undefined);
      count = new TrafficCount((family) => {
        const schema = this.#schemaOf(tableId);
        return schema !== undefined && ownOf(schema.families, family) !== undefined;
      });
      this.#tables.set(tableId, count);
    }
    this.#lastId = tableId;
    this.#lastCount = count;
    return count;
  }

  snapshot(tableId: string): TableTraffic {
    return this.#tables.get(tableId)?.snapshot() ?? NO_TRAFFIC;
  }
}

/** Drops entries that are not there any more once there are `allowed`; returns how many there may be until the next. */
function dropped(entries: Map<string, unknown>, allowed: number, isThere: (key: string) => boolean): number {
  if (entries.size < allowed) return allowed;
  for (const key of [...entries.keys()]) if (!isThere(key)) entries.delete(key);
  return Math.max(MIN_KEPT, 2 * entries.size);
}
