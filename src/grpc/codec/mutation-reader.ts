/**
 * Reads the requests that carry mutations, field by field and with pauses: a request may hold 100,000 mutations, which
 * protobuf-es alone would decode in one slice of a second. Set-cells are read by hand, the rarer kinds by the generated
 * codec; where that is not loaded yet, reading pauses until it is. An entry with set-cells alone gets no object per
 * mutation (model/cell-run.ts).
 *
 * Values are views of the request's bytes, not copies. Limits that guard memory (the number of mutations) are checked
 * while reading.
 *
 * Bytes that are no protobuf fail the whole request. A mutation that is valid protobuf and names nothing that can be
 * done (no kind, an aggregate without its column) fails its entry alone where the request is a batch.
 */
import { BigtableError, type ByteString, invalidArgument, viewOf } from '../../base/index.ts';
import { type Clock, inSlices, Pacer } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import {
  CellBatchBuilder,
  type Idempotency,
  LIMITS,
  type Mutation,
  mutationList,
  type ReadModifyWriteRule,
  type RowMutations,
  setCell,
  type SetCell,
  sliceMutations,
} from '../../model/index.ts';
import { type RequestDecoder, withFilterPart } from './request-decoder.ts';
import { type SetCellFields, SetCellReader } from './set-cell-reader.ts';
import { WireReader } from '../../protobuf/index.ts';
import { isUntruncated, SERVER_TIME } from '../convert/set-cell-timestamp.ts';

const MAX_MUTATIONS = LIMITS.default.mutationsPerRequest;
const MICROS_A_MILLI = 1000;
/** An entry of a batch with more cells is read as a list: it is changed over several slices. */
const MAX_CELLS = 256;
/** Larger requests of one row keep set-cells as numbers. For a few mutations objects are smaller. */
const LARGE_REQUEST_BYTES = 64 * 1024;
/** A request of fewer mutations is read in one slice, and reads no clock. */
const PACED = 32;

/** The fields that all of these requests have in addition to their changes. */
export interface Target {
  table: string;
  authorizedView: string;
  appProfile: string;
}

/** The valid part of a batch. */
export interface BatchFields {
  readonly entries: RowMutations[];
  /**
   * Entries whose mutations could not be read, by their index in the request, with the reason. They are not in
   * `entries`.
   */
  readonly failures: { readonly index: number; readonly error: BigtableError }[];
}

export interface CheckAndMutateFields {
  row: ByteString;
  predicate: RowFilter | undefined;
  readonly whenTrue: Mutation[];
  readonly whenFalse: Mutation[];
}

export interface RulesOfRow {
  row: ByteString;
  readonly rules: ReadModifyWriteRule[];
}

export class MutationReader {
  readonly target: Target = { table: '', authorizedView: '', appProfile: '' };
  /**
   * Set-cells whose timestamp the client made up and which is no whole millisecond: to be truncated in a table of
   * milliseconds.
   */
  readonly untruncated: { readonly list: Mutation[]; readonly at: number }[] = [];
  readonly #bytes: Buffer;
  readonly #decoder: RequestDecoder;
  readonly #clock: Clock;
  readonly #setCell: SetCellReader;
  #pacer: Pacer | undefined;
  #count = 0;
  /** The error of the entry being read, if it fails. */
  #entryFailure: BigtableError | undefined;
  #isBatch = false;
  /** The filter of a check, as far as it was read. */
  #predicate: Buffer | undefined;

  constructor(bytes: Buffer, decoder: RequestDecoder, clock: Clock) {
    this.#bytes = bytes;
    this.#decoder = decoder;
    this.#clock = clock;
    this.#setCell = new SetCellReader(bytes);
  }

  /** MutateRowRequest. A promise where it does not fit into one slice. */
  mutateRow(): RowMutations | Promise<RowMutations> {
    const reader = new WireReader(this.#bytes);
    const isLarge = this.#bytes.length > LARGE_REQUEST_BYTES;
    const entry: PartialRowMutations = {
      row: '',
      cells: isLarge ? new CellBatchBuilder(this.#bytes) : undefined,
      from: 0,
      most: MAX_MUTATIONS,
      list: isLarge ? undefined : [],
      idempotency: undefined,
    };
    const pause = this.#rowFields(reader, entry);
    return pause === undefined
      ? rowOf(entry)
      : this.#restOf(entry, pause, () => this.#rowFields(reader, entry)).then(rowOf);
  }

  /** MutateRowsRequest. */
  async mutateRows(): Promise<BatchFields> {
    this.#isBatch = true;
    const reader = new WireReader(this.#bytes);
    const fields = new WireReader(this.#bytes);
    const cells = new CellBatchBuilder(this.#bytes);
    const entries: RowMutations[] = [];
    const failures: BatchFields['failures'] = [];
    while (reader.next()) {
      if (reader.field === 1) this.target.table = this.#decoder.tableName(reader);
      else if (reader.field === 2) {
        reader.span();
        const index = entries.length + failures.length;
        if (index === MAX_MUTATIONS) throw tooMany();
        fields.begin(reader.spanStart, reader.spanEnd);
        const entry: PartialRowMutations = {
          row: '',
          cells,
          from: cells.count,
          most: MAX_CELLS,
          list: undefined,
          idempotency: undefined,
        };
        for (
          let pause = this.#entryFields(fields, entry);
          pause !== undefined;
          pause = this.#entryFields(fields, entry)
        )
          await pause;
        if (this.#entryFailure === undefined) entries.push(rowOf(entry));
        else failures.push({ index, error: this.#entryFailure });
        this.#entryFailure = undefined;
      } else if (reader.field === 3) this.target.appProfile = reader.text();
      else if (reader.field === 5) this.target.authorizedView = reader.text();
      else reader.skip();
    }
    return { entries, failures };
  }

  /** CheckAndMutateRowRequest. A promise where it does not fit into one slice. */
  checkAndMutateRow(): CheckAndMutateFields | Promise<CheckAndMutateFields> {
    const reader = new WireReader(this.#bytes);
    const request: CheckAndMutateFields = { row: '', predicate: undefined, whenTrue: [], whenFalse: [] };
    const pause = this.#checkFields(reader, request);
    return pause === undefined ? request : this.#restOf(request, pause, () => this.#checkFields(reader, request));
  }

  /** ReadModifyWriteRowRequest. A promise where it does not fit into one slice. */
  readModifyWriteRow(): RulesOfRow | Promise<RulesOfRow> {
    const reader = new WireReader(this.#bytes);
    const request: RulesOfRow = { row: '', rules: [] };
    const pause = this.#ruleFields(reader, request);
    return pause === undefined ? request : this.#restOf(request, pause, () => this.#ruleFields(reader, request));
  }

  #checkFields(reader: WireReader, request: CheckAndMutateFields): Promise<void> | undefined {
    while (reader.next()) {
      if (reader.field === 1) this.target.table = this.#decoder.tableName(reader);
      else if (reader.field === 2) request.row = reader.byteString();
      else if (reader.field === 4 || reader.field === 5) {
        const pause = this.#mutation(reader, reader.field === 4 ? request.whenTrue : request.whenFalse);
        if (pause) return pause;
      } else if (reader.field === 6) this.#predicate = withFilterPart(this.#predicate, reader.bytes());
      else if (reader.field === 7) this.target.appProfile = reader.text();
      else if (reader.field === 9) this.target.authorizedView = reader.text();
      else reader.skip();
    }
    if (this.#predicate === undefined) return undefined;
    if (this.#decoder.generated === undefined) return this.#loadCodec();
    request.predicate = this.#decoder.filter(this.#predicate);
    return undefined;
  }

  #ruleFields(reader: WireReader, request: RulesOfRow): Promise<void> | undefined {
    while (reader.next()) {
      if (reader.field === 1) this.target.table = this.#decoder.tableName(reader);
      else if (reader.field === 2) request.row = reader.byteString();
      else if (reader.field === 3) {
        if (++this.#count > MAX_MUTATIONS)
          throw invalidArgument(`too many rules: the limit is ${MAX_MUTATIONS} a request`, { field: 'rules' });
        reader.span();
        const pause = this.#rule(reader.spanStart, reader.spanEnd, request.rules);
        if (pause) return pause;
      } else if (reader.field === 4) this.target.appProfile = reader.text();
      else if (reader.field === 6) this.target.authorizedView = reader.text();
      else reader.skip();
    }
    return undefined;
  }

  /** Truncates what `untruncated` lists to whole milliseconds. */
  truncate(): void {
    for (const { list, at } of this.untruncated) {
      const cell = list[at] as SetCell;
      const timestamp = cell.timestamp!;
      list[at] = {
        ...cell,
        timestamp:
          typeof timestamp === 'number' ? timestamp - (timestamp % MICROS_A_MILLI) : timestamp - (timestamp % 1000n),
      };
    }
  }

  /** Continues after each pause, by `read`, to the end. */
  async #restOf<T>(request: T, pause: Promise<void>, read: () => Promise<void> | undefined): Promise<T> {
    for (let wait: Promise<void> | undefined = pause; wait !== undefined; wait = read()) await wait;
    return request;
  }

  /** Reads fields of a MutateRowRequest up to the end, or until it is time to let others run. */
  #rowFields(reader: WireReader, entry: PartialRowMutations): Promise<void> | undefined {
    while (reader.next()) {
      if (reader.field === 1) this.target.table = this.#decoder.tableName(reader);
      else if (reader.field === 2) entry.row = reader.byteString();
      else if (reader.field === 3) {
        const pause = this.#entryMutation(reader, entry);
        if (pause) return pause;
      } else if (reader.field === 4) this.target.appProfile = reader.text();
      else if (reader.field === 6) this.target.authorizedView = reader.text();
      else if (reader.field === 8) entry.idempotency = withIdempotency(entry.idempotency, reader.message());
      else reader.skip();
    }
    return undefined;
  }

  /** Reads fields of an entry up to the end, or until it is time to let others run. */
  #entryFields(reader: WireReader, entry: PartialRowMutations): Promise<void> | undefined {
    while (reader.next()) {
      if (reader.field === 1) entry.row = reader.byteString();
      else if (reader.field === 2) {
        const pause = this.#entryMutation(reader, entry);
        if (pause) return pause;
      } else if (reader.field === 3) entry.idempotency = withIdempotency(entry.idempotency, reader.message());
      else reader.skip();
    }
    return undefined;
  }

  /**
   * Gathers the entry's mutation as a cell of the batch, as long as all of the entry are set-cells; else all as a list.
   */
  #entryMutation(reader: WireReader, entry: PartialRowMutations): Promise<void> | undefined {
    const { cells, from, most, list } = entry;
    if (list !== undefined || cells === undefined) return this.#mutation(reader, list!);
    if (++this.#count > MAX_MUTATIONS) throw tooMany();
    reader.span();
    const cell = this.#setCell;
    if (cells.count - from >= most || !cell.read(reader.spanStart, reader.spanEnd) || cell.isUntruncated)
      return this.#listed(entry, cells, reader.spanStart, reader.spanEnd);
    this.#addCell(cells, cell);
    return this.#pauseIfDue();
  }

  #addCell(
    cells: CellBatchBuilder,
    { familyStart, familyEnd, qualifierStart, qualifierEnd, timestamp, valueStart, valueEnd }: SetCellFields,
  ): void {
    if (!cells.toColumn(familyStart, familyEnd, qualifierStart, qualifierEnd)) {
      const family = cells.familyOfNew() ?? this.#bytes.latin1Slice(familyStart, familyEnd);
      cells.addColumn(family, qualifierStart);
    }
    cells.add(timestamp, valueStart, valueEnd);
  }

  /** Turns the entry's cells into a list, and appends the mutation at [start, end). */
  #listed(entry: PartialRowMutations, cells: CellBatchBuilder, start: number, end: number): Promise<void> | undefined {
    const run = cells.runFrom(entry.from);
    const list: Mutation[] = [];
    const listing = inSlices(this.#clock, run.length, (from, to) => {
      for (const mutation of mutationList(sliceMutations(run, from, to))) list.push(mutation);
    });
    const append = (): Promise<void> | undefined => {
      cells.dropFrom(entry.from);
      entry.list = list;
      return this.#append(start, end, list);
    };
    return listing === undefined ? append() : listing.then(append);
  }

  /** Reads the mutation at which the reader is; a promise when it is time to let others run. */
  #mutation(reader: WireReader, out: Mutation[]): Promise<void> | undefined {
    this.#count++;
    // a check has two lists, each with its own limit
    if ((this.#isBatch ? this.#count : out.length + 1) > MAX_MUTATIONS) throw tooMany();
    reader.span();
    return this.#append(reader.spanStart, reader.spanEnd, out);
  }

  #pauseIfDue(): Promise<void> | undefined {
    if (this.#count < PACED) return undefined;
    this.#pacer ??= new Pacer(this.#clock);
    return this.#pacer.due() ? this.#pacer.pauseForGc() : undefined;
  }

  async #loadCodec(): Promise<void> {
    await this.#decoder.load();
  }

  /**
   * Reads the rule at [start, end) into `out`. By hand if it is of one column and an increment or an append, as all are
   * unless fields are doubled or unknown.
   */
  #rule(start: number, end: number, out: ReadModifyWriteRule[]): Promise<void> | undefined {
    const reader = new WireReader(this.#bytes, start, end);
    let [family, qualifier] = ['', ''];
    let change: ReadModifyWriteRule['change'] | undefined;
    while (reader.next()) {
      if (reader.field === 1) family = reader.byteString();
      else if (reader.field === 2) qualifier = reader.byteString();
      else if (reader.field === 3) change = { kind: 'append', suffix: reader.bytes() };
      else if (reader.field === 4) change = { kind: 'increment', amount: reader.int64() };
      else reader.skip();
    }
    if (change !== undefined) {
      out.push({ family, qualifier, change });
      return this.#pauseIfDue();
    }
    const { generated } = this.#decoder;
    if (generated === undefined) return this.#loadCodec().then(() => this.#rule(start, end, out));
    out.push(generated.rule(this.#bytes.subarray(start, end)));
    return this.#pauseIfDue();
  }

  /**
   * Appends the mutation at [start, end) to the list; a promise when it is time to let others run, or while the codec
   * loads.
   */
  #append(start: number, end: number, list: Mutation[]): Promise<void> | undefined {
    const cell = this.#setCell;
    if (!cell.read(start, end)) return this.#appendOther(start, end, list);
    if (cell.isUntruncated) this.untruncated.push({ list, at: list.length });
    const bytes = this.#bytes;
    const family = bytes.latin1Slice(cell.familyStart, cell.familyEnd);
    list.push(
      setCell(
        family,
        bytes.latin1Slice(cell.qualifierStart, cell.qualifierEnd),
        cell.timestamp,
        viewOf(bytes, cell.valueStart, cell.valueEnd),
      ),
    );
    return this.#pauseIfDue();
  }

  /** Appends a mutation of any kind. */
  #appendOther(start: number, end: number, list: Mutation[]): Promise<void> | undefined {
    const { generated } = this.#decoder;
    if (generated === undefined) return this.#loadCodec().then(() => this.#appendOther(start, end, list));
    const { mutation, timestampOrigin } = generated.mutation(this.#bytes.subarray(start, end));
    if (mutation instanceof BigtableError) list.push(this.#malformed(mutation));
    else {
      if (mutation.kind === 'setCell' && isUntruncated(timestampOrigin, mutation.timestamp ?? SERVER_TIME))
        this.untruncated.push({ list, at: list.length });
      list.push(mutation);
    }
    return this.#pauseIfDue();
  }

  /**
   * Fails the request, or the entry of a batch: what is read for that one is discarded, so any mutation may stand for
   * it.
   */
  #malformed(error: BigtableError): Mutation {
    if (!this.#isBatch) throw error;
    this.#entryFailure ??= error;
    return { kind: 'deleteFromRow' };
  }
}

/**
 * A row: its mutations are the cells from `from` on, at most `most`, or, where some are anything else, a list. One of
 * the two is set.
 */
interface PartialRowMutations {
  row: ByteString;
  readonly cells: CellBatchBuilder | undefined;
  readonly from: number;
  readonly most: number;
  list: Mutation[] | undefined;
  idempotency: Idempotency | undefined;
}

function rowOf({ row, cells, from, list, idempotency }: PartialRowMutations): RowMutations {
  const mutations = list ?? cells!.runFrom(from);
  return idempotency === undefined ? { row, mutations } : { row, mutations, idempotency };
}

/** An Idempotency, added to what an earlier field of the same number says. Its start of 0 is none. */
function withIdempotency(earlier: Idempotency | undefined, reader: WireReader): Idempotency {
  let { token = '', startMs = 0 } = earlier ?? {};
  while (reader.next()) {
    if (reader.field === 1) token = reader.byteString();
    else if (reader.field === 2) startMs = timestampMs(reader.message());
    else reader.skip();
  }
  return { token, startMs: startMs === 0 ? undefined : startMs };
}

/** A google.protobuf.Timestamp, rounded as doubles are. */
function timestampMs(reader: WireReader): number {
  let [seconds, nanos] = [0, 0];
  while (reader.next()) {
    if (reader.field === 1) seconds = Number(reader.int64());
    else if (reader.field === 2) nanos = reader.int32();
    else reader.skip();
  }
  return seconds * 1000 + nanos / 1e6;
}

function tooMany(): Error {
  return invalidArgument(`too many mutations: the limit is ${MAX_MUTATIONS} a request`, { field: 'mutations' });
}
