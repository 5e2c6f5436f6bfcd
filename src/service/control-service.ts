/**
 * What an operator asks of a database besides the Cloud Bigtable API (over gRPC: edubba.v1.Control). Every door has it:
 * the embedded library, servers, and clients of an Edubba server. Other servers of the Cloud API answer UNIMPLEMENTED.
 *
 * Errors: as of the other calls; FAILED_PRECONDITION where there is nothing to split or merge.
 */
import type { ByteString } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { FamilyUsage, TabletStatistics } from '../model/index.ts';

export interface CompactionProgress {
  /** Tablets that need nothing more. Never decreases. */
  readonly doneTablets: number;
  /** Tablets there were when the call began. */
  readonly totalTablets: number;
}

export interface ControlService {
  /**
   * Major compactions of the table of that full name, or of all tables and the metadata: afterwards each locality group
   * of a tablet is one SSTable without deleted data. Tells how far it is: at once, after each tablet, and at least
   * every ten seconds. A tablet that fails does not keep the others from being compacted; the iteration fails after the
   * last one. Ending the iteration, or the context, stops what has not begun; what has begun ends. Data written before
   * the call is compacted; several calls at once share compactions.
   */
  compactTables(context: RequestContext, table?: string): AsyncIterable<CompactionProgress>;
  /** Writes what is in memory to files, on every server. What was acknowledged is durable without it. */
  flush(context: RequestContext): Promise<void>;
  /**
   * Splits the table's tablet before the row; without a row every tablet near its middle, except those of one row.
   * FAILED_PRECONDITION where all are.
   */
  splitTablets(context: RequestContext, table: string, row?: ByteString): Promise<void>;
  /** Makes one tablet of the two that meet at the row. FAILED_PRECONDITION where none do. */
  mergeTablets(context: RequestContext, table: string, row: ByteString): Promise<void>;
  /** In the order of their rows. */
  listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]>;
  /** What each family takes, by name. */
  familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]>;
  /** By name: counts since each server was started, added up over all servers. */
  counters(context: RequestContext): Promise<Readonly<Record<string, number>>>;
}
