/**
 * A client's HTTP/2 connection, seen from the server (RFC 9113): frames in, the states of streams, flow control, and
 * the answer to every breach of the protocol: RST_STREAM for a stream's, GOAWAY for the connection's.
 *
 * Invariant: what one connection makes us hold is bounded: received bytes by its window, headers by the limits, answers
 * by what their calls have reserved and the output's backlog; and what it makes us do for nothing by the rates. Limits:
 * limits.ts.
 */
import type { Duplex } from 'node:stream';
import { assert, checksInvariants, NumberTable } from '../../base/index.ts';
import type { Clock, Timer } from '../../env/index.ts';
import { HeaderListTooLarge, HpackDecoder, HpackError } from '../hpack/decoder.ts';
import { ClosedStreams } from './closed-streams.ts';
import { ConnectionInput } from './connection-input.ts';
import { CorkedOutput } from './corked-output.ts';
import { DataSender } from './data-sender.ts';
import { ReceiveWindow } from './flow-window.ts';
import {
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  frame,
  goAwayFrame,
  Http2Error,
  rstStreamFrame,
  Setting,
  settingsFrame,
  windowUpdateFrame,
} from './frames.ts';
import { dependency, HeaderBlock, unpad } from './header-block.ts';
import { HeaderReader, type RequestHeaders } from './header-rules.ts';
import type { Http2Limits } from './limits.ts';
import { PeerRates } from './peer-rates.ts';
import type { ReadTurns } from './read-turns.ts';
import { PeerSettings } from './settings.ts';
import { Stream, type StreamConnection } from './stream.ts';

export interface ConnectionOptions {
  readonly socket: Duplex;
  readonly clock: Clock;
  /** Shared by all connections of the event loop. */
  readonly turns: ReadTurns;
  readonly limits: Http2Limits;
  /** A request has come: the callee sets the stream's owner, which gets the rest. */
  readonly onRequest: (stream: Stream, headers: RequestHeaders) => void;
  /** The connection is closed. */
  readonly onClosed: () => void;
  /** The peer broke the protocol so that its connection was ended; or `thrown` is a bug of ours. */
  readonly onFailed: (thrown: unknown) => void;
}

/** The last stream that there can be: a GOAWAY that names it refuses none. */
const LAST_STREAM_ID = 0x7fffffff;
/** The PING after such a GOAWAY: its answer comes after all streams that the client opened before it knew. */
const LEAVING = Buffer.from('leaving.', 'latin1');
/** A client that does not answer it is taken to know after this time. */
const LEAVING_MS = 1000;

export class Connection implements StreamConnection {
  /** True when anything came since it was last set to false. */
  wasHeard = true;
  /** True when a request came since it was last set to false. */
  wasUsed = false;
  /** A PING of ours that has not been answered. */
  pingIsOut = false;
  readonly #options: ConnectionOptions;
  readonly #output: CorkedOutput;
  readonly #sender: DataSender;
  readonly #input: ConnectionInput;
  readonly #decoder: HpackDecoder;
  readonly #block: HeaderBlock;
  readonly #headers = new HeaderReader();
  readonly #peer = new PeerSettings();
  readonly #window: ReceiveWindow;
  readonly #streams = new NumberTable<Stream>();
  readonly #closed = new ClosedStreams();
  readonly #rates: PeerRates;
  #settingsCame = false;
  /** Requests whose work continues, including those of streams that were reset. */
  #running = 0;
  #lastStreamId = 0;
  /** The client was told that the connection is to end: it may have opened streams before it knows. */
  #isLeaving = false;
  #leavingTimer: Timer | undefined;
  /** No new streams are taken. */
  #isDraining = false;
  /** GOAWAY with an error was sent, or the socket is gone: nothing counts any more. */
  #isDead = false;
  /** The last stream of a drained connection is over. */
  #isEnded = false;
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    const { socket, clock, turns, limits } = options;
    this.#options = options;
    this.#output = new CorkedOutput({ socket, turnEnd: () => clock.yield(), onWritable: () => this.#sender.pump() });
    this.#sender = new DataSender(this.#output, (stream) => this.#localEnd(stream));
    this.#input = new ConnectionInput({
      socket,
      turns,
      onFrame: (type, flags, streamId, payload) => this.#onFrame(type, flags, streamId, payload),
      onHeard: () => {
        this.wasHeard = true;
      },
      onFailed: (thrown) => this.#fail(thrown),
    });
    this.#decoder = new HpackDecoder({ maxTableBytes: limits.hpackTableBytes, maxHeaderBytes: limits.maxHeaderBytes });
    this.#block = new HeaderBlock(limits);
    this.#window = new ReceiveWindow(DEFAULT_WINDOW_BYTES, limits.connectionWindowBytes / 2);
    this.#rates = new PeerRates(clock, limits, () => this.#sender.frames);
    socket.on('error', () => {});
    socket.on('close', () => this.#onClose());
    this.#sendSettings(limits);
  }

  get isIdle(): boolean {
    return this.#streams.size === 0 && this.#running === 0;
  }

  /** True when the client has begun as HTTP/2 requires: with the preface and SETTINGS. */
  get hasBegun(): boolean {
    return this.#settingsCame;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** True when the last frame was written: the client is to close. */
  get hasEnded(): boolean {
    return this.#isDead || this.#isEnded;
  }

  /** Checks that the peer is alive: `pingIsOut` until it answers. */
  ping(): void {
    this.pingIsOut = true;
    this.#output.write(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
  }

  /**
   * Tells the client to open no new streams, and ends when those that are open have. Streams that the client opens
   * before it knows are taken (RFC 9113, 6.8): it would have to send their requests again, and some clients fail them.
   */
  drain(why: string): void {
    if (this.#isLeaving || this.#isDraining || this.#isDead) return;
    this.#isLeaving = true;
    this.#output.write(goAwayFrame(LAST_STREAM_ID, ErrorCode.NO_ERROR, why));
    this.#output.write(frame(FrameType.PING, 0, 0, LEAVING));
    this.#leavingTimer = this.#options.clock.timer(LEAVING_MS, () => this.refuseNew(why));
  }

  /** Takes no new streams from now on, and ends when those that are open have. */
  refuseNew(why: string): void {
    if (this.#isDraining || this.#isDead) return;
    this.#isDraining = true;
    this.#leavingTimer?.cancel();
    this.#output.write(goAwayFrame(this.#lastStreamId, ErrorCode.NO_ERROR, why));
    this.#endIfDrained();
  }

  /** Reads nothing more of the peer, until `resume` was called as often. */
  pause(): void {
    this.#input.pause();
  }

  resume(): void {
    this.#input.resume();
  }

  destroy(): void {
    this.#options.socket.destroy();
    this.#onClose();
  }

  /** Sends GOAWAY, as far as the machine takes it now, and ends the connection. */
  dismiss(why: string): void {
    this.refuseNew(why);
    this.#output.flush();
    this.destroy();
  }

  // called by streams

  sendHeaders(stream: Stream, block: Buffer, endStream: boolean): void {
    this.#output.head(block.length, FrameType.HEADERS, Flag.END_HEADERS | (endStream ? Flag.END_STREAM : 0), stream.id);
    this.#output.write(block);
  }

  ready(stream: Stream): void {
    this.#sender.add(stream);
    this.#sender.pump();
  }

  sendWhole(stream: Stream, prefix: Buffer, message: Buffer): boolean {
    return this.#sender.sendWhole(stream, prefix, message, 0);
  }

  reset(stream: Stream, code: ErrorCode): void {
    this.#output.write(rstStreamFrame(stream.id, code));
    this.#closeStream(stream, true);
  }

  credit(bytes: number): void {
    const step = this.#window.grant(bytes);
    if (step > 0 && !this.#isDead) this.#output.write(windowUpdateFrame(0, step));
  }

  growWindow(stream: Stream, bytes: number, immediately: boolean): void {
    const step = stream.receiveWindow.grant(bytes, immediately);
    if (step > 0) this.#output.write(windowUpdateFrame(stream.id, step));
  }

  ended(stream: Stream): void {
    if (!stream.ownerDone) return;
    this.#running--;
    assert(this.#running >= 0, 'no more requests have ended than begun');
    this.#endIfDrained();
  }

  // input

  #sendSettings(limits: Http2Limits): void {
    this.#output.write(
      settingsFrame([
        [Setting.MAX_CONCURRENT_STREAMS, limits.maxStreams],
        [Setting.INITIAL_WINDOW_SIZE, limits.streamWindowBytes],
        [Setting.MAX_HEADER_LIST_SIZE, limits.maxHeaderBytes],
        [Setting.HEADER_TABLE_SIZE, limits.hpackTableBytes],
      ]),
    );
    const more = limits.connectionWindowBytes - DEFAULT_WINDOW_BYTES;
    if (more > 0) this.credit(more);
  }

  #onFrame(type: number, flags: number, streamId: number, payload: Buffer): void {
    if (this.#isDead) return;
    try {
      this.#dispatch(type, flags, streamId, payload);
    } catch (error) {
      if (!(error instanceof Http2Error) || error.streamId === 0) throw error;
      this.#failStream(error);
    }
  }

  #dispatch(type: number, flags: number, streamId: number, payload: Buffer): void {
    if (!this.#settingsCame && (type !== FrameType.SETTINGS || flags & Flag.ACK))
      throw protocolError('the first frame is no SETTINGS');
    if (this.#block.isOpen && type !== FrameType.CONTINUATION) throw protocolError('a frame within a header block');
    switch (type) {
      case FrameType.DATA:
        return this.#onData(flags, streamId, payload);
      case FrameType.HEADERS:
        return this.#onHeaders(flags, streamId, payload);
      case FrameType.CONTINUATION:
        return this.#onBlock(this.#block.continue(flags, streamId, payload));
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(streamId, payload);
      case FrameType.RST_STREAM:
        return this.#onRstStream(streamId, payload);
      case FrameType.SETTINGS:
        return this.#onSettings(flags, streamId, payload);
      case FrameType.PING:
        return this.#onPing(flags, streamId, payload);
      case FrameType.GOAWAY:
        if (streamId !== 0) throw protocolError('GOAWAY of a stream');
        checkSize('GOAWAY', payload.length >= 8);
        return this.refuseNew('');
      case FrameType.PRIORITY:
        return this.#onPriority(streamId, payload);
      case FrameType.PUSH_PROMISE:
        throw protocolError('a client promises nothing');
      default:
        this.#rates.idleFrame();
    }
  }

  #onData(flags: number, streamId: number, payload: Buffer): void {
    if (streamId === 0) throw protocolError('DATA of no stream');
    this.#window.take(payload.length, 0);
    const stream = this.#streams.get(streamId);
    if (!stream || stream.remoteEnded) {
      this.credit(payload.length);
      this.#refuseClosed(streamId);
      return;
    }
    stream.uncreditedBytes += payload.length;
    stream.receiveWindow.take(payload.length, streamId);
    const bytes = unpad(flags, payload);
    const padding = payload.length - bytes.length;
    if (padding > 0) {
      stream.credit(padding);
      stream.growWindow(padding);
    }
    const endStream = (flags & Flag.END_STREAM) !== 0;
    if (bytes.length === 0 && !endStream) this.#rates.idleFrame();
    stream.receivedBytes += bytes.length;
    if (stream.contentLength !== undefined) this.#checkLength(stream, endStream);
    stream.remoteEnded = endStream;
    if (bytes.length > 0) stream.owner?.onData(bytes);
    if (endStream) this.#remoteEnd(stream);
  }

  #checkLength(stream: Stream, endStream: boolean): void {
    const { contentLength = 0, receivedBytes } = stream;
    if (receivedBytes > contentLength || (endStream && receivedBytes < contentLength)) {
      throw new Http2Error(
        ErrorCode.PROTOCOL_ERROR,
        `${receivedBytes} bytes came with a content-length of ${contentLength}`,
        stream.id,
      );
    }
  }

  #onHeaders(flags: number, streamId: number, payload: Buffer): void {
    if (streamId % 2 === 0) throw protocolError(`HEADERS of stream ${streamId}: a client's streams are odd`);
    this.#onBlock(this.#block.begin(flags, streamId, payload));
  }

  #onBlock(block: Buffer | undefined): void {
    if (!block) return;
    const { streamId, endStream } = this.#block;
    const isNew = streamId > this.#lastStreamId;
    if (isNew) this.#lastStreamId = streamId;
    const headers = this.#decode(block, streamId);
    if (isNew) return this.#onRequest(streamId, headers, endStream);
    const stream = this.#streams.get(streamId);
    if (!stream || stream.remoteEnded) {
      if (this.#closed.wasResetByUs(streamId)) return;
      const wasOpen = stream !== undefined || this.#closed.has(streamId);
      throw new Http2Error(
        wasOpen ? ErrorCode.STREAM_CLOSED : ErrorCode.PROTOCOL_ERROR,
        `HEADERS of stream ${streamId}, which has ended`,
      );
    }
    if (!endStream)
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'second headers that do not end the stream', streamId);
    this.#headers.checkTrailers(headers, streamId);
    if (stream.contentLength !== undefined) this.#checkLength(stream, true);
    this.#remoteEnd(stream);
  }

  #decode(block: Buffer, streamId: number): readonly string[] {
    try {
      return this.#decoder.decode(block);
    } catch (error) {
      if (error instanceof HeaderListTooLarge)
        throw new Http2Error(ErrorCode.ENHANCE_YOUR_CALM, error.message, streamId);
      if (error instanceof HpackError) throw new Http2Error(ErrorCode.COMPRESSION_ERROR, error.message);
      throw error;
    }
  }

  #onRequest(streamId: number, headers: readonly string[], endStream: boolean): void {
    this.wasUsed = true;
    const { limits, onRequest } = this.#options;
    if (this.#block.dependsOnItself)
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'a stream that depends on itself', streamId);
    if (this.#isDraining) return this.#refuse(streamId);
    if (this.#running >= limits.maxStreams || this.#streams.size >= limits.maxStreams) {
      this.#rates.reset();
      return this.#refuse(streamId);
    }
    const request = this.#headers.read(headers, streamId);
    const { contentLength } = request;
    if (endStream && contentLength !== undefined && contentLength > 0)
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'a content-length without content', streamId);
    const receiveWindow = new ReceiveWindow(limits.streamWindowBytes, limits.streamWindowBytes / 4);
    const stream = new Stream(streamId, this, this.#peer.windowBytes, receiveWindow, contentLength);
    assert(!this.#isDead && !this.#isEnded, 'an ended connection takes no request');
    this.#streams.set(streamId, stream);
    this.#running++;
    stream.remoteEnded = endStream;
    onRequest(stream, request);
    if (endStream) this.#remoteEnd(stream);
  }

  #refuse(streamId: number): void {
    this.#output.write(rstStreamFrame(streamId, ErrorCode.REFUSED_STREAM));
    this.#closed.add(streamId, true);
  }

  #onWindowUpdate(streamId: number, payload: Buffer): void {
    checkSize('WINDOW_UPDATE', payload.length === 4);
    const bytes = payload.readUInt32BE(0) & 0x7fffffff;
    const stream = this.#streams.get(streamId);
    if (streamId !== 0 && !stream) {
      this.#checkNotIdle(streamId);
      return this.#rates.idleFrame();
    }
    if (bytes === 0) throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'WINDOW_UPDATE of 0', streamId);
    this.#rates.windowUpdate();
    (stream?.sendWindow ?? this.#sender.window).grow(bytes, streamId);
    if (stream) this.#sender.add(stream);
    this.#sender.pump();
  }

  #onRstStream(streamId: number, payload: Buffer): void {
    checkSize('RST_STREAM', payload.length === 4);
    this.#checkNotIdle(streamId);
    this.#rates.reset();
    const stream = this.#streams.get(streamId);
    if (stream) this.#closeStream(stream, false);
  }

  #onSettings(flags: number, streamId: number, payload: Buffer): void {
    if (streamId !== 0) throw protocolError('SETTINGS of a stream');
    if (flags & Flag.ACK) return checkSize('acknowledgement of SETTINGS', payload.length === 0);
    this.#rates.ping();
    this.#settingsCame = true;
    const before = this.#peer.windowBytes;
    this.#peer.read(payload);
    const change = this.#peer.windowBytes - before;
    if (change !== 0) {
      for (const stream of this.#streams.values()) {
        // here an overflow is the connection's
        stream.sendWindow.grow(change, 0);
        this.#sender.add(stream);
      }
    }
    this.#sender.maxFrameBytes = this.#peer.maxFrameBytes;
    this.#output.write(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    this.#sender.pump();
  }

  #onPing(flags: number, streamId: number, payload: Buffer): void {
    if (streamId !== 0) throw protocolError('PING of a stream');
    checkSize('PING', payload.length === 8);
    if (flags & Flag.ACK) {
      if (this.#isLeaving && payload.equals(LEAVING)) this.refuseNew('');
      else this.pingIsOut = false;
      return;
    }
    this.#rates.ping();
    this.#output.head(payload.length, FrameType.PING, Flag.ACK, 0);
    this.#output.write(payload);
  }

  #onPriority(streamId: number, payload: Buffer): void {
    if (streamId === 0) throw protocolError('PRIORITY of no stream');
    if (payload.length !== 5)
      throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, `PRIORITY of ${payload.length} bytes`, streamId);
    if (dependency(payload) === streamId)
      throw new Http2Error(ErrorCode.PROTOCOL_ERROR, 'a stream that depends on itself', streamId);
    this.#rates.idleFrame();
  }

  /** A frame for a stream that is not open to it. */
  #refuseClosed(streamId: number): void {
    this.#checkNotIdle(streamId);
    if (this.#closed.wasResetByUs(streamId)) return this.#rates.idleFrame();
    throw new Http2Error(ErrorCode.STREAM_CLOSED, `a frame of stream ${streamId}, which has ended`, streamId);
  }

  #checkNotIdle(streamId: number): void {
    if (streamId === 0 || streamId > this.#lastStreamId || streamId % 2 === 0)
      throw protocolError(`a frame of stream ${streamId}, which was never opened`);
  }

  // ends of streams and of the connection

  #remoteEnd(stream: Stream): void {
    stream.remoteEnded = true;
    if (!stream.isReset) stream.owner?.onEnd();
    if (stream.hasEnded) this.#closeStream(stream, false);
  }

  #localEnd(stream: Stream): void {
    stream.localEnded = true;
    // the client may still be sending bytes that no handler reads (RFC 9113, 8.1)
    if (stream.remoteEnded) this.#closeStream(stream, false);
    else this.reset(stream, ErrorCode.NO_ERROR);
  }

  #failStream(error: Http2Error): void {
    this.#rates.failedStream(error);
    this.#output.write(rstStreamFrame(error.streamId, error.code));
    const stream = this.#streams.get(error.streamId);
    if (stream) this.#closeStream(stream, true);
    else this.#closed.add(error.streamId, true);
  }

  #closeStream(stream: Stream, resetByUs: boolean): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#closed.add(stream.id, resetByUs);
    const completed = stream.remoteEnded && stream.localEnded;
    stream.isReset = true;
    stream.credit(stream.uncreditedBytes);
    stream.discard();
    if (completed) this.#rates.completed();
    else if (!stream.localEnded) stream.owner?.onReset();
    if (checksInvariants && this.#streams.size === 0) this.#assertWindowIsWhole();
    this.#endIfDrained();
  }

  /** Without streams all bytes that came have been credited to the connection's window. */
  #assertWindowIsWhole(): void {
    const { connectionWindowBytes } = this.#options.limits;
    const wholeBytes = Math.max(connectionWindowBytes, DEFAULT_WINDOW_BYTES);
    assert(this.#window.grantedBytes === wholeBytes, 'a connection without streams has its whole window');
  }

  #endIfDrained(): void {
    if (!this.#isDraining || !this.isIdle || this.#isDead || this.#isEnded) return;
    this.#isEnded = true;
    this.#output.end();
  }

  /** Ends the connection with GOAWAY. */
  #fail(thrown: unknown): void {
    const known = thrown instanceof Http2Error;
    this.#isDead = true;
    this.#leavingTimer?.cancel();
    this.#input.stop();
    const [code, why] = known ? [thrown.code, thrown.message] : [ErrorCode.INTERNAL_ERROR, ''];
    this.#output.write(goAwayFrame(this.#lastStreamId, code, why));
    this.#output.end();
    this.#options.onFailed(thrown);
    this.#resetAll();
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isDead = true;
    this.#leavingTimer?.cancel();
    this.#input.stop();
    this.#resetAll();
    this.#options.onClosed();
  }

  #resetAll(): void {
    for (const stream of this.#streams.values()) this.#closeStream(stream, false);
  }
}

function protocolError(message: string): Http2Error {
  return new Http2Error(ErrorCode.PROTOCOL_ERROR, message);
}

function checkSize(what: string, right: boolean): void {
  if (!right) throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, `${what} of a wrong size`);
}
