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
import { intersectRanges, isEmptyRange, rangeContains, type RowRange } from '../model/index.ts';
import { isUnusable } from './log-sorter.ts';
import { ReplayMemory } from './replay-memory.ts';

/** Bytes of sorted logs that are in memory, for tablets that are being loaded. */
const SORTED_BYTES = 32 << 20;
/** The time for which a log that was read is kept for tablets that are loaded later. */
const CLEAR_AFTER_MS = 10_000;

/** A log that was read whole, as far as replays need it. */
type ByTable = Map<string, EncodedRecord[]>;
/** Reads all records of a log that a replay may need. */
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
  readonly #memory = new ReplayMemory(SORTED_BYTES);
  readonly #logs = new Map<string, Promise<ByTable | SortedLog>>();
  /** Those of them that were read whole. */
  readonly #wholeLogs = new Map<string, Promise<ByTable>>();
  #clearing: Timer | undefined;

  constructor(read: LogReader, find: SortedLogFinder, clock: Clock) {
    this.#read = read;
    this.#find = find;
    this.#clock = clock;
  }

  /**
   * Calls `use` with the records of the range after the redo point, by (epoch, sequence), each once even if it was
   * written twice. They are decoded one by one. Those of sorted logs count as memory until `use` has ended.
   */
  async apply<T>(request: ReplayRequest, use: (records: Iterable<RedoRecord>) => Promise<T>): Promise<T> {
    const { tableId, range, openLog } = request;
    const logs: (ByTable | SortedLog)[] = [];
    for (const path of request.logs) logs.push(await (path === openLog ? this.#readByTable(path) : this.#log(path)));
    const bytes = logs.reduce((sum, log) => sum + (log instanceof Map ? 0 : log.bytesOf(tableId, range)), 0);
    if (bytes > 0) await this.#memory.take(bytes);
    try {
      const found: EncodedRecord[] = [];
      for (const [i, log] of logs.entries())
        for (const record of await this.#recordsOf(request.logs[i]!, log, request)) found.push(record);
      this.#clearLater();
      found.sort((a, b) => a.epoch - b.epoch || a.sequence - b.sequence);
      return await use(recordsInRange(found, range));
    } finally {
      if (bytes > 0) this.#memory.giveBack(bytes);
    }
  }

  /** Releases all logs that are kept. */
  clear(): void {
    this.#clearing?.cancel();
    this.#logs.clear();
    this.#wholeLogs.clear();
  }

  async #recordsOf(path: string, log: ByTable | SortedLog, request: ReplayRequest): Promise<readonly EncodedRecord[]> {
    if (log instanceof Map) return this.#ofTablet(log, request);
    try {
      return await log.records(request.tableId, request.range, request.redo);
    } catch (thrown) {
      if (!isUnusable(toBigtableError(thrown))) throw thrown;
      // the log itself is still there, and other tablets need it, too
      return this.#ofTablet(await this.#whole(path), request);
    }
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

  #log(path: string): Promise<ByTable | SortedLog> {
    return this.#kept(this.#logs, path, async () => (await this.#find(path)) ?? this.#whole(path));
  }

  #whole(path: string): Promise<ByTable> {
    return this.#kept(this.#wholeLogs, path, () => this.#readByTable(path));
  }

  /** What is kept of the log, or is being read. */
  #kept<L>(logs: Map<string, Promise<L>>, path: string, read: () => Promise<L>): Promise<L> {
    let log = logs.get(path);
    if (log === undefined) {
      log = read();
      logs.set(path, log);
      log.catch(() => logs.delete(path));
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
    this.#clearing = this.#clock.timer(CLEAR_AFTER_MS, () => this.clear());
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
