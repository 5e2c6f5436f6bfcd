/**
 * The bytes of a slot: a header, then the payload. Format: docs/formats/slot-log.md.
 *
 * Invariant: a slot contains its log's nonce, its number and its length under a checksum of the header. Bytes of
 * another slot, cut or changed ones are never taken for it.
 */
import { assert, BigtableError, Code, CorruptionError } from '../../base/index.ts';
import type { Checksum } from '../seams/codecs.ts';

export const SLOT_HEADER_BYTES = 80;
export const SLOT_NONCE_BYTES = 16;
/** Most bytes of one append. */
export const MAX_SLOT_PAYLOAD_BYTES = 1 << 30;

const MAGIC = Buffer.from('EDUBSLOT', 'latin1');
const VERSION = 1;
const TWO_32 = 0x1_0000_0000;

export const PAYLOAD_CHECKSUM_OFFSET = 60;
export const KIND_OFFSET = 64;
const CHECKSUM_OFFSET = 76;

/**
 * `head`: slot 0, which says that the log was opened. `fence`: no append follows it. `removed`: the log is being
 * deleted, it has no appends any more.
 */
const KINDS = ['head', 'append', 'fence', 'removed'] as const;
export type SlotKind = (typeof KINDS)[number];

export interface SlotHeader {
  readonly kind: SlotKind;
  /** The writer's, the same in both rows of its log; a random one in a marker. */
  readonly nonce: Buffer;
  readonly slot: number;
  /** Number of the append in its log, from 1; 0 in a head or a marker. */
  readonly sequence: number;
  /** Appends before this one may be deleted: their absence is no damage. */
  readonly lowWater: number;
  readonly payloadBytes: number;
  readonly payloadChecksum: number;
}

/** A log's slots lie in two rows, each with the paths and numbers of a slot store. */
export function rowsOf(log: string): readonly [string, string] {
  return [`${log}/a`, `${log}/b`];
}

/** Where a slot is, in messages and CorruptionErrors. */
export function slotName(log: string, slot: number): string {
  return `${log}/${slot}`;
}

export function isMarker({ kind }: SlotHeader): boolean {
  return kind === 'fence' || kind === 'removed';
}

export function encodeSlotHeader(header: SlotHeader, checksum: Checksum): Buffer {
  const { kind, nonce, slot, sequence, lowWater, payloadBytes, payloadChecksum } = header;
  assert(nonce.length === SLOT_NONCE_BYTES, 'a nonce has 16 bytes');
  assert(Number.isSafeInteger(slot) && slot >= 0, 'a slot is a safe integer');
  assert(lowWater <= sequence, 'no append that is still to come is trimmed');
  const bytes = Buffer.alloc(SLOT_HEADER_BYTES);
  MAGIC.copy(bytes, 0);
  bytes.writeUInt16LE(VERSION, 8);
  bytes.writeUInt16LE(SLOT_HEADER_BYTES, 10);
  nonce.copy(bytes, 16);
  writeUint64(bytes, 32, slot);
  writeUint64(bytes, 40, sequence);
  writeUint64(bytes, 48, lowWater);
  bytes.writeUInt32LE(payloadBytes, 56);
  bytes.writeUInt32LE(payloadChecksum, PAYLOAD_CHECKSUM_OFFSET);
  bytes.writeUInt8(KINDS.indexOf(kind), KIND_OFFSET);
  bytes.writeUInt32LE(checksum(bytes.subarray(0, CHECKSUM_OFFSET)), CHECKSUM_OFFSET);
  return bytes;
}

/** CorruptionError where the bytes are damaged, FAILED_PRECONDITION where a later version wrote them. */
export function decodeSlotHeader(bytes: Buffer, log: string, slot: number, checksum: Checksum): SlotHeader {
  const file = slotName(log, slot);
  if (bytes.length < SLOT_HEADER_BYTES)
    throw new CorruptionError(file, bytes.length, `a slot begins with ${SLOT_HEADER_BYTES} bytes of header`);
  if (!bytes.subarray(0, 8).equals(MAGIC)) throw new CorruptionError(file, 0, 'not a slot of a log');
  if (bytes.readUInt32LE(CHECKSUM_OFFSET) !== checksum(bytes.subarray(0, CHECKSUM_OFFSET)))
    throw new CorruptionError(file, CHECKSUM_OFFSET, 'the checksum of the header is wrong');
  const version = bytes.readUInt16LE(8);
  const features = bytes.readUInt32LE(12);
  if (version !== VERSION || features !== 0) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${file}: a slot of version ${version} with required features 0x${features.toString(16)}; this Edubba reads version ${VERSION} and no features`,
    );
  }
  const kind = KINDS[bytes.readUInt8(KIND_OFFSET)];
  if (kind === undefined)
    throw new CorruptionError(file, KIND_OFFSET, `no slot is of kind ${bytes.readUInt8(KIND_OFFSET)}`);
  const itsSlot = readUint64(bytes, 32);
  if (itsSlot !== slot) throw new CorruptionError(file, 32, `these are the bytes of slot ${itsSlot}`);
  const sequence = readUint64(bytes, 40);
  const lowWater = readUint64(bytes, 48);
  const payloadBytes = bytes.readUInt32LE(56);
  if (lowWater > sequence)
    throw new CorruptionError(file, 48, `low-water mark ${lowWater} is above append ${sequence}`);
  if (payloadBytes > MAX_SLOT_PAYLOAD_BYTES)
    throw new CorruptionError(file, 56, `${payloadBytes} bytes are more than an append may have`);
  return {
    kind,
    nonce: Buffer.from(bytes.subarray(16, 16 + SLOT_NONCE_BYTES)),
    slot,
    sequence,
    lowWater,
    payloadBytes,
    payloadChecksum: bytes.readUInt32LE(PAYLOAD_CHECKSUM_OFFSET),
  };
}

/** Eight bytes, the lowest first, that hold a safe integer. */
function writeUint64(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value % TWO_32, at);
  bytes.writeUInt32LE(Math.floor(value / TWO_32), at + 4);
}

function readUint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * TWO_32;
}
