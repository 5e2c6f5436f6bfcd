/**
 * The messages of a greeting on a socket, before HTTP/2: each with its length in two bytes. What follows the last one
 * stays in the socket for HTTP/2.
 */
import type { Socket } from 'node:net';
import { assert, BigtableError, Code, unavailable } from '../base/index.ts';

/** The greeting's messages are smaller: names, versions, fresh numbers and proofs. */
const MAX_FRAME_BYTES = 4096;
const LENGTH_BYTES = 2;

export class GreetingFrames {
  readonly #socket: Socket;
  #wake: (() => void) | undefined;
  readonly #onReady = (): void => this.#wake?.();

  constructor(socket: Socket) {
    this.#socket = socket;
    for (const event of ['readable', 'end', 'close'] as const) socket.on(event, this.#onReady);
    // a lost connection is seen as closed
    socket.on('error', this.#onReady);
  }

  send(message: Buffer): void {
    assert(message.length <= MAX_FRAME_BYTES, 'a message of a greeting is short');
    const head = Buffer.alloc(LENGTH_BYTES);
    head.writeUInt16BE(message.length);
    this.#socket.write(Buffer.concat([head, message]));
  }

  sendRaw(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** UNAVAILABLE where the connection ends first, INVALID_ARGUMENT for a message that is too long. */
  async receive(): Promise<Buffer> {
    const length = (await this.take(LENGTH_BYTES)).readUInt16BE();
    if (length > MAX_FRAME_BYTES)
      throw new BigtableError(Code.INVALID_ARGUMENT, `a greeting of ${length} bytes; the limit is ${MAX_FRAME_BYTES}`);
    return length === 0 ? Buffer.alloc(0) : await this.take(length);
  }

  /** The next `count` bytes. */
  async take(count: number): Promise<Buffer> {
    const socket = this.#socket;
    for (;;) {
      const bytes: Buffer | null = socket.read(count);
      if (bytes?.length === count) return bytes;
      if (bytes !== null || socket.readableEnded || socket.destroyed)
        throw unavailable('the connection ended within the greeting');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Leaves the socket to others. */
  stop(): void {
    for (const event of ['readable', 'end', 'close', 'error'] as const) this.#socket.off(event, this.#onReady);
  }
}
