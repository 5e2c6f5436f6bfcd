/**
 * Reads the logs of former owners for the tablets that are being loaded. All tablets of a server share its log. One
 * that was sorted yields to each tablet its records alone. Any other is read once, sorted by table, and kept for the
 * other tablets until no tablet has requested it for a while.
 *
 * Memory: of a sorted log its index, of another one its bytes, which the log limit bounds. A record is decoded when its
 * tablet applies it, and not before: only those after the redo point and in the range ever are.
 */
import { assert, CorruptionError, toBigtableError } from '../base/index.ts';
import { type Clock, Pacer, type Timer } from '../env/index.ts';
import {
  type EncodedRecord,
  isAfter,
  type RecordsOfAppend,
  type RedoPoint,
  type RedoRecord,
  type SortedLog,
} from '../commitlog/index.ts';
import { isUnusable } from './log-sorter.ts';
import { intersectRanges, isEmptyRange, rangeContains, type RowRange } from '../model/index.ts';

/** The time for which a log that was read is kept for tablets that are loaded later. */
const CLEAR_AFTER_MS = 10_000;

/** A log that was read whole. */
type ByTable = Map<string, EncodedRecord[]>;
/** Reads all records of a log. */
export type LogReader = (path: string) => AsyncIterable<RecordsOfAppend<EncodedRecord>>;

/** Returns the sorted form of a log, if there is one. */
export type SortedLogFinder = (path: string) => Promise<SortedLog | undefined>;

export interface ReplayRequest {
  readonly tableId: string;
  readonly range: RowRange;
  readonly redo: RedoPoint;
  readonly logs: readonly string[];
  /** The one of the logs that is still written to: it is read anew each time. */
  readonly openLog?: string | undefined;
}

export class LogReplay {
  readonly #read: LogReader;
  readonly #find: SortedLogFinder;
  readonly #clock: Clock;
  readonly #logs = new Map<string, Promise<ByTable | SortedLog>>();
  #clearing: Timer | undefined;

  constructor(read: LogReader, find: SortedLogFinder, clock: Clock) {
    this.#read = read;
    this.#find = find;
    this.#clock = clock;
  }

  /**
   * Records of the range after the redo point, by (epoch, sequence), each once even if it was written twice. They are
   * decoded one by one.
   */
  async records(request: ReplayRequest): Promise<Iterable<RedoRecord>> {
    const { range, logs, openLog } = request;
    const found: EncodedRecord[] = [];
    for (const path of logs) {
      const records = await (path === openLog
        ? this.#ofTablet(await this.#readByTable(path), request)
        : this.#recordsOf(path, request));
      for (const record of records) found.push(record);
    }
    this.#clearLater();
    found.sort((a, b) => a.epoch - b.epoch || a.sequence - b.sequence);
    return recordsInRange(found, range);
  }

  /** Releases all logs that are kept. */
  clear(): void {
    this.#clearing?.cancel();
    this.#logs.clear();
  }

  async #recordsOf(path: string, request: ReplayRequest): Promise<readonly EncodedRecord[]> {
    const reading = this.#log(path, () => this.#sortedOrWhole(path));
    const log = await reading;
    if (log instanceof Map) return this.#ofTablet(log, request);
    try {
      return await log.records(request.tableId, request.range, request.redo);
    } catch (thrown) {
      if (!isUnusable(toBigtableError(thrown))) throw thrown;
      // the log itself is still there
      if (this.#logs.get(path) === reading) this.#logs.delete(path);
      const whole = await this.#log(path, () => this.#readByTable(path));
      return whole instanceof Map ? this.#ofTablet(whole, request) : this.#recordsOf(path, request);
    }
  }

  async #sortedOrWhole(path: string): Promise<ByTable | SortedLog> {
    return (await this.#find(path)) ?? this.#readByTable(path);
  }

  async #ofTablet(log: ByTable, { tableId, range, redo }: ReplayRequest): Promise<EncodedRecord[]> {
    const found: EncodedRecord[] = [];
    const pacer = new Pacer(this.#clock);
    for (const record of log.get(tableId) ?? []) {
      if (isAfter(record, redo) && record.touches(range)) found.push(record);
      if (pacer.due()) await pacer.pause();
    }
    return found;
  }

  #log(path: string, read: () => Promise<ByTable | SortedLog>): Promise<ByTable | SortedLog> {
    let log = this.#logs.get(path);
    if (log === undefined) {
      log = read();
      this.#logs.set(path, log);
      log.catch(() => this.#logs.delete(path));
    }
    return log;
  }

  async #readByTable(path: string): Promise<ByTable> {
    const tables: ByTable = new Map();
    let appends = 0;
    for await (const { records } of this.#read(path)) {
      appends++;
      for (const record of records) {
        const list = tables.get(record.tableId);
        if (list) list.push(record);
        else tables.set(record.tableId, [record]);
      }
    }
    if (appends === 0)
      throw new CorruptionError(
        path,
        0,
        'METADATA lists the log, and it is missing or empty: it has not even the first record of every log',
      );
    return tables;
  }

  #clearLater(): void {
    this.#clearing?.cancel();
    this.#clearing = this.#clock.timer(CLEAR_AFTER_MS, () => this.#logs.clear());
  }
}

function* recordsInRange(records: readonly EncodedRecord[], range: RowRange): Iterable<RedoRecord> {
  let last: RedoPoint | undefined;
  for (const record of records) {
    // written twice
    if (last !== undefined && !isAfter(record, last)) continue;
    last = record;
    yield clipRecord(record.redo(), range);
  }
}

/** The part of the record that lies in the range: after a split both children find their parent's records. */
function clipRecord(record: RedoRecord, range: RowRange): RedoRecord {
  const { body } = record;
  if (body.kind === 'dropRows') {
    const common = intersectRanges(body.range, range);
    assert(!isEmptyRange(common), 'a record that touches a range has rows there');
    return { ...record, body: { kind: 'dropRows', range: common } };
  }
  const rows = body.rows.filter(({ row }) => rangeContains(range, row));
  assert(rows.length > 0, 'a record that touches a range has rows there');
  return rows.length === body.rows.length ? record : { ...record, body: { kind: 'rows', rows } };
}
