/**
 * A judge of what a recovery would find, at every instant (I1):
 * - Each record that is durable is in the files of its tablet, or in a log that the tablet's row lists, and that was not
 *   trimmed before it. One whose append has failed for its writer may be lost: nobody was told that it is durable.
 * - Files have no record that is not durable yet: the log could lose it, and an earlier one of another tablet with it.
 * - A tablet is taken from a server only when its log is fenced, or when the server has released the tablet: then none
 *   of its records is to be found in that log, and its row lists it no more. Who reads a log for a tablet may keep it for
 *   others, so a row with another owner lists only logs that are fenced.
 */
import { quote } from '../../src/base/index.ts';
import { type EncodedRecord, isAfter } from '../../src/commitlog/index.ts';
import { keyOfRow, type MetadataKey, type MetadataRow } from '../../src/metadata/index.ts';
import { logPathOf, type TabletServerCalls } from '../../src/protocol/index.ts';
import type { NotedCall } from './network.ts';

interface KeptRecord {
  readonly log: string;
  readonly position: number;
  readonly record: EncodedRecord;
}

/** What the judge asks of the logs. */
export interface JudgedLogs {
  /** True when nothing is acknowledged any more in the log. */
  isSealed(log: string): boolean;
  /** True when the writer of the log was told that this append has failed. */
  hasFailed(log: string, position: number): boolean;
}

export class RecoveryJudge {
  /** Called with what must not be. */
  onViolation: (what: string) => void = () => {};
  readonly #logs: JudgedLogs;
  readonly #rows = new Map<MetadataKey, MetadataRow>();
  /** By table, the records that are not known to be in files. */
  readonly #kept = new Map<string, KeptRecord[]>();
  /** By log, the sequence number of the last record that is durable. */
  readonly #newest = new Map<string, number>();
  /** By log, the last low-water mark. */
  readonly #lowWater = new Map<string, number>();
  /** Tablets that a server has released, at their epochs. */
  readonly #released = new Set<string>();

  constructor(logs: JudgedLogs) {
    this.#logs = logs;
  }

  /** An append with these records became durable that was in no slot before. Those below `lowWater` may be deleted. */
  appended(log: string, position: number, records: readonly EncodedRecord[], lowWater: number): void {
    for (const record of records) {
      this.#newest.set(log, Math.max(this.#newest.get(log) ?? 0, record.sequence));
      const kept = this.#kept.get(record.tableId);
      if (kept === undefined) this.#kept.set(record.tableId, [{ log, position, record }]);
      else kept.push({ log, position, record });
    }
    if (lowWater <= (this.#lowWater.get(log) ?? 0)) return;
    this.#lowWater.set(log, lowWater);
    for (const row of this.#rows.values())
      for (const kept of this.#kept.get(row.tableId) ?? [])
        if (kept.log === log && kept.position < lowWater && this.#isNeeded(kept, row))
          this.#violated(`${log} is trimmed before append ${lowWater}, and ${textOf(kept, row)} is in no file`);
  }

  /** A call was answered: of interest are tablets that a server has released. */
  answered({ method, message }: NotedCall, answer: unknown): void {
    if (method !== 'unload') return;
    const { tablets } = message as TabletServerCalls['unload']['message'];
    const failures = answer as TabletServerCalls['unload']['answer'];
    for (const [i, { key, epoch }] of tablets.entries())
      if (failures[i] === undefined) this.#released.add(`${epoch} ${key}`);
  }

  /** A row of METADATA, or the root file, has changed. */
  rowChanged(key: MetadataKey, before: MetadataRow | undefined, after: MetadataRow | undefined): void {
    if (after === undefined) {
      this.#rows.delete(key);
      return;
    }
    this.#rows.set(key, after);
    this.#judgeOwner(before, after);
    this.#judgeFiles(after);
    const kept = this.#kept.get(after.tableId) ?? [];
    for (const one of kept)
      if (!after.logs.includes(one.log) && this.#isNeeded(one, after))
        this.#violated(`the row lists ${after.logs.join(', ')}, and ${textOf(one, after)} is in ${one.log} alone`);
    if (before === undefined || isAfter(after.redo, before.redo))
      this.#kept.set(
        after.tableId,
        kept.filter(({ record }) => isAfter(record, after.redo) || !record.touches(after.range)),
      );
  }

  #judgeFiles(row: MetadataRow): void {
    const { server, epoch, redo } = row;
    // the records of earlier epochs are in logs that were read
    if (server === undefined || redo.epoch < epoch) return;
    const log = logPathOf(server.name);
    const newest = this.#newest.get(log) ?? 0;
    if (redo.sequence > newest)
      this.#violated(
        `${nameOf(row)} has files up to record ${redo.sequence}, and ${log} has durable ones up to ${newest}`,
      );
  }

  #judgeOwner(before: MetadataRow | undefined, after: MetadataRow): void {
    const owner = before?.server;
    if (before === undefined || owner === undefined || owner.name === after.server?.name) return;
    const log = logPathOf(owner.name);
    if (this.#logs.isSealed(log)) return;
    if (!this.#released.has(`${before.epoch} ${keyOfRow(before)}`))
      this.#violated(`${nameOf(after)} is taken from ${owner.address}, which has not released it and is not fenced`);
    const left = this.#kept.get(before.tableId)?.find((kept) => kept.log === log && this.#isNeeded(kept, before));
    if (after.logs.includes(log))
      this.#violated(`${owner.address} has released ${nameOf(after)}, which lists its log still: it is not fenced`);
    if (left !== undefined)
      this.#violated(`${owner.address} has released ${nameOf(after)}, and ${textOf(left, before)} is in no file`);
  }

  /** True when a recovery of the tablet has to find the record in a log. */
  #isNeeded({ log, position, record }: KeptRecord, { redo, range, epoch }: MetadataRow): boolean {
    if (!isAfter(record, redo) || record.epoch > epoch || !record.touches(range)) return false;
    return !this.#logs.hasFailed(log, position);
  }

  #violated(what: string): void {
    this.onViolation(what);
  }
}

function textOf({ record: { epoch, sequence } }: KeptRecord, row: MetadataRow): string {
  return `record ${sequence} of epoch ${epoch} of ${nameOf(row)}`;
}

function nameOf({ tableId, range }: MetadataRow): string {
  return `the tablet of table ${tableId} from ${quote(range.start)}`;
}
