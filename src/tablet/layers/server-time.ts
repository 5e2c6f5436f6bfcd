/**
 * The times that the server gives in one tablet: to cells that come without a timestamp, and to what a read-modify-write makes.
 *
 * Invariant: they never run back, whatever the wall clock does and whoever has served the tablet before. A client's own timestamp has no part in it.
 * Why, and how the newest of them survives: docs/decisions/0020-server-time.md.
 */
import { assert } from '../../base/index.ts';
import type { RedoRecord } from '../../commitlog/index.ts';
import type { Clock } from '../../env/index.ts';
import { carriesServerTime, type Granularity } from '../../model/index.ts';
import type { TabletFile } from './tablet-file.ts';
import type { TabletHost, TabletState } from '../contract/tablet-state.ts';

/** What METADATA can tell. A clock that is later is of no use. */
const LATEST_MICROS = Number.MAX_SAFE_INTEGER;

export class ServerTime {
  readonly #clock: Pick<Clock, 'nowMicros'>;
  readonly #host: Pick<TabletHost, 'clockIsBehind'>;
  /** Records and files of earlier versions do not tell exactly. */
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
    this.#lastMicros = files.reduce((last, file) => Math.max(last, toldBy(file)), state.lastServerMicros ?? 0);
  }

  /** The newest that was given, uncut; 0 where none was. */
  get lastMicros(): number {
    return this.#lastMicros;
  }

  /**
   * The time for a change that is about to be logged: the wall clock's, or the newest that was given and a microsecond more where the clock is behind that. Whoever
   * asks holds the row, or logs the change in the same step.
   */
  next(): number {
    const last = this.#lastMicros;
    const now = this.#clock.nowMicros();
    if (now < last) this.#host.clockIsBehind(now, last);
    this.#lastMicros = Math.min(now < last ? last + 1 : now, LATEST_MICROS);
    assert(this.#lastMicros >= last, 'the time of a tablet never runs back');
    return this.#lastMicros;
  }

  /** An earlier owner wrote this record: its time was given where a cell carries it. An earlier version read the clock once for the cell and again for the record. */
  replayed({ commitMicros, body }: RedoRecord, granularity: Granularity): void {
    if (typeof commitMicros === 'bigint' || commitMicros <= this.#lastMicros || body.kind !== 'rows') return;
    if (
      this.#isOfEarlierVersion ||
      body.rows.some(({ mutations }) => carriesServerTime(mutations, commitMicros, granularity))
    )
      this.#lastMicros = commitMicros;
  }
}

/** A file of an earlier version tells when it was written: by then the times in it had been given. */
function toldBy({ properties }: TabletFile): number {
  return properties.lastServerMicros ?? Math.min(Number(properties.createdMicros), LATEST_MICROS);
}
