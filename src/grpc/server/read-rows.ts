/**
 * ReadRows: the service's batches as CellChunks in messages of about 64 KB.
 *
 * A message goes out when it is full, and at the end of a batch when the last one is some milliseconds old, so that a quick scan sends
 * large messages and a slow one does not keep its rows back. A long scan without output tells how far it came, if the client can
 * take that. The next message is made only when the reader has room for it.
 *
 * Google's Go client takes a message that ends inside a row for a broken one, and its Python client a message that begins inside a
 * value: to these two each row goes whole, in one message, as far as the budget of requests has room for it.
 */
import { BigtableError, type ByteString, Code } from '../../base/index.ts';
import { Pacer, pullStreamOf, type Reservation } from '../../env/index.ts';
import type { RowFragment } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { scannedAnswer } from '../codec/answers.ts';
import { ChunkWriter, type RowsGo } from '../codec/chunk-writer.ts';
import { loadRareMessages, withRareMessages } from '../codec/rare.ts';
import { readRowsCall } from '../codec/read-rows-reader.ts';
import type { ApiEnv, RpcCall, RpcSink } from '../../wire/index.ts';
import { featureFlags } from './features.ts';
import { rowsGoTo } from './peculiar-clients.ts';
import { refuseAuthorizedView, refuseMaterializedView, withAppProfile } from './target.ts';

/** Rows that are ready wait at most this long for the message to fill. */
const LINGER_MS = 5;
/** A scan without output says how far it came this often. */
const PROGRESS_MS = 1000;
/** A message may grow this far before it must be reserved. */
const UNRESERVED_BYTES = 4 * 1024 * 1024;

export async function readRows(service: Service, env: ApiEnv, call: RpcCall, bytes: Buffer, sink: RpcSink): Promise<void> {
  const startMs = env.clock.monotonicMs();
  const pacer = new Pacer(env.clock);
  const read = withRareMessages(() => readRowsCall(bytes, pacer));
  // what is there is not awaited, here and below: a promise costs more than a small row does
  const { request, authorizedView, materializedView, appProfile, fullStats } = read instanceof Promise ? await read : read;
  refuseAuthorizedView(authorizedView);
  refuseMaterializedView(materializedView);
  const features = featureFlags(call);
  if (request.reversed && !features.reverseScans) {
    throw new BigtableError(Code.UNIMPLEMENTED, 'a reversed read needs a client that sets reverse_scans in its feature flags');
  }
  const reply = new Reply({ env, sink, pacer, rowsGo: rowsGoTo(call), reservation: call.context.reservation, startMs });
  const batches = pullStreamOf(service.readRows(withAppProfile(call.context, appProfile), request));
  try {
    for (;;) {
      const pulled = batches.pull();
      const batch = pulled instanceof Promise ? await pulled : pulled;
      if (batch === undefined) break;
      for (const fragment of batch.fragments) {
        const wait = reply.fragment(fragment);
        if (wait !== undefined) await wait;
      }
      const wait = reply.batchEnd(features.lastScannedRowResponses ? batch.scannedTo : undefined);
      if (wait !== undefined) await wait;
    }
  } finally {
    const ending = batches.end();
    if (ending !== undefined) await ending;
  }
  const wait = reply.flush();
  if (wait !== undefined) await wait;
  if (fullStats) await reply.sendStatistics(env.clock.monotonicMs() - startMs);
}

interface ReplyOptions {
  readonly env: ApiEnv;
  readonly sink: RpcSink;
  readonly pacer: Pacer;
  readonly rowsGo: RowsGo;
  readonly reservation: Reservation;
  readonly startMs: number;
}

class Reply {
  readonly #options: ReplyOptions;
  readonly #writer: ChunkWriter;
  #sentMs: number;
  #reservedBytes = 0;

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#writer = new ChunkWriter(options);
    this.#sentMs = options.startMs;
  }

  /** A promise where it is time to wait: for the reader, or for others' turns. */
  fragment(fragment: RowFragment): Promise<void> | undefined {
    this.#writer.begin(fragment);
    return this.#goOn(fragment);
  }

  #goOn(fragment: RowFragment): Promise<void> | undefined {
    const writer = this.#writer;
    for (let done = false; !done; ) {
      done = writer.advance();
      const wait = writer.full ? this.flush() : this.#reserve();
      if (wait !== undefined) return done ? wait : wait.then(() => this.#goOn(fragment));
    }
    const { pacer } = this.#options;
    return pacer.due(1 + fragment.cells.length) ? pacer.pause() : undefined;
  }

  batchEnd(scannedTo: ByteString | undefined): Promise<void> | undefined {
    const idleMs = this.#options.env.clock.monotonicMs() - this.#sentMs;
    if (idleMs < LINGER_MS || !this.#writer.mayEnd) return undefined;
    if (this.#writer.messageBytes > 0) return this.flush();
    if (scannedTo === undefined || idleMs < PROGRESS_MS || this.#writer.insideRow) return undefined;
    return this.#send(scannedAnswer(scannedTo));
  }

  async sendStatistics(latencyMs: number): Promise<void> {
    const { readStatistics } = await loadRareMessages();
    await this.#send(readStatistics(this.#writer.rows, this.#writer.cells, latencyMs));
  }

  /** Sends what there is, between rows. */
  flush(): Promise<void> | undefined {
    const message = this.#writer.take();
    return message && this.#send(message);
  }

  /** A row that goes whole may be large: what it takes is reserved while it grows. */
  #reserve(): undefined {
    const more = this.#writer.messageBytes - UNRESERVED_BYTES - this.#reservedBytes;
    if (more <= 0) return undefined;
    if (!this.#options.reservation.tryGrow(more)) {
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a row of more than ${this.#writer.messageBytes} bytes has no room beside the other requests: read fewer of its cells at once`);
    }
    this.#reservedBytes += more;
    return undefined;
  }

  #send(message: Buffer | readonly Buffer[]): Promise<void> | undefined {
    const { sink, reservation, env } = this.#options;
    if (this.#reservedBytes > 0) reservation.shrink(this.#reservedBytes);
    this.#reservedBytes = 0;
    const wait = sink.send(message);
    this.#sentMs = env.clock.monotonicMs();
    return wait?.then(() => {
      this.#sentMs = env.clock.monotonicMs();
    });
  }
}
