/**
 * Memory of messages of rows. A scan fills one buffer after another, and so does a server that passes the answer on; a
 * new one each time costs the first use of its pages, and V8 marks the whole heap for every 64 MiB of them. So a buffer
 * goes back to this pool once the machine has taken its message.
 *
 * Invariant: a buffer that is lent has one message, and the connection alone has a view of it.
 */
import { LendingPool } from '../../base/index.ts';

/** A full message of rows, of 64 KiB, and the row that filled it. */
export const MESSAGE_BUFFER_BYTES = 80 * 1024;
/** As much as a few connections send in one turn of the event loop. */
const MAX_FREE = 16;

/**
 * The memory of a buffer of this pool, by which a view of it is known. Why not a WeakMap: with one of all buffers scans
 * of several streams took a fifth more CPU.
 */
class Memory extends ArrayBuffer {
  readonly buffer: Buffer;

  constructor() {
    super(MESSAGE_BUFFER_BYTES);
    this.buffer = Buffer.from(this);
  }
}

const buffers = new LendingPool<Buffer, Buffer>(MAX_FREE);

export function takeMessageBuffer(): Buffer {
  return buffers.take() ?? new Memory().buffer;
}

/** `message`, a view of the buffer, goes to a connection, which returns the buffer. The caller then uses neither. */
export function lendMessage(message: Buffer, buffer: Buffer): void {
  buffers.lend(message, buffer);
}

/**
 * As `lendMessage`, for a message that came in, maybe in one of these buffers. The caller has the only view of it,
 * which goes to a connection.
 */
export function lendOnward(message: Buffer): void {
  const memory = message.buffer;
  if (memory instanceof Memory) buffers.lend(message, memory.buffer);
}

/** The buffer of a message of which all was written to the output; undefined if it was not lent. */
export function reclaimBuffer(message: Buffer): Buffer | undefined {
  return buffers.reclaim(message);
}

export function giveMessageBuffer(buffer: Buffer): void {
  buffers.give(buffer);
}
