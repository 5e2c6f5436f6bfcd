/**
 * Filters as requests bear them to the filter in plain data. Clients send the same few over and over: what was decoded lately is kept by its bytes,
 * so that it is decoded once, and so that whoever compiles a filter knows it again by identity.
 */
import { invalidArgument } from '../../base/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { LIMITS } from '../../model/index.ts';
import { rareMessages } from './rare.ts';

const KEPT = 64;
/** Larger ones cost little against what they do. */
const KEPT_BYTES = 512;

const kept = new Map<string, RowFilter | undefined>();

/**
 * The bytes of a filter whose field comes again: protobuf has the parts of a message field be one message, which is
 * what their bytes are one after another.
 */
export function withFilterPart(before: Buffer | undefined, part: Buffer): Buffer {
  if (before === undefined || before.length === 0) return part;
  if (part.length === 0) return before;
  checkSize(before.length + part.length);
  return Buffer.concat([before, part]);
}

/** The filter in a request's bytes, its serialized size within the limit; undefined where it says nothing. Within `withRareMessages` alone. */
export function filterFrom(bytes: Buffer): RowFilter | undefined {
  checkSize(bytes.length);
  if (bytes.length > KEPT_BYTES) return rareMessages().filter(bytes);
  const key = bytes.latin1Slice();
  const known = kept.get(key);
  if (known !== undefined) return known;
  const filter = rareMessages().filter(bytes);
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value as string);
  kept.set(key, filter);
  return filter;
}

function checkSize(sizeBytes: number): void {
  const most = LIMITS.default.filterBytes;
  if (sizeBytes > most)
    throw invalidArgument(`the filter has ${sizeBytes} bytes serialized; the limit is ${most}`, { field: 'filter' });
}
