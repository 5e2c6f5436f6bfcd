/**
 * Reads the logs of former owners for the tablets that are being loaded. All tablets of a server share its log, so it
 * is read once, sorted by table, and kept for the other tablets until no tablet has requested it for a while.
 *
 * Memory: the bytes of the logs, which the log limit bounds. A record is decoded when its tablet applies it, and not
 * before: only those after the redo point and in the range ever are.
 */
import { assert, CorruptionError } from '../base/index.ts';
import { type Clock, Pacer, type Timer } from '../env/index.ts';
import {
  type EncodedRecord,
  isAfter,
  type RecordsOfAppend,
  type RedoPoint,
  type RedoRecord,
} from '../commitlog/index.ts';
import { intersectRanges, isEmptyRange, rangeContains, type RowRange } from '../model/index.ts';

/** The time for which a log that was read is kept for tablets that are loaded later. */
const CLEAR_AFTER_MS = 10_000;

type ByTable = Map<string, EncodedRecord[]>;
/** Reads all records of a log. */
export type LogReader = (path: string) => AsyncIterable<RecordsOfAppend<EncodedRecord>>;

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
  readonly #clock: Clock;
  readonly #logs = new Map<string, Promise<ByTable>>();
  #clearing: Timer | undefined;

  constructor(read: LogReader, clock: Clock) {
    this.#read = read;
    this.#clock = clock;
  }

  /**
   * Records of the range after the redo point, by (epoch, sequence), each once even if it was written twice. They are
   * decoded one by one.
   */
  async records({ tableId, range, redo, logs, openLog }: ReplayRequest): Promise<Iterable<RedoRecord>> {
    const found: EncodedRecord[] = [];
    const pacer = new Pacer(this.#clock);
    for (const path of logs) {
      const byTable = await (path === openLog ? this.#readByTable(path) : this.#log(path));
      for (const record of byTable.get(tableId) ?? []) {
        if (isAfter(record, redo) && record.touches(range)) found.push(record);
        if (pacer.due()) await pacer.pause();
      }
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

  #log(path: string): Promise<ByTable> {
    let log = this.#logs.get(path);
    if (log === undefined) {
      log = this.#readByTable(path);
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
