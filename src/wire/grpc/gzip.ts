/**
 * gRPC's gzip messages (grpc-encoding: gzip, RFC 1952). Small ones are processed in place, large ones on the thread
 * pool, so that no slice of the event loop is long.
 *
 * Invariant: no more is inflated than the limit, whatever the bytes claim.
 */
import { promisify } from 'node:util';
import { constants, createGzip, gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib';
import { BigtableError, Code } from '../../base/index.ts';

/** Inflating or deflating this much takes well below a millisecond. */
const IN_PLACE_BYTES = 32 * 1024;
/** Length of a gzip file's head and tail, at least. */
const FRAMING_BYTES = 18;
const MAGIC = 0x1f8b;

const gunzipLater = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);
const gzipLater = promisify<Buffer, { level: number }, Buffer>(gzip);
const LEVEL = constants.Z_BEST_SPEED;

/** The inflated size that the file claims (its last four bytes); 0 where it is not a gzip file. */
export function claimedBytes(compressed: Buffer): number {
  const isGzip = compressed.length >= FRAMING_BYTES && compressed.readUInt16BE(0) === MAGIC;
  return isGzip ? compressed.readUInt32LE(compressed.length - 4) : 0;
}

/** Fails with INTERNAL where the bytes are not a gzip file of at most `maxBytes`. */
export async function inflate(compressed: Buffer, maxBytes: number): Promise<Buffer> {
  // a limit of 0 would mean none
  const options = { maxOutputLength: Math.max(1, maxBytes) };
  try {
    return maxBytes <= IN_PLACE_BYTES && compressed.length <= IN_PLACE_BYTES
      ? gunzipSync(compressed, options)
      : await gunzipLater(compressed, options);
  } catch (error) {
    throw new BigtableError(Code.INTERNAL, `a message is not a gzip file of at most ${maxBytes} bytes`, {
      cause: error,
    });
  }
}

/** Deflates a message in one buffer or several. Several may be large: neither they nor the outcome are joined. */
export function deflate(message: Buffer | readonly Buffer[]): Buffer | Promise<Buffer | readonly Buffer[]> {
  if (!(message instanceof Uint8Array)) return deflateParts(message);
  return message.length <= IN_PLACE_BYTES ? gzipSync(message, { level: LEVEL }) : gzipLater(message, { level: LEVEL });
}

async function deflateParts(parts: readonly Buffer[]): Promise<readonly Buffer[]> {
  const deflating = createGzip({ level: LEVEL });
  for (const part of parts) deflating.write(part);
  deflating.end();
  const deflated: Buffer[] = [];
  for await (const piece of deflating) deflated.push(piece as Buffer);
  return deflated;
}
