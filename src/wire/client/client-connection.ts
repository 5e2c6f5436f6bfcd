/**
 * A server's HTTP/2 connection, seen from the client (RFC 9113): requests out, frames in, flow control both ways, the
 * end by GOAWAY.
 *
 * Invariant: every exchange that was opened ends exactly once, by headers that end it, by `onLost`, or by its own
 * reset; of those above the last stream that a GOAWAY names it is known that they were not worked on.
 *
 * Bytes that arrive are credited to the connection's window immediately, so that a slow reader delays only its own
 * stream.
 */
import type { Socket } from 'node:net';
import { assert, BigtableError, Code, NumberTable } from '../../base/index.ts';
import { type Clock, notReached, type Timer } from '../../env/index.ts';
import { messagePrefix } from '../grpc/message-framing.ts';
import { HeaderListTooLarge, HpackDecoder, HpackError } from '../hpack/decoder.ts';
import { HpackEncoder } from '../hpack/encoder.ts';
import { CorkedOutput } from '../http2/corked-output.ts';
import { DataSender } from '../http2/data-sender.ts';
import { ReceiveWindow } from '../http2/flow-window.ts';
import {
  CLIENT_PREFACE,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  errorCodeName,
  Flag,
  FrameReader,
  FrameType,
  frame,
  goAwayFrame,
  Http2Error,
  isTlsRecord,
  Setting,
  rstStreamFrame,
  settingsFrame,
  windowUpdateFrame,
} from '../http2/frames.ts';
import { HeaderBlock, unpad } from '../http2/header-block.ts';
import { DEFAULT_LIMITS } from '../http2/limits.ts';
import { PeerSettings } from '../http2/settings.ts';
import { Stream, type StreamConnection } from '../http2/stream.ts';
import { errorOfReset } from './answer-status.ts';

/** Bytes of one answer that a server may send before they are read. */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
const MAX_FRAME_BYTES = 64 * 1024;
const LAST_STREAM_ID = 0x7fffffff;

/** One request and its answer. */
export interface Exchange {
  onHeaders(headers: readonly string[], endStream: boolean): void;
  onData(bytes: Buffer): void;
  /** The answer ended without trailers. */
  onEnd(): void;
  /** The answer is lost. `untouched`: the server surely did not begin to work on the request. */
  onLost(error: BigtableError, untouched: boolean): void;
}

export interface ClientConnectionOptions {
  readonly socket: Socket;
  /** The server's address as the user wrote it, for messages. */
  readonly address: string;
  readonly clock: Clock;
  /** A connection that takes a call and is silent for this long after it is sent a PING, ms, */
  readonly keepAliveMs: number;
  /** and is lost when it does not answer within this. */
  readonly keepAliveTimeoutMs: number;
  /** It is lost also after this number of calls, one after another, in whose time nothing came. */
  readonly maxSilentCalls: number;
  /** The server has sent its settings: requests may go out. */
  readonly onReady: () => void;
  /** An exchange has ended: there is capacity for another one. */
  readonly onCapacity: () => void;
  /** The connection takes no new exchanges; the open ones continue. */
  readonly onDraining: (why: string) => void;
  /** The connection is closed. */
  readonly onGone: (error: BigtableError) => void;
}

interface Open {
  readonly stream: Stream;
  readonly exchange: Exchange;
}

export class ClientConnection implements StreamConnection {
  isReady = false;
  isDraining = false;
  readonly #options: ClientConnectionOptions;
  readonly #output: CorkedOutput;
  readonly #sender: DataSender;
  readonly #frames: FrameReader;
  readonly #encoder = new HpackEncoder();
  readonly #decoder = new HpackDecoder({
    maxTableBytes: DEFAULT_LIMITS.hpackTableBytes,
    maxHeaderBytes: DEFAULT_LIMITS.maxHeaderBytes,
  });
  readonly #block = new HeaderBlock(DEFAULT_LIMITS);
  readonly #peer = new PeerSettings();
  readonly #window = new ReceiveWindow(DEFAULT_WINDOW_BYTES, CONNECTION_WINDOW_BYTES / 4);
  readonly #open = new NumberTable<Open>();
  #nextId = 1;
  #isGone = false;
  #checkTimer: Timer | undefined;
  #wasHeard = true;
  #heardAnything = false;
  #pingIsOut = false;
  /** Calls, one after another, that were late since something came. */
  #silentCalls = 0;
  /** The first stream that was opened since something came, and since the last of these calls was late. */
  #silentFromId = 1;

  /** `socket` is connected (and, with TLS, has agreed on h2). */
  constructor(options: ClientConnectionOptions) {
    const { socket, clock } = options;
    this.#options = options;
    this.#output = new CorkedOutput({ socket, turnEnd: () => clock.yield(), onWritable: () => this.#sender.pump() });
    this.#sender = new DataSender(this.#output, (stream) => {
      stream.localEnded = true;
    });
    this.#frames = new FrameReader(MAX_FRAME_BYTES, (type, flags, streamId, payload) =>
      this.#onFrame(type, flags, streamId, payload),
    );
    socket.on('data', (chunk: Buffer) => this.#onChunk(chunk));
    let why: string | undefined;
    socket.on('error', (error) => {
      why = error.message;
    });
    socket.on('close', () => {
      const message =
        why !== undefined || this.#heardAnything
          ? `the connection to ${options.address} was lost: ${why ?? 'it was closed'}`
          : `the server at ${options.address} closed the connection before it answered: it may speak TLS where the client does not`;
      this.#gone(new BigtableError(Code.UNAVAILABLE, message));
    });
    this.#output.write(CLIENT_PREFACE);
    this.#output.write(
      settingsFrame([
        [Setting.ENABLE_PUSH, 0],
        [Setting.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES],
        [Setting.MAX_FRAME_SIZE, MAX_FRAME_BYTES],
        [Setting.MAX_HEADER_LIST_SIZE, DEFAULT_LIMITS.maxHeaderBytes],
      ]),
    );
    this.#output.write(windowUpdateFrame(0, this.#window.grant(CONNECTION_WINDOW_BYTES - DEFAULT_WINDOW_BYTES, true)));
  }

  /** True when the server takes one more exchange now. */
  get hasCapacity(): boolean {
    return this.isReady && !this.isDraining && this.#open.size < this.#peer.maxStreams;
  }

  /** True when it has no exchange, and the server takes none. */
  get takesNoCalls(): boolean {
    return this.isReady && !this.isDraining && this.#open.size === 0 && !this.hasCapacity;
  }

  /**
   * Sends a request of one message, which ends with it unless it `staysOpen`. Returns the answer's stream, by which the
   * reader grants the window.
   */
  open(exchange: Exchange, headers: readonly string[], message: Buffer, staysOpen: boolean): Stream {
    assert(this.hasCapacity, 'a call is sent on a connection that takes calls');
    const id = this.#nextId;
    this.#nextId += 2;
    const stream = new Stream(
      id,
      this,
      this.#peer.windowBytes,
      new ReceiveWindow(STREAM_WINDOW_BYTES, STREAM_WINDOW_BYTES / 4),
    );
    if (this.#open.size === 0) this.#options.socket.ref();
    this.#open.set(id, { stream, exchange });
    this.#scheduleCheck();
    this.sendHeaders(stream, this.#encoder.encode(headers));
    this.#sendMessage(stream, message, staysOpen);
    if (this.#nextId > LAST_STREAM_ID) this.drain('its stream numbers are spent');
    return stream;
  }

  /** Ends when the open exchanges have. */
  drain(why: string): void {
    if (this.isDraining) return;
    this.isDraining = true;
    this.#options.onDraining(why);
    this.#endIfDrained();
  }

  /** Ends immediately, and the open exchanges with it. */
  destroy(error: BigtableError): void {
    if (this.#isGone) return;
    this.#gone(error);
    this.#options.socket.destroy();
  }

  // called by streams

  sendHeaders(stream: Stream, block: Buffer): void {
    const maxBytes = this.#peer.maxFrameBytes;
    let at = Math.min(block.length, maxBytes);
    this.#output.head(at, FrameType.HEADERS, at === block.length ? Flag.END_HEADERS : 0, stream.id);
    this.#output.write(block.subarray(0, at));
    while (at < block.length) {
      const to = Math.min(block.length, at + maxBytes);
      this.#output.head(to - at, FrameType.CONTINUATION, to === block.length ? Flag.END_HEADERS : 0, stream.id);
      this.#output.write(block.subarray(at, to));
      at = to;
    }
  }

  ready(stream: Stream): void {
    this.#sender.add(stream);
    this.#sender.pump();
  }

  sendWhole(stream: Stream, prefix: Buffer, message: Buffer): boolean {
    return this.#sender.sendWhole(stream, prefix, message, 0);
  }

  reset(stream: Stream, code: ErrorCode): void {
    if (!this.#open.has(stream.id)) return;
    this.#output.write(rstStreamFrame(stream.id, code));
    this.#closeStream(stream);
  }

  credit(bytes: number): void {
    const step = this.#window.grant(bytes);
    if (step > 0) this.#output.write(windowUpdateFrame(0, step));
  }

  growWindow(stream: Stream, bytes: number, immediately: boolean): void {
    const step = stream.receiveWindow.grant(bytes, immediately);
    if (step > 0) this.#output.write(windowUpdateFrame(stream.id, step));
  }

  ended(): void {}

  /** A call's time is over. */
  wasLate({ id }: Stream): void {
    if (id < this.#silentFromId || this.#isGone) return;
    this.#silentFromId = this.#nextId;
    this.#silentCalls++;
    if (this.#silentCalls >= this.#options.maxSilentCalls)
      this.#lose(
        new BigtableError(
          Code.UNAVAILABLE,
          `the server at ${this.#options.address} does not answer: nothing came in the time of ${this.#silentCalls} calls`,
        ),
      );
  }

  /** Sends the request in one frame with the end where it fits, as small requests do. */
  #sendMessage(stream: Stream, message: Buffer, staysOpen: boolean): void {
    const prefix = messagePrefix(message.length, false);
    if (this.#sender.sendWhole(stream, prefix, message, staysOpen ? 0 : Flag.END_STREAM)) {
      stream.localEnded = !staysOpen;
      return;
    }
    stream.data(prefix);
    stream.data(message);
    if (staysOpen) stream.send();
    else stream.end();
  }

  // input

  #onChunk(chunk: Buffer): void {
    if (this.#isGone) return;
    this.#wasHeard = true;
    this.#heardAnything = true;
    this.#silentCalls = 0;
    this.#silentFromId = this.#nextId;
    if (!this.isReady && isTlsRecord(chunk)) {
      const { address } = this.#options;
      return this.#lose(notReached(`the server at ${address} speaks TLS: connect to it with TLS`));
    }
    try {
      this.#frames.push(chunk);
    } catch (error) {
      if (!(error instanceof Http2Error || error instanceof HpackError)) throw error;
      const code = error instanceof Http2Error ? error.code : ErrorCode.COMPRESSION_ERROR;
      this.#output.write(goAwayFrame(0, code, error.message));
      this.#output.end();
      const why = this.isReady ? 'broke the protocol' : 'does not speak HTTP/2';
      this.#lose(
        new BigtableError(
          this.isReady ? Code.INTERNAL : Code.UNAVAILABLE,
          `the server at ${this.#options.address} ${why}: ${error.message}`,
        ),
      );
    }
  }

  #onFrame(type: number, flags: number, streamId: number, payload: Buffer): void {
    if (this.#isGone) return;
    if (!this.isReady && (type !== FrameType.SETTINGS || flags & Flag.ACK))
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'its first frame is no SETTINGS');
    if (this.#block.isOpen && type !== FrameType.CONTINUATION)
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'a frame within a header block');
    switch (type) {
      case FrameType.DATA:
        return this.#onData(flags, streamId, payload);
      case FrameType.HEADERS:
        return this.#onBlock(this.#block.begin(flags, streamId, payload));
      case FrameType.CONTINUATION:
        return this.#onBlock(this.#block.continue(flags, streamId, payload));
      case FrameType.RST_STREAM:
        return this.#onRstStream(streamId, uint32(payload, 0));
      case FrameType.SETTINGS:
        if ((flags & Flag.ACK) === 0) this.#onSettings(payload);
        return;
      case FrameType.PUSH_PROMISE:
        throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'PUSH_PROMISE, which was refused');
      case FrameType.PING:
        return this.#onPing(flags, payload);
      case FrameType.GOAWAY:
        return this.#onGoAway(
          uint32(payload, 0) & LAST_STREAM_ID,
          uint32(payload, 4),
          payload.toString('latin1', 8, 8 + 256),
        );
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(streamId, uint32(payload, 0) & LAST_STREAM_ID);
    }
  }

  #onData(flags: number, streamId: number, payload: Buffer): void {
    this.#window.take(payload.length, 0);
    this.credit(payload.length);
    const open = this.#find(streamId);
    if (!open) return;
    const { stream, exchange } = open;
    stream.receiveWindow.take(payload.length, 0);
    const bytes = unpad(flags, payload);
    stream.growWindow(payload.length - bytes.length);
    if (bytes.length > 0) exchange.onData(bytes);
    if ((flags & Flag.END_STREAM) === 0 || !this.#open.has(streamId)) return;
    this.#remoteEnd(stream);
    exchange.onEnd();
  }

  #onBlock(block: Buffer | undefined): void {
    if (!block) return;
    const { streamId, endStream } = this.#block;
    let headers: readonly string[] | undefined;
    let tooLarge: HeaderListTooLarge | undefined;
    try {
      headers = this.#decoder.decode(block);
    } catch (error) {
      if (!(error instanceof HeaderListTooLarge)) throw error;
      tooLarge = error;
    }
    const open = this.#find(streamId);
    if (!open) return;
    const { stream, exchange } = open;
    if (!headers) {
      this.reset(stream, ErrorCode.CANCEL);
      return exchange.onLost(
        new BigtableError(Code.RESOURCE_EXHAUSTED, `the server answered with ${tooLarge?.message}`),
        false,
      );
    }
    if (endStream) this.#remoteEnd(stream);
    exchange.onHeaders(headers, endStream);
  }

  #onRstStream(streamId: number, code: number): void {
    const open = this.#find(streamId);
    if (!open) return;
    this.#closeStream(open.stream);
    open.exchange.onLost(errorOfReset(code), code === ErrorCode.REFUSED_STREAM);
  }

  #onSettings(payload: Buffer): void {
    const before = this.#peer.windowBytes;
    this.#peer.read(payload);
    const change = this.#peer.windowBytes - before;
    for (const { stream } of change === 0 ? [] : this.#open.values()) {
      stream.sendWindow.grow(change, 0);
      this.#sender.add(stream);
    }
    this.#encoder.setPeerTableSize(this.#peer.hpackTableBytes);
    this.#sender.maxFrameBytes = this.#peer.maxFrameBytes;
    this.#output.write(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    this.#sender.pump();
    if (this.isReady) return this.#options.onCapacity();
    this.isReady = true;
    if (this.#open.size === 0) this.#options.socket.unref();
    this.#options.onReady();
  }

  #onPing(flags: number, payload: Buffer): void {
    if (payload.length !== 8) throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, `PING of ${payload.length} bytes`);
    if (flags & Flag.ACK) this.#pingIsOut = false;
    else this.#output.write(frame(FrameType.PING, Flag.ACK, 0, payload));
  }

  #onGoAway(lastId: number, code: number, debug: string): void {
    const why = code === ErrorCode.NO_ERROR ? debug || 'it is closing' : `${errorCodeName(code)} ${debug}`.trim();
    const error = notReached(`the server at ${this.#options.address} ends the connection: ${why}`);
    this.isDraining = true;
    this.#options.onDraining(why);
    for (const { stream, exchange } of this.#open.values().filter((open) => open.stream.id > lastId)) {
      this.#closeStream(stream);
      exchange.onLost(error, true);
    }
    this.#endIfDrained();
  }

  #onWindowUpdate(streamId: number, bytes: number): void {
    if (bytes === 0) throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'WINDOW_UPDATE of 0');
    const stream = streamId === 0 ? undefined : this.#find(streamId)?.stream;
    if (streamId !== 0 && !stream) return;
    (stream?.sendWindow ?? this.#sender.window).grow(bytes, 0);
    if (stream) this.#sender.add(stream);
    this.#sender.pump();
  }

  /** The exchange of a stream; undefined where it has ended. A stream that was never opened is a breach. */
  #find(streamId: number): Open | undefined {
    const open = this.#open.get(streamId);
    if (!open && (streamId % 2 === 0 || streamId >= this.#nextId))
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, `a frame of stream ${streamId}, which was never opened`);
    return open;
  }

  // ends of streams and of the connection

  #remoteEnd(stream: Stream): void {
    stream.remoteEnded = true;
    // the server has answered and does not want the rest of the request
    if (!stream.localEnded) this.#output.write(rstStreamFrame(stream.id, ErrorCode.NO_ERROR));
    this.#closeStream(stream);
  }

  #closeStream(stream: Stream): void {
    stream.isReset = true;
    stream.discard();
    this.#open.delete(stream.id);
    if (this.#open.size === 0 && !this.#isGone) this.#options.socket.unref();
    this.#endIfDrained();
    if (!this.#isGone) this.#options.onCapacity();
  }

  #endIfDrained(): void {
    if (this.isDraining && this.#open.size === 0 && !this.#isGone) {
      this.#output.end();
      this.#gone(new BigtableError(Code.UNAVAILABLE, `the connection to ${this.#options.address} has ended`));
    }
  }

  #lose(error: BigtableError): void {
    this.#gone(error);
    this.#options.socket.destroySoon();
  }

  #gone(error: BigtableError): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.isReady = false;
    this.#checkTimer?.cancel();
    this.#options.onGone(error);
    const all = this.#open.values();
    this.#open.clear();
    for (const { stream, exchange } of all) {
      stream.isReset = true;
      exchange.onLost(error, false);
    }
  }

  // keep-alive

  #scheduleCheck(): void {
    const { clock, keepAliveMs } = this.#options;
    if (this.#checkTimer || this.#isGone || keepAliveMs === Number.POSITIVE_INFINITY) return;
    this.#wasHeard = false;
    this.#checkTimer = clock.timer(keepAliveMs, () => this.#checkAlive());
  }

  #checkLater(): void {
    if (this.#open.size > 0) this.#scheduleCheck();
  }

  #checkAlive(): void {
    this.#checkTimer = undefined;
    if (this.#wasHeard) return this.#checkLater();
    // also where no call waits any more: each may have had less time than this, and none an answer
    this.#pingIsOut = true;
    this.#output.write(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
    this.#checkTimer = this.#options.clock.timer(this.#options.keepAliveTimeoutMs, () => {
      this.#checkTimer = undefined;
      if (!this.#pingIsOut) return this.#checkLater();
      this.#lose(
        new BigtableError(
          Code.UNAVAILABLE,
          `the server at ${this.#options.address} does not answer: nothing came for ${this.#options.keepAliveTimeoutMs} ms after a PING`,
        ),
      );
    });
  }
}

function uint32(payload: Buffer, at: number): number {
  if (payload.length < at + 4)
    throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, `a frame of ${payload.length} bytes is too short for its kind`);
  return payload.readUInt32BE(at);
}
