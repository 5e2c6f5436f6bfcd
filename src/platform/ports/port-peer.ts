/**
 * Calls and streams between two threads over a port, either side calling the other. All frames of one turn of the event
 * loop are packed into one message (message-encoder.ts), whose memory is transferred.
 *
 * Invariants:
 * - Frames arrive in order. A call gets one answer; a stream's items come in order, at most WINDOW of them not yet
 *   requested.
 * - A call that is cancelled here, for its deadline too, is cancelled there: only the caller's side keeps timers.
 * - When the other side has ended, every call to it fails with UNAVAILABLE (its outcome is unknown), and its own
 *   requests are cancelled.
 */
import type { MessagePort } from 'node:worker_threads';
import { BigtableError, Code, NumberTable, unavailable } from '../../base/index.ts';
import {
  type ByteBudget,
  CallContext,
  type CallHandler,
  checkContext,
  type Clock,
  fromPlainThrown,
  type Metrics,
  notReached,
  type PlainThrown,
  type Priority,
  type PullStream,
  pullStreamOf,
  type RequestContext,
  toPlainThrown,
} from '../../env/index.ts';
import { MessageDecoder } from './message-decoder.ts';
import { MessageEncoder } from './message-encoder.ts';
import { Frame, type FrameKind, type Receiver, SentCall, SentStream, WINDOW } from './sent-call.ts';

/** Numbers of calls wrap there; an earlier call of the same number has ended long ago. */
const MAX_IDS = 2 ** 31;
/** A message of this size is sent before the end of the turn. */
const BATCH_BYTES = 256 * 1024;

export interface PortPeerOptions {
  readonly port: MessagePort;
  /** Answers the calls to an address, from the other side. */
  readonly handlerOf: (address: string) => CallHandler;
  readonly clock: Clock;
  /** The budget from which the other side's calls reserve. */
  readonly budget: ByteBudget;
  readonly metrics: Metrics;
  /** Called once when the other side has ended, or this one is closed. */
  readonly onClosed?: () => void;
}

/** A request of the other side: a call, or a stream with its items. */
interface PeerRequest {
  readonly context: CallContext;
  items?: PullStream<unknown>;
  credit: number;
  pulling: boolean;
}

export class PortPeer {
  readonly #options: PortPeerOptions;
  readonly #encoder = new MessageEncoder();
  readonly #decoder = new MessageDecoder();
  readonly #receivers = new NumberTable<Receiver>();
  readonly #requests = new NumberTable<PeerRequest>();
  #lastId = 0;
  #scheduled = false;
  #closed = false;

  constructor(options: PortPeerOptions) {
    this.#options = options;
    options.port.on('message', (bytes: Uint8Array) => this.#receive(bytes));
    options.port.on('close', () => this.#end());
  }

  call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    return new Promise((resolve, reject) => {
      checkContext(context, this.#options.clock);
      const id = this.#request(Frame.call, address, method, message, context);
      const call = new SentCall(context, this.#options.clock, {
        resolve: (value) => {
          this.#receivers.delete(id);
          resolve(value);
        },
        reject: (error) => {
          this.#receivers.delete(id);
          reject(error);
        },
        cancel: (error) => this.#cancel(id, error),
      });
      this.#receivers.set(id, call);
    });
  }

  stream(address: string, method: string, message: unknown, context: RequestContext): PullStream<unknown> {
    let id = 0;
    const { clock } = this.#options;
    return new SentStream(context, clock, {
      begin: (stream) => {
        id = this.#request(Frame.stream, address, method, message, context);
        this.#receivers.set(id, stream);
      },
      more: (count) => this.#send(Frame.more, id, (encoder) => encoder.uint(count)),
      over: () => void this.#receivers.delete(id),
      cancel: (error) => this.#cancel(id, error),
    });
  }

  /** Ends the calls under way, on both sides. */
  close(): void {
    this.#flush();
    this.#options.port.close();
    this.#end();
  }

  #request(frame: FrameKind, address: string, method: string, message: unknown, context: RequestContext): number {
    if (this.#closed) throw noServerAt(address);
    this.#lastId = (this.#lastId + 1) % MAX_IDS;
    const id = this.#lastId;
    this.#send(frame, id, (encoder) => {
      encoder.name(address);
      encoder.name(method);
      encoder.double(context.deadlineMs - this.#options.clock.monotonicMs());
      encoder.name(context.principal);
      encoder.name(context.appProfile);
      encoder.name(context.priority);
      encoder.value(context.trace);
      encoder.value(message);
    });
    this.#options.metrics.add('transport.callsPassedOn');
    if (context.notes !== undefined) context.notes.passedOn++;
    return id;
  }

  #cancel(id: number, error: BigtableError): void {
    if (this.#receivers.delete(id)) this.#send(Frame.cancel, id, (encoder) => encoder.value(toPlainThrown(error)));
  }

  #send(frame: FrameKind, id: number, write: (encoder: MessageEncoder) => void): void {
    if (this.#closed) return;
    const encoder = this.#encoder;
    encoder.whole(() => {
      encoder.uint(frame);
      encoder.uint(id);
      write(encoder);
    });
    if (encoder.lengthBytes >= BATCH_BYTES) return this.#flush();
    if (this.#scheduled) return;
    this.#scheduled = true;
    void this.#options.clock.yield().then(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#closed || this.#encoder.lengthBytes === 0) return;
    const bytes = this.#encoder.take();
    this.#options.port.postMessage(bytes, [bytes.buffer]);
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    const gone = unavailable('the thread that was called has ended: the outcome of the call is unknown');
    for (const receiver of this.#receivers.values()) receiver.receive(Frame.failure, toPlainThrown(gone));
    for (const { context } of this.#requests.values())
      context.interrupt(new BigtableError(Code.CANCELLED, 'the thread that called has ended'));
    this.#options.onClosed?.();
  }

  #receive(bytes: Uint8Array): void {
    const decoder = this.#decoder;
    decoder.begin(bytes);
    while (!decoder.atEnd) {
      const frame = decoder.uint() as FrameKind;
      const id = decoder.uint();
      if (frame === Frame.call || frame === Frame.stream) {
        this.#receiveRequest(frame, id);
      } else if (frame === Frame.more) {
        this.#credit(id, decoder.uint());
      } else {
        // decoded even where no call waits for it any more
        const value = frame === Frame.end ? undefined : decoder.value();
        if (frame === Frame.cancel) this.#requests.get(id)?.context.interrupt(fromPlainThrown(value as PlainThrown));
        else this.#receivers.get(id)?.receive(frame, value);
      }
    }
  }

  #receiveRequest(frame: FrameKind, id: number): void {
    const { clock, budget, handlerOf } = this.#options;
    const decoder = this.#decoder;
    const [address, method] = [decoder.name(), decoder.name()];
    const deadlineMs = clock.monotonicMs() + decoder.double();
    const [principal, appProfile, priority] = [decoder.name(), decoder.name(), decoder.name() as Priority];
    const context = new CallContext({ budget, deadlineMs, principal, priority, trace: decoder.value() as string });
    context.appProfile = appProfile;
    const from = decoder.at;
    const message = decoder.value();
    // admitted by the other side, which waits for the answer: if it had to wait here too, two threads could wait for
    // each other
    context.reservation.force(decoder.at - from);
    const request: PeerRequest = { context, credit: WINDOW, pulling: false };
    this.#requests.set(id, request);
    try {
      if (frame === Frame.stream) {
        request.items = pullStreamOf(handlerOf(address).stream(method, message, context));
        context.listen({ interrupt: () => this.#cancelled(id, request) });
        this.#pump(id, request);
      } else {
        handlerOf(address)
          .call(method, message, context)
          .then(
            (value) => this.#answered(id, request, value),
            (thrown: unknown) => this.#failed(id, request, thrown),
          );
      }
    } catch (thrown) {
      this.#failed(id, request, thrown);
    }
  }

  #answered(id: number, request: PeerRequest, value: unknown): void {
    try {
      if (request.context.interruption === undefined) this.#send(Frame.answer, id, (encoder) => encoder.value(value));
      this.#remove(id, request);
    } catch (thrown) {
      this.#failed(id, request, thrown);
    }
  }

  #failed(id: number, request: PeerRequest, thrown: unknown): void {
    if (request.context.interruption === undefined)
      this.#send(Frame.failure, id, (encoder) => encoder.value(toPlainThrown(thrown)));
    this.#remove(id, request);
  }

  #remove(id: number, { context }: PeerRequest): void {
    this.#requests.delete(id);
    context.reservation.release();
  }

  #credit(id: number, count: number): void {
    const request = this.#requests.get(id);
    if (!request) return;
    request.credit += count;
    if (!request.pulling) this.#pump(id, request);
  }

  /** Sends the ready items, as far as they are requested. */
  #pump(id: number, request: PeerRequest): void {
    const items = request.items!;
    try {
      while (request.credit > 0 && this.#requests.has(id)) {
        const item = items.pull();
        if (item instanceof Promise) {
          request.pulling = true;
          item.then(
            (value) => {
              request.pulling = false;
              if (this.#pass(id, request, value)) this.#pump(id, request);
            },
            (thrown: unknown) => this.#failedItem(id, request, thrown),
          );
          return;
        }
        if (!this.#pass(id, request, item)) return;
      }
    } catch (thrown) {
      this.#failedItem(id, request, thrown);
    }
  }

  /** Sends the item; false where the stream has ended. */
  #pass(id: number, request: PeerRequest, item: unknown): boolean {
    if (!this.#requests.has(id)) return false;
    if (item === undefined) {
      this.#send(Frame.end, id, () => {});
      this.#remove(id, request);
      return false;
    }
    try {
      request.credit--;
      this.#send(Frame.item, id, (encoder) => encoder.value(item));
      return true;
    } catch (thrown) {
      this.#failedItem(id, request, thrown);
      return false;
    }
  }

  #failedItem(id: number, request: PeerRequest, thrown: unknown): void {
    if (!this.#requests.has(id)) return;
    this.#failed(id, request, thrown);
    this.#endItems(request);
  }

  /** The other side has cancelled the stream. */
  #cancelled(id: number, request: PeerRequest): void {
    this.#remove(id, request);
    this.#endItems(request);
  }

  /** Errors of a clean-up are ignored: no caller waits for them. */
  #endItems({ items }: PeerRequest): void {
    const ending = items?.end();
    if (ending instanceof Promise) ending.catch(() => {});
  }
}

function noServerAt(address: string): BigtableError {
  return notReached(`no server at address ${JSON.stringify(address)}: its thread has ended`);
}
