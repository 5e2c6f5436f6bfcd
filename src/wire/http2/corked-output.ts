/**
 * The sending side of a socket: bytes written in one turn of the event loop leave in one write (writev for large
 * parts).
 *
 * Invariant: small writes are copied together, so that their buffers may be reused; large ones go by reference and
 * belong to the output. `isFull` says that the peer reads more slowly than we write: writers that can wait then wait
 * for `onWritable`. Those that cannot (answers to PINGs and SETTINGS) may continue up to `maxBacklogBytes`, beyond
 * which the connection is destroyed: a peer that asks and never reads.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { Pool, viewOf } from '../../base/index.ts';
import { FRAME_HEADER_BYTES, writeFrameHeader } from './frames.ts';
import { giveMessageBuffer, reclaimBuffer } from './message-buffers.ts';

/** Parts up to this size are copied: a copy of it is quicker than one more entry of a writev. */
export const COPY_BYTES = 4096;
/** Parts up to this size are copied by a loop, without a call. */
const SHORT_BYTES = 24;
const MIN_SLAB_BYTES = 2048;
const MAX_SLAB_BYTES = 32 * 1024;
const MAX_FREE_SLABS = 32;
/** Unsent bytes from which on writers should wait. */
const FULL_BYTES = 256 * 1024;

/** Slabs of the largest size, whose bytes were all sent. */
const freeSlabs = new Pool<Buffer>(MAX_FREE_SLABS);

export interface CorkedOutputOptions {
  readonly socket: Duplex;
  /** Resolves when the turn of the event loop is over: clock.yield. */
  readonly turnEnd: () => Promise<void>;
  /** There is space again after `isFull`. */
  readonly onWritable: () => void;
  /** Default: 1 MiB. */
  readonly maxBacklogBytes?: number;
}

export class CorkedOutput {
  readonly #options: CorkedOutputOptions;
  readonly #maxBacklogBytes: number;
  /** The socket hands bytes to the machine itself: once it has none left, nothing refers to ours any more. */
  readonly #isPlain: boolean;
  /** Slabs to be reused once their parts are written. */
  #slabs: Buffer[] = [];
  /** Buffers of messages, the same. */
  #messageBuffers: Buffer[] = [];
  #parts: Buffer[] = [];
  #partsBytes = 0;
  /** The slab for small writes: bytes from..at are not yet a part. */
  #slab: Buffer | undefined;
  #from = 0;
  #at = 0;
  #nextSlabBytes = MIN_SLAB_BYTES;
  #copiedBytes = 0;
  #scheduled = false;
  #wasFull = false;
  #ended = false;
  readonly #flush = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  constructor(options: CorkedOutputOptions) {
    this.#options = options;
    this.#maxBacklogBytes = options.maxBacklogBytes ?? 1024 * 1024;
    this.#isPlain = options.socket instanceof Socket && !(options.socket instanceof TLSSocket);
    options.socket.on('drain', () => this.#notifyWritable());
  }

  /** Bytes that the machine has not taken. */
  get unsentBytes(): number {
    return this.#partsBytes + this.#at - this.#from + this.#options.socket.writableLength;
  }

  get isFull(): boolean {
    if (this.unsentBytes < FULL_BYTES) return false;
    this.#wasFull = true;
    return true;
  }

  /** A frame's head; its payload is written next. */
  head(length: number, type: number, flags: number, streamId: number): void {
    const slab = this.#space(FRAME_HEADER_BYTES);
    this.#at = writeFrameHeader(slab, this.#at, length, type, flags, streamId);
    this.#written(FRAME_HEADER_BYTES);
  }

  write(bytes: Buffer): void {
    const { length } = bytes;
    if (length > COPY_BYTES) {
      this.#endPart();
      this.#parts.push(bytes);
      this.#partsBytes += length;
      return this.#schedule();
    }
    const slab = this.#space(length);
    if (length > SHORT_BYTES) slab.set(bytes, this.#at);
    else for (let i = 0; i < length; i++) slab[this.#at + i] = bytes[i]!;
    this.#at += length;
    this.#written(length);
  }

  /** All of the message was written: its buffer is free once that is sent. */
  wrote(message: Buffer): void {
    const buffer = reclaimBuffer(message);
    if (buffer !== undefined && this.#isPlain) this.#messageBuffers.push(buffer);
  }

  /** Hands everything to the socket now. */
  flush(): void {
    this.#endPart();
    this.#slab = undefined;
    const slabs = this.#slabs;
    if (slabs.length > 0) this.#slabs = [];
    const messageBuffers = this.#messageBuffers;
    if (messageBuffers.length > 0) this.#messageBuffers = [];
    // the next turn will write about as much as this one
    this.#nextSlabBytes = Math.min(Math.max(this.#copiedBytes, MIN_SLAB_BYTES), MAX_SLAB_BYTES);
    this.#copiedBytes = 0;
    const parts = this.#parts;
    if (parts.length === 0) return;
    this.#parts = [];
    this.#partsBytes = 0;
    const { socket } = this.#options;
    if (this.#ended || socket.destroyed) return;
    if (parts.length === 1) socket.write(parts[0]);
    else {
      socket.cork();
      for (const part of parts) socket.write(part);
      socket.uncork();
    }
    if (socket.writableLength === 0) {
      for (const slab of slabs) freeSlabs.give(slab);
      for (const buffer of messageBuffers) giveMessageBuffer(buffer);
    }
    if (this.#wasFull && this.unsentBytes < FULL_BYTES) this.#notifyWritable();
  }

  /** Sends everything, and ends the socket's writing side. */
  end(): void {
    this.flush();
    this.#ended = true;
    if (!this.#options.socket.destroyed) this.#options.socket.end();
  }

  #notifyWritable(): void {
    if (!this.#wasFull) return;
    this.#wasFull = false;
    this.#options.onWritable();
  }

  #space(bytes: number): Buffer {
    if (this.#slab && this.#slab.length - this.#at >= bytes) return this.#slab;
    this.#endPart();
    // a peer that does not read must not make us hold a whole slab for each small write
    const isReused = this.#isPlain && this.#partsBytes === 0 && this.#options.socket.writableLength === 0;
    this.#slab = isReused ? this.#reusedSlab() : Buffer.allocUnsafe(Math.max(bytes, this.#nextSlabBytes));
    this.#nextSlabBytes = Math.min(this.#nextSlabBytes * 2, MAX_SLAB_BYTES);
    this.#from = 0;
    this.#at = 0;
    return this.#slab;
  }

  #reusedSlab(): Buffer {
    const slab = freeSlabs.take() ?? Buffer.allocUnsafeSlow(MAX_SLAB_BYTES);
    this.#slabs.push(slab);
    return slab;
  }

  #written(bytes: number): void {
    this.#copiedBytes += bytes;
    this.#schedule();
  }

  #endPart(): void {
    if (this.#slab && this.#at > this.#from) {
      this.#parts.push(viewOf(this.#slab, this.#from, this.#at));
      this.#partsBytes += this.#at - this.#from;
    }
    this.#from = this.#at;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.unsentBytes > this.#maxBacklogBytes + FULL_BYTES) this.#options.socket.destroy();
    void this.#options.turnEnd().then(this.#flush);
  }
}
