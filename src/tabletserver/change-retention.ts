/**
 * How much of the server's log is kept for change streams (docs/decisions/0105-change-streams.md).
 *
 * Invariants: while the server has a tablet of a table with a change stream, and for the longest retention after that,
 * an append is kept until it is older than the longest retention of these tables, or the appends that are kept for this
 * alone take more bytes than the limit, or the disk has less free space than a server needs for its own work: then the
 * oldest go. Without such a tablet nothing is kept.
 */
import { assert } from '../base/index.ts';
import type { ServerLog } from '../commitlog/index.ts';
import type { Clock, Logger, LogPosition, StorageSpace } from '../env/index.ts';
import type { TableSchema } from '../model/index.ts';
import type { TabletMap } from './tablet-map.ts';

/** Instants at which the log's end is noted, in a retention period, and again in the bytes that are kept at most. */
const MAX_NOTES = 1000;
/** The part of a disk that is left free at most. */
const FREE_PART = 1 / 4;

export interface ChangeRetentionOptions {
  readonly log: Pick<ServerLog, 'lowWater' | 'newestPosition' | 'nextPosition' | 'sizeBytes'>;
  readonly clock: Pick<Clock, 'nowMicros'>;
  readonly logger: Pick<Logger, 'warn'>;
  readonly tablets: Pick<TabletMap, 'all'>;
  /** Most bytes that are kept beyond what a replay needs. */
  readonly limitBytes: number;
  /** What the disk is to have free as long as anything is kept, unless that is too large a part of it. */
  readonly freeBytes: number;
  schemaOf(tableId: string): TableSchema | undefined;
}

interface Note {
  readonly atMicros: number;
  /** The newest append at that time. */
  readonly position: LogPosition;
}

export class ChangeRetention {
  readonly #options: ChangeRetentionOptions;
  /** Ascending. Every append above one is of its time or later. */
  readonly #notes: Note[] = [];
  #retentionMicros = 0;
  /** Nothing is kept after this time: no tablet needed it then. */
  #untilMicros = 0;

  constructor(options: ChangeRetentionOptions) {
    this.#options = options;
  }

  /**
   * A tablet of a table with that retention is about to be served. Returns the position of its first change, or one
   * below it: from there on appends are kept, even if the tablet never comes.
   */
  begin(retentionMicros: number): LogPosition {
    const { clock, log } = this.#options;
    const nowMicros = clock.nowMicros();
    this.#retentionMicros = Math.max(this.#retentionMicros, retentionMicros);
    this.#untilMicros = Math.max(this.#untilMicros, nowMicros + retentionMicros);
    if (this.#notes.length === 0) this.#notes.push(this.#firstNote(nowMicros));
    return log.nextPosition;
  }

  /**
   * The position from which appends are kept, when no replay needs those below `position`. At most `position`. `space`:
   * that of the disk; undefined where it is not known.
   */
  keptFrom(position: LogPosition, space?: StorageSpace): LogPosition {
    const retentionMicros = this.#longest();
    if (retentionMicros === 0 && this.#notes.length === 0) return position;
    const { clock, log } = this.#options;
    const nowMicros = clock.nowMicros();
    if (retentionMicros > 0) {
      this.#retentionMicros = retentionMicros;
      this.#untilMicros = nowMicros + retentionMicros;
    } else if (nowMicros > this.#untilMicros) {
      this.#notes.length = 0;
      return position;
    }
    // what the log still has may be of a tablet that came since the last trim
    if (this.#notes.length === 0) this.#notes.push(this.#firstNote(nowMicros));
    this.#note(nowMicros);
    this.#forget(nowMicros - this.#retentionMicros, position, this.#allowedBytes(position, space));
    // the newest append stays: by what it says of the one before it a reader sees that some are gone
    return Math.min(this.#notes[0]!.position, position, log.newestPosition);
  }

  /**
   * A position of the log below which every append is older than the time, as far as that is known: undefined where the
   * log has to be read from its beginning. The append at the position is one of those, if there still is one.
   */
  before(atMicros: number): LogPosition | undefined {
    let [low, high] = [0, this.#notes.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#notes[middle]!.atMicros <= atMicros) low = middle + 1;
      else high = middle;
    }
    const note = this.#notes[low - 1];
    assert(note === undefined || note.atMicros <= atMicros, 'a position is of the time or before it');
    return note?.position;
  }

  /** The longest retention of a table of which the server has a tablet; 0: none has a change stream. */
  #longest(): number {
    let longest = 0;
    let last: string | undefined;
    for (const { tableId } of this.#options.tablets.all()) {
      if (tableId === last) continue;
      last = tableId;
      longest = Math.max(longest, this.#options.schemaOf(tableId)?.changeStream?.retentionMicros ?? 0);
    }
    return longest;
  }

  /** All that the log has, which may have been trimmed whole. */
  #firstNote(atMicros: number): Note {
    const { lowWater, newestPosition } = this.#options.log;
    return { atMicros, position: Math.min(lowWater, newestPosition) };
  }

  #note(atMicros: number): void {
    const last = this.#notes.at(-1)!;
    const { log, limitBytes } = this.#options;
    const { newestPosition: position } = log;
    assert(position >= last.position, 'positions of the log ascend');
    // a clock that was set back notes nothing until it has caught up: more is kept
    if (atMicros < last.atMicros) return;
    const bytes = log.sizeBytes(last.position) - log.sizeBytes(position);
    if (atMicros - last.atMicros >= this.#retentionMicros / MAX_NOTES || bytes >= limitBytes / MAX_NOTES)
      this.#notes.push({ atMicros, position });
  }

  /** Most bytes that are kept beyond what a replay needs. */
  #allowedBytes(position: LogPosition, space: StorageSpace | undefined): number {
    const { log, limitBytes, freeBytes, logger } = this.#options;
    if (space === undefined) return limitBytes;
    const wantedBytes = Math.min(freeBytes, space.totalBytes * FREE_PART);
    const leftBytes = log.sizeBytes(log.lowWater);
    // the next append trims what is below the mark
    const trimmedBytes = log.sizeBytes(0) - leftBytes;
    const keptBytes = leftBytes - log.sizeBytes(position);
    assert(trimmedBytes >= 0 && keptBytes >= 0, 'a log is longer from an earlier append on');
    const missingBytes = wantedBytes - space.freeBytes - trimmedBytes;
    if (missingBytes <= 0 || keptBytes === 0) return limitBytes;
    logger.warn('the disk is nearly full: changes that streams may not have delivered are not kept any longer', {
      freeBytes: space.freeBytes,
      wantedBytes,
      keptBytes,
    });
    return Math.min(limitBytes, Math.max(0, keptBytes - missingBytes));
  }

  /** Leaves the newest note that is no younger than `sinceMicros` as the first, unless less is allowed. */
  #forget(sinceMicros: number, position: LogPosition, allowedBytes: number): void {
    const { log } = this.#options;
    const neededBytes = log.sizeBytes(position);
    const isTooMuch = (from: LogPosition): boolean => log.sizeBytes(from) - neededBytes > allowedBytes;
    while (this.#notes.length > 1) {
      const [first, second] = this.#notes;
      if (second!.atMicros > sinceMicros && !isTooMuch(first!.position)) return;
      this.#notes.shift();
    }
    if (isTooMuch(this.#notes[0]!.position)) this.#notes[0] = { ...this.#notes[0]!, position };
  }
}
