/**
 * Reads the appends of a log of slots, a few slots ahead. Format: docs/formats/slot-log.md.
 *
 * Invariants: it ends at a marker, else at the newest slot that existed when it began, or later. Between the low-water
 * mark and that slot every slot is there, whole, of one writer, or it throws a CorruptionError. At most READ_AHEAD
 * pieces of READ_BYTES and one append are in memory.
 */
import { CorruptionError } from '../../base/index.ts';
import { checksumOf } from '../seams/codecs.ts';
import type { LogAppend, LogPosition } from '../seams/file-system.ts';
import type { SlotCalls } from './slot-calls.ts';
import { decodeSlotHeader, isMarker, SLOT_HEADER_BYTES, slotName } from './slot-format.ts';
import { findLogEnd } from './slot-marks.ts';

const READ_AHEAD = 8;
/** Read of a slot at first; the rest of a larger one when its turn comes. */
const READ_BYTES = 512 << 10;

/** The appends at `from` and above. */
export async function* readSlots(calls: SlotCalls, log: string, from: LogPosition): AsyncIterable<LogAppend> {
  let end = await findLogEnd(calls, log);
  if (end === undefined) return;
  const { nonce } = end;
  let slot = Math.max(from, end.lowWater, 1);
  let afterTrim = false;
  const ahead: Promise<Buffer | undefined>[] = [];
  for (; slot <= end.last; slot++) {
    while (ahead.length < READ_AHEAD && slot + ahead.length <= end.last) {
      const piece = calls.read(log, slot + ahead.length, 0, READ_BYTES);
      // the reading may end before it is awaited
      piece.catch(() => undefined);
      ahead.push(piece);
    }
    const piece = await ahead.shift();
    const bytes = piece && (await appendOf(calls, log, slot, nonce, piece));
    if (bytes === 'marker' && slot === end.last) return;
    if (bytes !== undefined && bytes !== 'marker') {
      yield afterTrim ? { position: slot, bytes, afterTrim } : { position: slot, bytes };
      afterTrim = false;
      continue;
    }
    // trimmed meanwhile; or a marker came to lie in a slot that was, or the log ends at it
    end = await findLogEnd(calls, log);
    if (end === undefined || (bytes === 'marker' && end.lowWater <= slot)) return;
    if (end.lowWater <= slot)
      throw new CorruptionError(slotName(log, slot), 0, 'the slot is missing, later ones exist');
    slot = end.lowWater - 1;
    ahead.length = 0;
    afterTrim = true;
  }
}

/** The append in a slot that begins with `piece`; undefined, if the slot was deleted before it was read whole. */
async function appendOf(
  calls: SlotCalls,
  log: string,
  slot: number,
  nonce: Buffer,
  piece: Buffer,
): Promise<Buffer | 'marker' | undefined> {
  const { clock, checksum } = calls;
  const file = slotName(log, slot);
  const header = decodeSlotHeader(piece, log, slot, checksum);
  if (isMarker(header)) return 'marker';
  if (header.kind !== 'append') throw new CorruptionError(file, 56, `a slot of kind ${header.kind}`);
  if (!header.nonce.equals(nonce)) throw new CorruptionError(file, 16, 'the slot was written by another writer');
  let payload = piece.subarray(SLOT_HEADER_BYTES);
  if (piece.length === READ_BYTES) {
    const missing = header.payloadBytes - payload.length;
    // a byte more, so that one too many shows; in one part, as an append is handed on in one
    const rest = await calls.read(log, slot, READ_BYTES, Math.max(1, missing + 1));
    if (rest === undefined) return undefined;
    if (rest.length > 0) payload = Buffer.concat([payload, rest]);
  }
  if (payload.length !== header.payloadBytes)
    throw new CorruptionError(file, SLOT_HEADER_BYTES, `${payload.length} bytes of ${header.payloadBytes}`);
  if ((await checksumOf([payload], checksum, clock.yield)) !== header.payloadChecksum)
    throw new CorruptionError(file, 52, 'the checksum of the append is wrong');
  return payload;
}
