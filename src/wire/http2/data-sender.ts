/**
 * Sends the bytes of streams: one frame each in turn, as far as the connection's window, the streams' own and the
 * socket allow.
 *
 * Invariant: a stream is in the list exactly when it has something that its own window lets out. A stream that waits
 * for its window waits outside and delays no other.
 */
import { assert } from '../../base/index.ts';
import type { CorkedOutput } from './corked-output.ts';
import { SendWindow } from './flow-window.ts';
import { DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, Flag, FrameType } from './frames.ts';
import type { Stream } from './stream.ts';

/** Larger frames gain nothing, and let one stream hold up the others for longer. */
const MAX_FRAME_BYTES = 64 * 1024;

export class DataSender {
  readonly window = new SendWindow(DEFAULT_WINDOW_BYTES);
  /** The largest frame that the peer takes. */
  maxFrameBytes = DEFAULT_MAX_FRAME_BYTES;
  /** Frames of answers that went out: DATA, and the headers at their ends. */
  frames = 0;
  readonly #output: CorkedOutput;
  readonly #onEnded: (stream: Stream) => void;
  readonly #write: (part: Buffer) => void;
  readonly #wrote: (message: Buffer) => void;
  #first: Stream | undefined;
  #last: Stream | undefined;

  constructor(output: CorkedOutput, onEnded: (stream: Stream) => void) {
    this.#output = output;
    this.#onEnded = onEnded;
    this.#write = (part) => output.write(part);
    this.#wrote = (message) => output.wrote(message);
  }

  add(stream: Stream): void {
    if (stream.isListed || stream.isReset || !stream.canSend) return;
    stream.isListed = true;
    if (this.#last) this.#last.nextReady = stream;
    else this.#first = stream;
    this.#last = stream;
  }

  /**
   * Sends a message as a frame of its own, past the queue, where it fits whole and no stream waits: most answers and
   * requests are that small. False where it has to be queued. `prefix` goes before it and is copied.
   */
  sendWhole(stream: Stream, prefix: Buffer, message: Buffer, flags: number): boolean {
    const bytes = prefix.length + message.length;
    if (this.#first || stream.queuedBytes > 0 || stream.isReset) return false;
    if (
      bytes > this.maxFrameBytes ||
      bytes > stream.sendWindow.bytes ||
      bytes > this.window.bytes ||
      bytes > MAX_FRAME_BYTES ||
      this.#output.isFull
    )
      return false;
    this.#output.head(bytes, FrameType.DATA, flags, stream.id);
    this.#output.write(prefix);
    this.#output.write(message);
    this.#output.wrote(message);
    this.frames++;
    this.#spend(stream, bytes);
    return true;
  }

  #spend(stream: Stream, bytes: number): void {
    stream.sendWindow.bytes -= bytes;
    this.window.bytes -= bytes;
    assert(stream.sendWindow.bytes >= 0 && this.window.bytes >= 0, 'no more was sent than a window allows');
  }

  /** Sends what may be sent now. */
  pump(): void {
    while (this.#first) {
      if (this.#output.isFull) return;
      const stream = this.#first;
      // trailers are not subject to flow control
      if (stream.queuedBytes > 0 && this.window.bytes <= 0 && !stream.isReset) return this.#pumpTrailers();
      this.#takeFirst();
      this.#sendOne(stream);
      this.add(stream);
    }
  }

  /** Ends the streams that have only trailers left, while the connection's window is spent. */
  #pumpTrailers(): void {
    let stream = this.#first;
    this.#first = undefined;
    this.#last = undefined;
    while (stream) {
      const next: Stream | undefined = stream.nextReady;
      stream.nextReady = undefined;
      stream.isListed = false;
      if (stream.queuedBytes === 0) this.#sendOne(stream);
      else this.add(stream);
      stream = next;
    }
  }

  #takeFirst(): void {
    const stream = this.#first!;
    this.#first = stream.nextReady;
    if (!this.#first) this.#last = undefined;
    stream.nextReady = undefined;
    stream.isListed = false;
  }

  #sendOne(stream: Stream): void {
    if (stream.isReset) return;
    if (stream.queuedBytes > 0) {
      const bytes = Math.min(
        stream.queuedBytes,
        stream.sendWindow.bytes,
        this.window.bytes,
        this.maxFrameBytes,
        MAX_FRAME_BYTES,
      );
      if (bytes <= 0) return;
      this.#output.head(bytes, FrameType.DATA, 0, stream.id);
      stream.take(bytes, this.#write, this.#wrote);
      this.frames++;
      this.#spend(stream, bytes);
      stream.owner?.onSent(bytes);
    }
    const trailers = stream.takeTrailers();
    if (!trailers) return;
    this.frames++;
    if (trailers.length === 0) this.#output.head(0, FrameType.DATA, Flag.END_STREAM, stream.id);
    else this.#output.head(trailers.length, FrameType.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, stream.id);
    this.#output.write(trailers);
    this.#onEnded(stream);
  }
}
