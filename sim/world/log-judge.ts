/**
 * A judge of the commit logs, which sees each slot at the instant in which it is created or deleted:
 * - I5: nothing is created behind a FENCE while the log exists, and nothing there is acknowledged.
 * - I6: once a server has replayed the log of another to its end, no append lands in it while it exists.
 * - What a reader has seen does not change: each append has the same bytes for every reader.
 */
import { crc32c } from '../../src/base/index.ts';
import { decodeSlotHeader, isMarker, type LogAppend, SLOT_HEADER_BYTES } from '../../src/env/index.ts';

interface JudgedLog {
  /** Slots that exist. */
  readonly slots: Set<number>;
  highest: number;
  /** The slot of the marker that ended it. A marker in a slot that was trimmed ends nothing. */
  fence: number | undefined;
  /** The last append when another server had read it whole, and that server. */
  replayed: { readonly last: number; readonly by: string } | undefined;
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
  readonly counts = { fences: 0, holeFences: 0, replays: 0, appends: 0 };
  readonly #logs = new Map<string, JudgedLog>();

  /** A slot was created, with these bytes. */
  created(log: string, slot: number, bytes: Uint8Array): void {
    const judged = this.#logs.get(log) ?? newLog();
    this.#logs.set(log, judged);
    judged.slots.add(slot);
    const header = decodeSlotHeader(Buffer.from(bytes.subarray(0, SLOT_HEADER_BYTES)), log, slot, crc32c);
    judged.isRemoved ||= header.kind === 'removed';
    if (isMarker(header)) this.#ended(judged, slot);
    else if (judged.fence !== undefined && slot > judged.fence)
      this.#violated(`${log}: slot ${slot} was created behind the FENCE in slot ${judged.fence}`);
    else if (judged.replayed !== undefined && slot > judged.replayed.last)
      this.#violated(
        `${log}: slot ${slot} was created after ${judged.replayed.by} had read all to ${judged.replayed.last}`,
      );
    judged.highest = Math.max(judged.highest, slot);
  }

  deleted(log: string, slots: readonly number[]): void {
    const judged = this.#logs.get(log);
    if (judged === undefined) return;
    for (const slot of slots) judged.slots.delete(slot);
    // the log has ended: what comes later is another one, as far as I5 and I6 go
    if (judged.slots.size === 0) this.#logs.delete(log);
  }

  /** Its writer was told that the append is durable. */
  acknowledged(log: string, position: number): void {
    this.counts.appends++;
    const fence = this.#logs.get(log)?.fence;
    if (fence !== undefined && position > fence)
      this.#violated(`${log}: append ${position} was acknowledged behind the FENCE in slot ${fence}`);
  }

  appendRead(log: string, { position, bytes }: LogAppend): void {
    const read = this.#logs.get(log)?.read;
    if (read === undefined) return;
    const checksum = crc32c(bytes);
    const before = read.get(position);
    if (before !== undefined && before !== checksum) this.#violated(`${log}: append ${position} has changed`);
    read.set(position, checksum);
  }

  /** A server has read all of the log of another one, from its beginning or from some position. */
  replayed(log: string, last: number, by: string): void {
    const judged = this.#logs.get(log);
    if (judged === undefined || judged.isRemoved) return;
    this.counts.replays++;
    if (judged.replayed !== undefined && last !== judged.replayed.last && last > 0)
      this.#violated(`${log}: ${by} has read all to ${last}, ${judged.replayed.by} to ${judged.replayed.last}`);
    judged.replayed ??= { last, by };
    const missed = judged.fence === undefined ? 0 : newestAppend(judged);
    if (last > 0 && last < missed) this.#violated(`${log}: ${by} has read all to ${last}, and not append ${missed}`);
  }

  #ended(judged: JudgedLog, slot: number): void {
    if (slot <= judged.highest) {
      this.counts.holeFences++;
      return;
    }
    this.counts.fences++;
    judged.fence ??= slot;
  }

  #violated(what: string): void {
    this.violation ??= what;
    this.onViolation(what);
  }
}

function newLog(): JudgedLog {
  return { slots: new Set(), highest: -1, fence: undefined, replayed: undefined, isRemoved: false, read: new Map() };
}

/** The last append before the FENCE. */
function newestAppend({ slots, fence = 0 }: JudgedLog): number {
  return slots.has(fence - 1) ? fence - 1 : 0;
}
