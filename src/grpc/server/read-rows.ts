/**
 * ReadRows: the service's batches as CellChunks in messages of about 64 KB.
 *
 * A message goes out when it is full, and at the end of a batch when the last one is some milliseconds old, so that a
 * quick scan sends large messages and a slow one does not keep its rows back. A long scan without output reports how
 * far it came, if the client can take that. The next message is made only when the reader has space for it.
 *
 * Google's Go client takes a message that ends inside a row for a broken one, and its Python client a message that
 * begins inside a value: to these two each row goes whole, in one message, as far as the budget of requests has space
 * for it.
 */
import { asBuffer, BigtableError, type ByteString, Code } from '../../base/index.ts';
import {
  type CallNotes,
  inSlices,
  Pacer,
  type PullStream,
  pullStreamOf,
  type RequestContext,
  type Reservation,
} from '../../env/index.ts';
import type { ReadBatch, RowFragment } from '../../model/index.ts';
import type { RawCallPasser, RawRead, ReadPart, ReadRequest, RowService } from '../../service/index.ts';
import { scannedAnswer } from '../codec/answers.ts';
import { ChunkWriter, type RowFraming } from '../codec/chunk-writer.ts';
import { type ReadRowsCall, ReadRowsReader } from '../codec/read-rows-reader.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import type { ApiEnv, RpcCall, RpcSink } from '../../wire/index.ts';
import { misaddressed } from './decoded-writes.ts';
import { PartStream, type ReadProgress } from './part-stream.ts';
import { decodeForm, ReadForms } from './read-form.ts';
import { Relay } from './relay.ts';
import { refuseMaterializedView, withAppProfile } from './target.ts';
import { Views } from './views.ts';

/** Rows that are ready wait at most this long for the message to fill. */
const LINGER_MS = 5;
/** Period in which a scan without output reports how far it came. */
const PROGRESS_MS = 1000;
/** Size up to which a message needs no reservation: all but rows that go whole stay below it. */
const UNRESERVED_BYTES = 1024 * 1024;

/** A larger request is decoded here, in slices. */
const MAX_PASSED_BYTES = 64 * 1024;

/** ReadRows of one API. */
export class Reads {
  readonly #service: RowService;
  readonly #env: ApiEnv;
  readonly #decoder: RequestDecoder;
  readonly #passer: RawCallPasser | undefined;
  readonly #views: Views;
  readonly #forms = new ReadForms();

  /** `passer`: passes reads of other servers' rows on; undefined where there are none. */
  constructor(service: RowService, env: ApiEnv, decoder: RequestDecoder, passer: RawCallPasser | undefined) {
    this.#service = service;
    this.#env = env;
    this.#decoder = decoder;
    this.#passer = passer;
    this.#views = new Views(service, decoder);
  }

  /**
   * Undefined where everything was sent synchronously, as a read of one row in memory is. Hot path: no promise then.
   */
  readRows(call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> | undefined {
    const pacer = new Pacer(this.#env.clock);
    const reader = new ReadRowsReader(bytes, this.#decoder, pacer);
    const form = this.#forms.of(call);
    if (this.#passer !== undefined && bytes.length <= MAX_PASSED_BYTES && reader.readOn()) {
      const parts = this.#passOn(this.#passer, call.context, bytes, reader, form);
      if (parts !== undefined) return this.#relay(call, parts, reader, form, sink, pacer);
    }
    const asked = reader.read();
    const answer = (read: ReadRowsCall): Promise<void> | undefined =>
      this.#answer(call.context, read, { form, sink, pacer, startMs: call.startMs });
    return asked instanceof Promise ? asked.then(answer) : answer(asked);
  }

  /** A read that another server has passed on: its request must be for the range of the envelope. */
  passed(context: RequestContext, { table, range, form, request }: RawRead): PullStream<ReadPart> {
    const pacer = new Pacer(this.#env.clock);
    const startMs = this.#env.clock.monotonicMs();
    return new PartStream((sink) => {
      const reader = new ReadRowsReader(asBuffer(request), this.#decoder, pacer);
      const asked = reader.read();
      const answer = (read: ReadRowsCall): Promise<void> | undefined => {
        const only = reader.onlyRange;
        if (reader.table !== table || only?.start !== range.start || only.end !== range.end) throw misaddressed();
        return this.#answer(context, read, { form, sink, pacer, startMs, progress: sink.progress });
      };
      return asked instanceof Promise ? asked.then(answer) : answer(asked);
    });
  }

  /** Passes the read on where another server has all of its range. */
  #passOn(
    passer: RawCallPasser,
    given: RequestContext,
    request: Buffer,
    reader: ReadRowsReader,
    form: number,
  ): PullStream<ReadPart> | undefined {
    const { table, onlyRange: range } = reader;
    if (
      range === undefined ||
      reader.fullStats ||
      reader.authorizedView !== '' ||
      !passer.isElsewhere(table, range.start)
    )
      return undefined;
    const context = withAppProfile(given, this.#service.appProfiles, 'read', table, reader.appProfile);
    return passer.read(context, { table, range, form, request });
  }

  /** Sends what the other server answers. If the tablet moves meanwhile, the rest is read as any other read. */
  async #relay(
    call: RpcCall,
    parts: PullStream<ReadPart>,
    reader: ReadRowsReader,
    form: number,
    sink: RpcSink,
    pacer: Pacer,
  ): Promise<void> {
    const { notes } = call.context;
    if (notes !== undefined) noteRead(notes, reader.request);
    const relay = new Relay(parts, sink, notes);
    const error = await relay.run();
    if (error === undefined) return;
    const asked = await reader.read();
    const request = relay.restOf(asked.request, error);
    if (request !== undefined)
      await this.#answer(call.context, { ...asked, request }, { form, sink, pacer, startMs: call.startMs });
  }

  #answer(context: RequestContext, asked: ReadRowsCall, out: AnswerParts): Promise<void> | undefined {
    const { request, authorizedView, materializedView, appProfile, fullStats } = asked;
    if (authorizedView !== '') return this.#answerThrough(authorizedView, context, asked, out);
    if (materializedView !== '') return refuseMaterializedView(this.#service, context, materializedView);
    const { framing, reverseScans, reportsProgress } = decodeForm(out.form);
    const { notes, reservation } = context;
    if (notes !== undefined) noteRead(notes, request);
    if (request.reversed && !reverseScans) {
      throw new BigtableError(
        Code.UNIMPLEMENTED,
        'a reversed read needs a client that sets reverse_scans in its feature flags',
      );
    }
    const profiled = withAppProfile(context, this.#service.appProfiles, 'read', request.table, appProfile);
    const batches = pullStreamOf(this.#service.readRows(profiled, request));
    return new Reply({
      env: this.#env,
      notes,
      sink: out.sink,
      pacer: out.pacer,
      batches,
      reportsProgress,
      fullStats,
      framing,
      decoder: this.#decoder,
      reservation,
      startMs: out.startMs,
      progress: out.progress,
    }).run();
  }

  /** A read through an authorized view, as one of what the view has of its table. */
  async #answerThrough(view: string, context: RequestContext, asked: ReadRowsCall, out: AnswerParts): Promise<void> {
    const { request } = asked;
    const through = await this.#views.find(context, view, request.table);
    const { clock } = this.#env;
    const narrowed = await through.read(request, (count, work) => inSlices(clock, count, work));
    await this.#answer(context, { ...asked, request: narrowed, authorizedView: '' }, out);
  }
}

/** The way of an answer. */
interface AnswerParts {
  readonly form: number;
  readonly sink: RpcSink;
  readonly pacer: Pacer;
  readonly startMs: number;
  /** Told how far the read has come with each message. */
  readonly progress?: ReadProgress;
}

/** Notes what a read requests. */
function noteRead(notes: CallNotes, { table, ranges, filter, rowsLimit = 0, reversed = false }: ReadRequest): void {
  notes.target = table;
  if (ranges !== undefined) notes.rowRanges = ranges;
  notes.filter = filter;
  notes.rowsLimit = rowsLimit;
  notes.reversed = reversed;
}

interface ReplyOptions {
  readonly env: ApiEnv;
  readonly notes: CallNotes | undefined;
  readonly sink: RpcSink;
  readonly pacer: Pacer;
  readonly batches: PullStream<ReadBatch>;
  /** Reports from time to time how far a scan without output has come. */
  readonly reportsProgress: boolean;
  readonly fullStats: boolean;
  readonly framing: RowFraming;
  readonly decoder: RequestDecoder;
  readonly reservation: Reservation;
  readonly startMs: number;
  /** Set before each message, where the receiver has to know how far the read has come. */
  readonly progress: ReadProgress | undefined;
}

/** Turns batches into messages, synchronously as long as nothing has to be waited for. */
class Reply {
  readonly #options: ReplyOptions;
  readonly #writer: ChunkWriter;
  /** The batch under way, and its fragment that is written next or being written. */
  #batch: ReadBatch | undefined;
  #next = 0;
  #isInFragment = false;
  #isAtEnd = false;
  #sentMs: number;
  #reservedBytes = 0;
  /** The last row that is whole. */
  #lastRow: ByteString | undefined;

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#writer = new ChunkWriter(options.framing);
    this.#sentMs = options.startMs;
  }

  /** Answers the whole read. */
  run(): Promise<void> | undefined {
    let wait: Promise<void> | undefined;
    try {
      wait = this.#continue();
    } catch (error) {
      wait = Promise.reject(error);
    }
    if (wait !== undefined) return this.#finish(wait);
    const ending = this.#options.batches.end();
    return ending === undefined ? this.#end() : ending.then(() => this.#end());
  }

  async #finish(first: Promise<void>): Promise<void> {
    try {
      for (let wait: Promise<void> | undefined = first; wait !== undefined; wait = this.#continue()) await wait;
    } finally {
      const ending = this.#options.batches.end();
      if (ending !== undefined) await ending;
    }
    await this.#end();
  }

  /** Continues until something has to be waited for; undefined at the end of the batches. */
  #continue(): Promise<void> | undefined {
    while (!this.#isAtEnd) {
      const wait = this.#batch === undefined ? this.#pull() : this.#writeNext(this.#batch);
      if (wait !== undefined) return wait;
    }
    return undefined;
  }

  #pull(): Promise<void> | undefined {
    const pulled = this.#options.batches.pull();
    if (pulled instanceof Promise) return pulled.then((batch) => this.#onBatch(batch));
    this.#onBatch(pulled);
    return undefined;
  }

  #onBatch(batch: ReadBatch | undefined): void {
    this.#batch = batch;
    this.#next = 0;
    this.#isAtEnd = batch === undefined;
  }

  #writeNext(batch: ReadBatch): Promise<void> | undefined {
    const fragment = batch.fragments[this.#next];
    if (fragment !== undefined) return this.#fragment(fragment);
    this.#batch = undefined;
    return this.#batchEnd(batch.scannedTo);
  }

  /** Returns a promise where it is time to wait: for the reader, or for others' turns. */
  #fragment(fragment: RowFragment): Promise<void> | undefined {
    const writer = this.#writer;
    if (!this.#isInFragment) writer.begin(fragment);
    const cellsBefore = writer.cells;
    const done = writer.advance();
    this.#isInFragment = !done;
    if (done) {
      this.#next++;
      if (fragment.last) this.#lastRow = fragment.row;
    }
    const wait = writer.full ? this.#flush() : this.#reserve();
    if (wait !== undefined) return wait;
    const { pacer } = this.#options;
    return pacer.due(1 + writer.cells - cellsBefore) ? pacer.pause() : undefined;
  }

  #batchEnd(scannedTo: ByteString | undefined): Promise<void> | undefined {
    const idleMs = this.#options.env.clock.monotonicMs() - this.#sentMs;
    if (idleMs < LINGER_MS || !this.#writer.mayEnd) return undefined;
    if (this.#writer.messageBytes > 0) return this.#flush();
    if (scannedTo === undefined || !this.#options.reportsProgress || idleMs < PROGRESS_MS || this.#writer.insideRow)
      return undefined;
    this.#lastRow = scannedTo;
    this.#noteProgress();
    return this.#timed(this.#options.sink.send(scannedAnswer(scannedTo)));
  }

  /** Sends the rest, and the statistics if they were requested. */
  #end(): Promise<void> | undefined {
    const wait = this.#sendMessage();
    return this.#options.fullStats ? this.#sendStatistics(wait) : wait;
  }

  async #sendStatistics(wait: Promise<void> | undefined): Promise<void> {
    await wait;
    const { env, sink, startMs, decoder } = this.#options;
    const { readStatistics } = await decoder.load();
    await sink.send(readStatistics(this.#writer.rows, this.#writer.cells, env.clock.monotonicMs() - startMs));
  }

  #flush(): Promise<void> | undefined {
    return this.#timed(this.#sendMessage());
  }

  /** Notes when something was sent. */
  #timed(wait: Promise<void> | undefined): Promise<void> | undefined {
    this.#sentMs = this.#options.env.clock.monotonicMs();
    return wait?.then(() => {
      this.#sentMs = this.#options.env.clock.monotonicMs();
    });
  }

  /** A row that goes whole may be large: what it takes is reserved while it grows. */
  #reserve(): undefined {
    const more = this.#writer.messageBytes - UNRESERVED_BYTES - this.#reservedBytes;
    if (more <= 0) return undefined;
    if (this.#options.reservation.tryHoldAnswer(more, true) !== 'held') {
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `a row of more than ${this.#writer.messageBytes} bytes exceeds the memory that other requests leave: read fewer of its cells`,
      );
    }
    this.#reservedBytes += more;
    return undefined;
  }

  /** Sends what the writer has. */
  #sendMessage(): Promise<void> | undefined {
    const { sink, reservation, notes } = this.#options;
    if (notes !== undefined) notes.rows = this.#writer.rows;
    const isShort = this.#writer.isShort;
    const message = this.#writer.take();
    if (message === undefined) return undefined;
    if (this.#reservedBytes > 0) reservation.shrink(this.#reservedBytes);
    this.#reservedBytes = 0;
    this.#noteProgress();
    return isShort ? sink.sendCopy(message as Buffer) : sink.send(message);
  }

  #noteProgress(): void {
    const { progress } = this.#options;
    if (progress === undefined) return;
    progress.rows = this.#writer.rows;
    progress.lastRow = this.#lastRow;
    progress.isInsideRow = this.#writer.insideRow;
  }
}
