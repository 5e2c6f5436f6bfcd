/**
 * Reads a ReadRowsRequest field by field and with pauses, since it may name very many row keys. One that names few, and
 * no filter before the generated codec is loaded, is read without a promise.
 */
import { invalidArgument } from '../../base/index.ts';
import type { Pacer } from '../../env/index.ts';
import { ALL_ROWS, isEmptyRange, type RowRange } from '../../model/index.ts';
import type { ReadRequest } from '../../service/index.ts';
import { rowKeyRangeOf, rowRangeOf } from '../convert/row-range.ts';
import type { RowRange as RowRangeMessage } from '../generated/google/bigtable/v2/data_pb.ts';
import { type RequestDecoder, withFilterPart } from './request-decoder.ts';
import { WireReader } from '../../protobuf/index.ts';

/** Row keys and ranges a request: a guard of memory, far above what clients request. */
const MAX_RANGES = 1_000_000;
/** ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL. */
const REQUEST_STATS_FULL = 2;

export interface ReadRowsCall {
  readonly request: ReadRequest;
  readonly authorizedView: string;
  readonly materializedView: string;
  readonly appProfile: string;
  readonly fullStats: boolean;
}

export class ReadRowsReader {
  readonly #decoder: RequestDecoder;
  readonly #pacer: Pacer;
  readonly #reader: WireReader;
  /** The set of rows that is being read. */
  #rows: WireReader | undefined;
  readonly #ranges: RowRange[] = [];
  #table = '';
  #authorizedView = '';
  #materializedView = '';
  #appProfile = '';
  #filter: Buffer | undefined;
  #rowsLimit = 0;
  #reversed = false;
  #fullStats = false;

  constructor(bytes: Buffer, decoder: RequestDecoder, pacer: Pacer) {
    this.#decoder = decoder;
    this.#reader = new WireReader(bytes);
    this.#pacer = pacer;
  }

  /** Reads the whole request: a promise where it takes several slices, or the generated codec has to be loaded. */
  read(): ReadRowsCall | Promise<ReadRowsCall> {
    return this.readOn() && !this.#lacksCodec ? this.#call() : this.#finish();
  }

  /** Reads all but the filter, until a pause is due; true at the end. */
  readOn(): boolean {
    const reader = this.#reader;
    for (;;) {
      if (this.#rows !== undefined) {
        if (!this.#readsRows(this.#rows)) return false;
        this.#rows = undefined;
      }
      if (!reader.next()) return true;
      if (reader.field === 1) this.#table = this.#decoder.tableName(reader);
      else if (reader.field === 2) this.#rows = reader.message();
      else if (reader.field === 3) this.#filter = withFilterPart(this.#filter, reader.bytes());
      else if (reader.field === 4) this.#rowsLimit = limitOf(reader.int64());
      else if (reader.field === 5) this.#appProfile = reader.text();
      else if (reader.field === 6) this.#fullStats = reader.int32() === REQUEST_STATS_FULL;
      else if (reader.field === 7) this.#reversed = reader.int32() !== 0;
      else if (reader.field === 9) this.#authorizedView = reader.text();
      else if (reader.field === 11) this.#materializedView = reader.text();
      else reader.skip();
    }
  }

  get table(): string {
    return this.#table;
  }

  get authorizedView(): string {
    return this.#authorizedView;
  }

  get appProfile(): string {
    return this.#appProfile;
  }

  /** True when the answer ends with statistics of the whole read. */
  get fullStats(): boolean {
    return this.#fullStats;
  }

  /** The only range that the request is for; undefined where there are several, or where it holds no row. */
  get onlyRange(): RowRange | undefined {
    const [range = ALL_ROWS, other] = this.#ranges;
    return other === undefined && !isEmptyRange(range) ? range : undefined;
  }

  /** True where the filter of the request cannot be decoded yet. */
  get #lacksCodec(): boolean {
    return this.#filter !== undefined && this.#decoder.generated === undefined;
  }

  /** Reads the rest. */
  async #finish(): Promise<ReadRowsCall> {
    while (!this.readOn()) await this.#pacer.pauseForGc();
    if (this.#lacksCodec) await this.#decoder.load();
    return this.#call();
  }

  /** The read that is requested; without its filter while that cannot be decoded. */
  get request(): ReadRequest {
    return {
      table: this.#table,
      ranges: this.#ranges,
      filter: this.#filter && !this.#lacksCodec ? this.#decoder.filter(this.#filter) : undefined,
      rowsLimit: this.#rowsLimit,
      reversed: this.#reversed,
    };
  }

  #call(): ReadRowsCall {
    return {
      request: this.request,
      authorizedView: this.#authorizedView,
      materializedView: this.#materializedView,
      appProfile: this.#appProfile,
      fullStats: this.#fullStats,
    };
  }

  #readsRows(reader: WireReader): boolean {
    const ranges = this.#ranges;
    while (reader.next()) {
      if (reader.field === 1) ranges.push(rowKeyRangeOf(reader.byteString(), ranges.length));
      else if (reader.field === 2) ranges.push(rowRange(reader.message(), ranges.length));
      else reader.skip();
      if (ranges.length > MAX_RANGES)
        throw invalidArgument(`too many row keys and ranges: the limit is ${MAX_RANGES} a request`, { field: 'rows' });
      if (this.#pacer.due()) return false;
    }
    return true;
  }
}

/** A range may have its start in two fields; the last one counts. The same holds for its end. */
function rowRange(reader: WireReader, at: number): RowRange {
  let startKey: RowRangeMessage['startKey'] = { case: undefined };
  let endKey: RowRangeMessage['endKey'] = { case: undefined };
  while (reader.next()) {
    if (reader.field === 1) startKey = { case: 'startKeyClosed', value: reader.bytes() };
    else if (reader.field === 2) startKey = { case: 'startKeyOpen', value: reader.bytes() };
    else if (reader.field === 3) endKey = { case: 'endKeyOpen', value: reader.bytes() };
    else if (reader.field === 4) endKey = { case: 'endKeyClosed', value: reader.bytes() };
    else reader.skip();
  }
  return rowRangeOf({ startKey, endKey }, at);
}

function limitOf(value: number | bigint): number {
  if (value < 0) throw invalidArgument(`rows_limit must not be negative, is ${value}`, { field: 'rows_limit' });
  return typeof value === 'number' ? value : Number.MAX_SAFE_INTEGER;
}
