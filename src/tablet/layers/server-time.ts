/**
 * The times that the server gives in one tablet: to cells without a timestamp, and to the results of a
 * read-modify-write.
 *
 * Invariant: they never run back, whatever the wall clock says and whichever server had the tablet before. Timestamps
 * of clients have no part in it. Reasons, and how the newest time survives: docs/decisions/0020-server-time.md.
 */
import { assert } from '../../base/index.ts';
import type { RedoRecord } from '../../commitlog/index.ts';
import type { Clock } from '../../env/index.ts';
import { carriesServerTime, type Granularity } from '../../model/index.ts';
import type { TabletFile } from './tablet-file.ts';
import type { TabletHost, TabletState } from '../contract/tablet-state.ts';

/** The largest time that METADATA can hold. */
const LATEST_MICROS = Number.MAX_SAFE_INTEGER;

export class ServerTime {
  readonly #clock: Pick<Clock, 'nowMicros'>;
  readonly #host: Pick<TabletHost, 'clockIsBehind'>;
  /** Records and files of earlier versions do not say exactly. */
  readonly #isOfEarlierVersion: boolean;
  #lastMicros: number;

  constructor(
    clock: Pick<Clock, 'nowMicros'>,
    host: Pick<TabletHost, 'clockIsBehind'>,
    state: TabletState,
    files: readonly TabletFile[],
  ) {
    this.#clock = clock;
    this.#host = host;
    this.#isOfEarlierVersion = state.lastServerMicros === undefined;
    this.#lastMicros = files.reduce((last, file) => Math.max(last, newestTimeOf(file)), state.lastServerMicros ?? 0);
  }

  /** The newest time that was given, in microseconds; 0 if none was. */
  get lastMicros(): number {
    return this.#lastMicros;
  }

  /**
   * The time for a change that is about to be logged: that of the wall clock, or the newest one and a microsecond if
   * the clock is not later. The caller has locked the row, or logs the change in the same slice.
   */
  next(): number {
    const last = this.#lastMicros;
    const now = this.#clock.nowMicros();
    if (now < last) this.#host.clockIsBehind(now, last);
    this.#lastMicros = Math.min(now < last ? last + 1 : now, LATEST_MICROS);
    assert(this.#lastMicros >= last, 'the time of a tablet never runs back');
    return this.#lastMicros;
  }

  /**
   * Learns from a record of an earlier owner: its time was given if a cell carries it. An earlier version read the
   * clock once for the cell and again for the record.
   */
  replayed({ commitMicros, body }: RedoRecord, granularity: Granularity): void {
    if (typeof commitMicros === 'bigint' || commitMicros <= this.#lastMicros || body.kind !== 'rows') return;
    if (
      this.#isOfEarlierVersion ||
      body.rows.some(({ mutations }) => carriesServerTime(mutations, commitMicros, granularity))
    )
      this.#lastMicros = commitMicros;
  }
}

/** A file of an earlier version states when it was written: the times in it had been given by then. */
function newestTimeOf({ properties }: TabletFile): number {
  return properties.lastServerMicros ?? Math.min(Number(properties.createdMicros), LATEST_MICROS);
}
