/**
 * The file `index` of a read cache as bytes: a header, then a record for each slot. Format: docs/formats/read-cache.md.
 *
 * Invariant: a record is read back as it was written, in the slot it was written for, or not at all.
 */
import { assert } from '../../base/index.ts';
import type { Checksum } from '../../env/index.ts';

/** Length of the header and of each record. */
export const RECORD_BYTES = 64;
/** Parts of a chunk that have a checksum each. */
export const PIECES = 8;
/** Words of a file's key, 32 bits each. */
export const KEY_WORDS = 4;

/** Names a file: the first 128 bits of the SHA-256 of its path. */
export type FileKey = Uint32Array;

/** What a slot holds. */
export interface ChunkRecord {
  readonly file: FileKey;
  /** The chunk's number in its file. */
  readonly chunk: number;
  /** Its length; only a file's last chunk is shorter than others. */
  readonly lengthBytes: number;
  /** The checksums of its pieces, PIECES words. Those of pieces after its end are 0. */
  readonly sums: Uint32Array;
}

const MAGIC = Buffer.from('EDUBRIDX', 'latin1');
const VERSION = 1;
const CHUNK_AT = 16;
const LENGTH_AT = 20;
const SUMS_AT = 24;
const SLOT_AT = 56;
const CHECKSUM_AT = 60;

/** Where the record of a slot begins in the file. */
export function recordPosition(slot: number): number {
  return (slot + 1) * RECORD_BYTES;
}

export function encodeHeader(chunkBytes: number, checksum: Checksum): Buffer {
  const bytes = Buffer.alloc(RECORD_BYTES);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(VERSION, 8);
  bytes.writeUInt32LE(chunkBytes, 12);
  return sealed(bytes, checksum);
}

export function encodeRecord(slot: number, record: ChunkRecord, checksum: Checksum): Buffer {
  assert(record.lengthBytes > 0 && record.sums.length === PIECES, 'a record is of a chunk with bytes');
  const bytes = Buffer.alloc(RECORD_BYTES);
  for (let i = 0; i < KEY_WORDS; i++) bytes.writeUInt32LE(record.file[i]!, 4 * i);
  bytes.writeUInt32LE(record.chunk, CHUNK_AT);
  bytes.writeUInt32LE(record.lengthBytes, LENGTH_AT);
  for (let i = 0; i < PIECES; i++) bytes.writeUInt32LE(record.sums[i]!, SUMS_AT + 4 * i);
  bytes.writeUInt32LE(slot, SLOT_AT);
  return sealed(bytes, checksum);
}

/** The record of the slot; undefined where the slot is empty, or the record is damaged. */
export function decodeRecord(slot: number, bytes: Buffer, checksum: Checksum): ChunkRecord | undefined {
  const lengthBytes = bytes.readUInt32LE(LENGTH_AT);
  if (lengthBytes === 0 || bytes.readUInt32LE(SLOT_AT) !== slot) return undefined;
  if (checksum(bytes.subarray(0, CHECKSUM_AT)) !== bytes.readUInt32LE(CHECKSUM_AT)) return undefined;
  const file = new Uint32Array(KEY_WORDS);
  for (let i = 0; i < KEY_WORDS; i++) file[i] = bytes.readUInt32LE(4 * i);
  const sums = new Uint32Array(PIECES);
  for (let i = 0; i < PIECES; i++) sums[i] = bytes.readUInt32LE(SUMS_AT + 4 * i);
  return { file, chunk: bytes.readUInt32LE(CHUNK_AT), lengthBytes, sums };
}

function sealed(bytes: Buffer, checksum: Checksum): Buffer {
  bytes.writeUInt32LE(checksum(bytes.subarray(0, CHECKSUM_AT)), CHECKSUM_AT);
  return bytes;
}
