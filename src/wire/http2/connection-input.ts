/**
 * Reads what a client sends, the preface and then frames, from the socket's chunks, as long as the turn of the event
 * loop has time.
 *
 * Invariant: frames are passed on in the order in which they came. At most one chunk waits for a later turn; meanwhile
 * the socket is paused, and holds no more than its stream's own buffer.
 */
import type { Duplex } from 'node:stream';
import { assert } from '../../base/index.ts';
import {
  CLIENT_PREFACE,
  DEFAULT_MAX_FRAME_BYTES,
  ErrorCode,
  FrameReader,
  Http2Error,
  isTlsRecord,
  type OnFrame,
} from './frames.ts';
import type { ReadTurns } from './read-turns.ts';

export interface ConnectionInputOptions {
  readonly socket: Duplex;
  readonly turns: ReadTurns;
  readonly onFrame: OnFrame;
  /** Bytes have come. */
  readonly onHeard: () => void;
  /**
   * Called with an error of reading or of `onFrame`: an Http2Error where the peer broke the protocol. The input has
   * stopped then.
   */
  readonly onFailed: (thrown: unknown) => void;
}

export class ConnectionInput {
  readonly #options: ConnectionInputOptions;
  readonly #frames: FrameReader;
  #prefaceBytes = 0;
  /** Number of reasons not to read from the socket. */
  #pauses = 0;
  /** Bytes that wait for their turn. The socket is paused until they have been read. */
  #rest: Buffer | undefined;
  #isHeld = false;
  #hasStopped = false;
  readonly #isTurnSpent = (): boolean => this.#options.turns.isSpent();
  readonly #resumeReading = (): void => {
    const rest = this.#rest;
    if (rest === undefined) return;
    this.#rest = undefined;
    this.#read(rest);
    if (this.#rest === undefined) this.#release();
  };

  constructor(options: ConnectionInputOptions) {
    const { socket, onFrame } = options;
    this.#options = options;
    this.#frames = new FrameReader(DEFAULT_MAX_FRAME_BYTES, onFrame);
    socket.on('data', (chunk: Buffer) => this.#onChunk(chunk));
  }

  /** Reads nothing more from the socket, until `resume` was called as often. Frames of the present chunk still come. */
  pause(): void {
    if (++this.#pauses === 1) this.#options.socket.pause();
  }

  resume(): void {
    assert(this.#pauses > 0, 'a socket is resumed no more often than paused');
    if (--this.#pauses === 0) this.#options.socket.resume();
  }

  /** Passes on no more frames. Further bytes are read and discarded, so that the end of the connection is seen. */
  stop(): void {
    this.#hasStopped = true;
    this.#rest = undefined;
    this.#release();
  }

  #onChunk(chunk: Buffer): void {
    this.#options.onHeard();
    if (this.#hasStopped) return;
    assert(this.#rest === undefined, 'a paused socket emits no chunks');
    if (this.#isTurnSpent()) this.#keep(chunk);
    else this.#read(chunk);
  }

  #read(chunk: Buffer): void {
    try {
      const from = this.#prefaceBytes === CLIENT_PREFACE.length ? chunk : this.#readPreface(chunk);
      const readBytes = this.#frames.push(from, this.#isTurnSpent);
      if (readBytes < from.length && !this.#hasStopped) this.#keep(from.subarray(readBytes));
    } catch (error) {
      this.#options.onFailed(error);
    }
  }

  #keep(rest: Buffer): void {
    this.#rest = rest;
    if (!this.#isHeld) this.pause();
    this.#isHeld = true;
    this.#options.turns.wait(this.#resumeReading);
  }

  #release(): void {
    if (this.#isHeld) this.resume();
    this.#isHeld = false;
  }

  /** Returns the bytes after the preface. */
  #readPreface(chunk: Buffer): Buffer {
    const bytes = Math.min(chunk.length, CLIENT_PREFACE.length - this.#prefaceBytes);
    if (CLIENT_PREFACE.compare(chunk, 0, bytes, this.#prefaceBytes, this.#prefaceBytes + bytes) !== 0) {
      const isTls = this.#prefaceBytes === 0 && isTlsRecord(chunk);
      throw new Http2Error(
        ErrorCode.PROTOCOL_ERROR,
        isTls
          ? 'the client speaks TLS, and this port plain text'
          : 'the connection does not begin with the preface of HTTP/2',
      );
    }
    this.#prefaceBytes += bytes;
    return chunk.subarray(bytes);
  }
}
