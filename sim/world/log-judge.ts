/**
 * A judge of the commit logs, which sees each slot at the instant in which it is created or deleted:
 * - I5: nothing is created behind a FENCE while the log exists, and nothing there is acknowledged.
 * - I6: a server that replays the log of another, once that is fenced, finds every append. Before that it may read the
 *   log for a tablet of which that has no record; the judge of recoveries sees to this.
 * - No slot is skipped, and no server writes in the log of another.
 * - A sorted part of a log is made of a fenced log, and has all of its appends.
 * - What a reader has seen does not change: each append has the same bytes for every reader.
 */
import { type BigtableError, CorruptionError, crc32c } from '../../src/base/index.ts';
import type { SortedIndex } from '../../src/commitlog/index.ts';
import {
  decodeSlotHeader,
  isMarker,
  isStorageRefusal,
  type LogAppend,
  SLOT_HEADER_BYTES,
} from '../../src/env/index.ts';

/** The number of rows of each log. */
const ROWS = 2;

/** An append, and the number of slots that it is in now. */
interface JudgedAppend {
  readonly payload: Buffer;
  /** Appends before this one may be deleted. */
  readonly lowWater: number;
  slots: number;
}

interface JudgedRow {
  /** Slots that exist, with the numbers of their appends, 0 where they have none. */
  readonly slots: Map<number, number>;
  highest: number;
  /** The slot of the marker that ended it. A marker in a slot that was trimmed ends nothing. */
  fence: number | undefined;
}

interface JudgedLog {
  readonly rows: Map<string, JudgedRow>;
  /** The newest append that was ever created. */
  newest: number;
  readonly appends: Map<number, JudgedAppend>;
  /** It is being deleted: readers find no appends. */
  isRemoved: boolean;
  /** Checksums of the appends that were read, by position. */
  readonly read: Map<number, number>;
}

export class LogJudge {
  /** What was seen first that must not be. */
  violation: string | undefined;
  /** Called with it. */
  onViolation: (what: string) => void = () => {};
  readonly counts = { fences: 0, holeFences: 0, replays: 0, appends: 0, twice: 0, sortedParts: 0 };
  /** Called with each append when it is in a slot for the first time. */
  onAppend: (log: string, position: number, bytes: Buffer, lowWater: number) => void = () => {};
  /** Called when a row of a log ends: what its writer has not appended yet is lost to those who replay it. */
  onSealed: (log: string) => void = () => {};
  /** Logs of which an append or a reservation has failed, unless it was refused for lack of space. */
  readonly broken = new Set<string>();
  /** By log, the last append whose writer was told that it is durable. */
  readonly #acknowledged = new Map<string, number>();
  /** Called when the deletion of a log begins. */
  onRemoval: (log: string) => void = () => {};
  /** Change streams are read: servers read their own logs for them, too. */
  ownLogsAreRead = false;
  /** By log, the process that writes it. */
  readonly writers = new Map<string, string>();
  readonly #logs = new Map<string, JudgedLog>();
  /** Logs that were deleted: what lands there later belongs to none. */
  readonly #ended = new Set<string>();

  /** A slot was created in a row of a log, with these bytes. */
  created(path: string, slot: number, bytes: Buffer): void {
    const log = logOf(path);
    const judged = this.#logs.get(log) ?? newLog();
    this.#logs.set(log, judged);
    const row = judged.rows.get(path) ?? { slots: new Map(), highest: -1, fence: undefined };
    judged.rows.set(path, row);
    const header = decodeSlotHeader(bytes.subarray(0, SLOT_HEADER_BYTES), path, slot, crc32c);
    const { sequence, lowWater } = header;
    if (header.kind === 'removed' && !judged.isRemoved) {
      judged.isRemoved = true;
      this.onRemoval(log);
    }
    if (slot > row.highest + 1 && !this.#ended.has(log))
      this.#violated(`${path}: slot ${slot} was created after slot ${row.highest}, with none between them`);
    if (isMarker(header)) this.#sealed(log, row, slot);
    else if (row.fence !== undefined && slot > row.fence)
      this.#violated(`${path}: slot ${slot} was created behind the FENCE in slot ${row.fence}`);
    row.slots.set(slot, sequence);
    row.highest = Math.max(row.highest, slot);
    if (sequence === 0) return;
    const known = judged.appends.get(sequence);
    if (known !== undefined) known.slots++;
    else judged.appends.set(sequence, { payload: bytes.subarray(SLOT_HEADER_BYTES), lowWater, slots: 1 });
    if (sequence <= judged.newest) {
      this.counts.twice++;
      return;
    }
    judged.newest = sequence;
    if (!judged.isRemoved && !this.#ended.has(log))
      this.onAppend(log, sequence, bytes.subarray(SLOT_HEADER_BYTES), lowWater);
  }

  deleted(path: string, slots: readonly number[]): void {
    const log = logOf(path);
    const judged = this.#logs.get(log);
    if (judged === undefined) return;
    for (const slot of slots) removeSlot(judged, path, slot);
    // the log has ended: what comes later is another one, as far as I5 and I6 go
    if ([...judged.rows.values()].some((row) => row.slots.size > 0)) return;
    this.#logs.delete(log);
    this.#ended.add(log);
  }

  /** True when nothing lands in the log any more: both of its rows have ended, or it was deleted. */
  isSealed(log: string): boolean {
    const judged = this.#logs.get(log);
    if (judged === undefined || judged.isRemoved) return true;
    const rows = [...judged.rows.values()];
    return rows.length === ROWS && rows.every(({ fence }) => fence !== undefined);
  }

  /** True when the writer was told that the append, or one before it, has failed: its callers got no answer. */
  hasFailed(log: string, position: number): boolean {
    return this.broken.has(log) && position > (this.#acknowledged.get(log) ?? 0);
  }

  /** Paths of the logs that have a slot. */
  logs(): string[] {
    return [...this.#logs.keys()];
  }

  /** The appends from `from` on, as a reader finds them now; CorruptionError where one is missing. */
  *appendsOf(log: string, from = 0): Iterable<LogAppend> {
    const judged = this.#logs.get(log);
    // what lands in a log that was deleted is left to the sweep
    if (judged === undefined || judged.isRemoved || this.#ended.has(log)) return;
    const { newest, appends } = judged;
    for (let position = Math.max(from, appends.get(newest)?.lowWater ?? 1, 1); position <= newest; position++) {
      const append = appends.get(position);
      if (append === undefined) throw new CorruptionError(log, position, 'the append is missing, and others follow it');
      yield { position, bytes: append.payload };
    }
  }

  /** Its writer was told that the append is durable. */
  acknowledged(log: string, position: number): void {
    this.counts.appends++;
    this.#acknowledged.set(log, Math.max(position, this.#acknowledged.get(log) ?? 0));
    const newest = this.#logs.get(log)?.newest ?? position;
    if (position > newest) this.#violated(`${log}: append ${position} was acknowledged, and is not in the log`);
  }

  /** Its writer was told that an append, or a reservation, has failed. */
  failed(log: string, error: BigtableError): void {
    if (!isStorageRefusal(error)) this.broken.add(log);
    if (error.message.includes('another writer'))
      this.#violated(`${log}: its writer has taken its own slot for another's`);
  }

  appendRead(log: string, { position, bytes }: LogAppend): void {
    const read = this.#logs.get(log)?.read;
    if (read === undefined) return;
    const checksum = crc32c(bytes);
    const before = read.get(position);
    if (before !== undefined && before !== checksum) this.#violated(`${log}: append ${position} has changed`);
    read.set(position, checksum);
  }

  /**
   * A server has read all of the log of another one, from its beginning or from some position, which may be above the
   * newest append. `wasSealed`: the log was sealed before.
   */
  replayed(log: string, { from, last }: { from: number; last: number }, by: string, wasSealed: boolean): void {
    const judged = this.#logs.get(log);
    if (judged === undefined || judged.isRemoved) return;
    this.counts.replays++;
    if (wasSealed && from <= judged.newest && last !== judged.newest)
      this.#violated(`${log}: ${by} has read all to ${last}, and not append ${judged.newest}`);
  }

  /** A file with a part of the log, sorted, became visible. */
  sorted({ log, from, to = Number.POSITIVE_INFINITY, order }: SortedIndex, by: string): void {
    const judged = this.#logs.get(log);
    if (judged === undefined || judged.isRemoved) return;
    this.counts.sortedParts++;
    if (!this.isSealed(log)) this.#violated(`${log}: ${by} has sorted it, and it is not fenced`);
    const lowWater = Math.max(0, ...[...judged.appends.values()].map((append) => append.lowWater));
    const appends = [...judged.appends.keys()].filter(
      (sequence) => sequence >= Math.max(from, lowWater) && sequence < to,
    ).length;
    if (order.appends < appends)
      this.#violated(`${log}: ${by} has sorted ${order.appends} appends from ${from} to ${to}, of ${appends}`);
  }

  #sealed(log: string, row: JudgedRow, slot: number): void {
    if (slot <= row.highest) {
      this.counts.holeFences++;
      return;
    }
    this.counts.fences++;
    row.fence ??= slot;
    this.onSealed(log);
  }

  #violated(what: string): void {
    this.violation ??= what;
    this.onViolation(what);
  }
}

function newLog(): JudgedLog {
  return { rows: new Map(), newest: 0, appends: new Map(), isRemoved: false, read: new Map() };
}

function removeSlot({ rows, appends }: JudgedLog, path: string, slot: number): void {
  const slots = rows.get(path)?.slots;
  const sequence = slots?.get(slot) ?? 0;
  const append = appends.get(sequence);
  slots?.delete(slot);
  if (append !== undefined && --append.slots === 0) appends.delete(sequence);
}

/** The log that a row belongs to. */
function logOf(row: string): string {
  return row.slice(0, row.lastIndexOf('/'));
}
