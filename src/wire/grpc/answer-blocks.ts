/**
 * Header blocks of answers: literals that no table holds (RFC 7541, section 6.2.2), so that they are the same bytes on
 * every connection and are made once. They are short: a table would save few bytes a call and cost state and time.
 */
import { assert } from '../../base/index.ts';
import type { RpcStatus } from '../contract/rpc-server.ts';
import { encodeBinary, encodeMessage } from './metadata.ts';

/** Entries of HPACK's static table. */
const STATUS_200 = 0x88;
const NAME_STATUS = 8;
/** Answers fit one frame of the size that every peer accepts. */
const MAX_BYTES = 16_384;
const MAX_LENGTH = 16_000;

function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0), text(name), text(value)]);
}

/** A string without Huffman's code, its length a prefixed integer of 7 bits. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  assert(bytes.length <= MAX_LENGTH, `a header of ${bytes.length} bytes is short enough to be sent`);
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const rest = bytes.length - 127;
  const length = rest < 128 ? Buffer.of(127, rest) : Buffer.of(127, (rest & 127) | 128, rest >>> 7);
  return Buffer.concat([length, bytes]);
}

const START = Buffer.concat([Buffer.of(STATUS_200), literal('content-type', 'application/grpc')]);
const ACCEPTS = literal('grpc-accept-encoding', 'identity,gzip');

export const ANSWER_HEADERS = Buffer.concat([START, ACCEPTS]);
export const GZIP_ANSWER_HEADERS = Buffer.concat([START, literal('grpc-encoding', 'gzip'), ACCEPTS]);
export const OK_TRAILERS = literal('grpc-status', '0');

/** The block with more headers at its end: name, value, name, value … The caller keeps them short. */
export function withHeaders(block: Buffer, headers: readonly string[]): Buffer {
  const parts = [block];
  for (let i = 0; i < headers.length; i += 2) parts.push(literal(headers[i]!, headers[i + 1]!));
  const all = Buffer.concat(parts);
  assert(all.length <= MAX_BYTES, `headers of ${all.length} bytes are short enough to be sent`);
  return all;
}

/** The end of a call that failed. `alone`: no headers went before. */
export function statusTrailers(status: RpcStatus, alone: boolean): Buffer {
  const parts = alone ? [START, ACCEPTS] : [];
  parts.push(literal('grpc-status', String(status.code)));
  if (status.message !== '') parts.push(literal('grpc-message', encodeMessage(status.message)));
  if (status.details) parts.push(literal('grpc-status-details-bin', encodeBinary(status.details)));
  const block = Buffer.concat(parts);
  assert(block.length <= MAX_BYTES, `trailers of ${block.length} bytes are short enough to be sent`);
  return block;
}

/** The headers of an answer to plain HTTP. */
export function httpHeaders(status: number, contentLength: number): Buffer {
  return Buffer.concat([
    Buffer.of(NAME_STATUS),
    text(String(status)),
    literal('content-type', 'text/plain; charset=utf-8'),
    literal('content-length', String(contentLength)),
  ]);
}
