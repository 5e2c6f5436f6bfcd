/**
 * The calls of an operator that the Cloud Bigtable API does not have (over gRPC: edubba.v1.Control). The embedded
 * library, servers, and clients of an Edubba server all have them. Other servers of the Cloud API answer UNIMPLEMENTED.
 *
 * Errors: as of the other calls; FAILED_PRECONDITION if there is nothing to split or merge.
 */
import type { ByteString } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { FamilyUsage, TableUsage, TabletHistory, TabletStatistics } from '../model/index.ts';

export interface CompactionProgress {
  /** Tablets that need no more work. Never decreases. */
  readonly doneTablets: number;
  /** Number of tablets when the call began. */
  readonly totalTablets: number;
}

/** A quota of a family, or of the table as a whole. */
export interface QuotaChange {
  /** Undefined: the table. */
  readonly family?: string | undefined;
  /** Most bytes on disk and in memory together. Undefined: there is no limit any more. */
  readonly quotaBytes?: number | undefined;
}

export interface ControlService {
  /**
   * Major compactions of the table of that full name, or of all tables and the metadata: afterwards each locality group
   * of a tablet is one SSTable without deleted data. Reports progress immediately, after each tablet, and at least
   * every ten seconds. A tablet that fails does not keep the others from being compacted; the iteration fails after the
   * last one. Ending the iteration, or the context, stops compactions that have not begun; the others complete. Data
   * written before the call is compacted; concurrent calls share compactions.
   */
  compactTables(context: RequestContext, table?: string): AsyncIterable<CompactionProgress>;
  /** Writes memtables to files, on every server. Acknowledged writes are durable without it. */
  flush(context: RequestContext): Promise<void>;
  /**
   * Splits the table's tablet before the row; without a row every tablet near its middle, except those of one row.
   * FAILED_PRECONDITION if all have one row.
   */
  splitTablets(context: RequestContext, table: string, row?: ByteString): Promise<void>;
  /** Merges the two tablets that meet at the row. FAILED_PRECONDITION if none do. */
  mergeTablets(context: RequestContext, table: string, row: ByteString): Promise<void>;
  /** In the order of their rows. */
  listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]>;
  /**
   * What has happened to each tablet, in the order of their rows, as METADATA notes it. Tablets that are divided
   * meanwhile may be there whole, divided, or both.
   */
  listTabletEvents(context: RequestContext, table: string): AsyncIterable<TabletHistory>;
  /** The usage of each family, by name. */
  familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]>;
  /** What the table and its families take, what they may take, and what calls have read and written. */
  tableUsage(context: RequestContext, table: string): Promise<TableUsage>;
  /**
   * Sets or removes a quota. Afterwards writes that add cells to a family or table beyond its quota are refused:
   * RESOURCE_EXHAUSTED. Deletions are not. NOT_FOUND for a missing family.
   */
  setQuota(context: RequestContext, table: string, change: QuotaChange): Promise<void>;
  /** By name: counts since each server was started, summed over all servers. */
  counters(context: RequestContext): Promise<Readonly<Record<string, number>>>;
}
