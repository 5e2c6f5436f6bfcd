/**
 * Refuses writes that add cells to a family or table beyond its quota (docs/decisions/0107-usage-and-quotas.md).
 *
 * The master counts the usage of tables with a quota on all servers, and tells each of them the sum. A server that was
 * not told yet counts its own tablets before the first write to such a table. Tables without a quota cost a comparison.
 */
import { assert, type ByteString } from '../base/index.ts';
import {
  type FamilyUsage,
  hasQuota,
  type Mutations,
  quotaUsage,
  sumUsages,
  type TableSchema,
  tallyMutations,
} from '../model/index.ts';
import type { TableFamilies } from '../protocol/index.ts';
import { overQuota } from '../service/index.ts';
import { FamilyBytes, QuotaLedger } from './quota-ledger.ts';
import type { ServedTablet, TabletMap } from './tablet-map.ts';

/** A count begins anew this often for tablets that were split or moved meanwhile. */
const MAX_COUNTS = 3;

export class Quotas {
  readonly #tablets: Pick<TabletMap, 'has' | 'ofTable'>;
  /** By table id. */
  readonly #ledgers = new Map<string, QuotaLedger>();
  readonly #learning = new Map<string, Promise<void>>();
  /** The schema that was asked about last, and whether it has a quota. */
  #lastSchema: TableSchema | undefined;
  #lastHasQuota = false;

  constructor(tablets: Pick<TabletMap, 'has' | 'ofTable'>) {
    this.#tablets = tablets;
  }

  /** True where writes are to be admitted. */
  limits(schema: TableSchema): boolean {
    if (schema === this.#lastSchema) return this.#lastHasQuota;
    this.#lastSchema = schema;
    this.#lastHasQuota = hasQuota(schema);
    return this.#lastHasQuota;
  }

  /** True where writes to the table need no `learn` before. */
  isReady(schema: TableSchema): boolean {
    return !this.limits(schema) || this.#ledgers.get(schema.id)?.isKnown === true;
  }

  /** Counts the table's tablets on this server, once: the master's count comes later. */
  learn({ id }: TableSchema): Promise<void> {
    let learning = this.#learning.get(id);
    if (learning === undefined) {
      learning = this.#learn(id).finally(() => this.#learning.delete(id));
      this.#learning.set(id, learning);
    }
    return learning;
  }

  async #learn(tableId: string): Promise<void> {
    const usage = bytesOf(await this.#count(tableId));
    const ledger = this.#ledgerOf(tableId);
    if (!ledger.isKnown) ledger.counted(usage);
    assert(ledger.isKnown, 'a table whose tablets were counted is known');
  }

  /** RESOURCE_EXHAUSTED for mutations that add to a family or table beyond its quota; otherwise they count. */
  admit(schema: TableSchema, row: ByteString, mutations: Mutations): void {
    if (!this.limits(schema)) return;
    const added = new FamilyBytes();
    tallyMutations(row, mutations, added);
    assert(added.total >= 0, 'a write takes no less than nothing');
    const exceeded = this.#ledgerOf(schema.id).admit(schema, added);
    if (exceeded !== undefined) throw overQuota({ table: schema.name, ...exceeded });
  }

  /** What the families of these tables take on this server. */
  async measure(tableIds: readonly string[]): Promise<TableFamilies[]> {
    const all: TableFamilies[] = [];
    for (const tableId of tableIds) all.push({ tableId, families: await this.#count(tableId) });
    return all;
  }

  /** What the families of all tables with a quota take on all servers. */
  counted(tables: readonly TableFamilies[]): void {
    const named = new Set(tables.map(({ tableId }) => tableId));
    for (const id of [...this.#ledgers.keys()]) if (!named.has(id)) this.#ledgers.delete(id);
    for (const { tableId, families } of tables) this.#ledgerOf(tableId).counted(bytesOf(families));
  }

  /** The schema of that table was changed. */
  schemaChanged(schema: TableSchema): void {
    if (!this.limits(schema)) this.#ledgers.delete(schema.id);
  }

  #ledgerOf(tableId: string): QuotaLedger {
    let ledger = this.#ledgers.get(tableId);
    if (ledger === undefined) this.#ledgers.set(tableId, (ledger = new QuotaLedger()));
    return ledger;
  }

  async #count(tableId: string): Promise<readonly FamilyUsage[]> {
    this.#ledgerOf(tableId).countBegins();
    const found = new Map<ServedTablet, readonly FamilyUsage[]>();
    for (let counts = 0; counts < MAX_COUNTS; counts++) {
      for (const served of found.keys()) if (!this.#tablets.has(served)) found.delete(served);
      const left = this.#tablets.ofTable(tableId).filter((served) => !found.has(served));
      if (left.length === 0) break;
      for (const served of left) {
        // the parts of an empty tablet are not made for it
        if (served.tablet.sizeBytes() === 0) {
          found.set(served, []);
          continue;
        }
        const usage = await served.tablet.familyUsage().catch((thrown: unknown) => {
          if (this.#tablets.has(served)) throw thrown;
        });
        if (usage !== undefined) found.set(served, usage);
      }
    }
    for (const { tableId: its } of found.keys())
      assert(its === tableId, 'the tablets of one table are counted together');
    return sumUsages([...found.values()].flat());
  }
}

function bytesOf(families: readonly FamilyUsage[]): FamilyBytes {
  const bytes = new FamilyBytes();
  for (const usage of families) bytes.add(usage.family, quotaUsage(usage));
  return bytes;
}
