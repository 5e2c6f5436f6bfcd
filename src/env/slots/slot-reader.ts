/**
 * Reads the appends of a log of slots: both rows, a few slots ahead, merged by number. Format:
 * docs/formats/slot-log.md.
 *
 * Invariants: it ends at the newest append that existed when it began, or later. Every number from the low-water mark
 * to that one is read once, whole, of one writer, or it throws a CorruptionError. At most AHEAD_BYTES a row, and two
 * appends, are in memory.
 */
import { assert, CorruptionError } from '../../base/index.ts';
import { checksumOf } from '../seams/codecs.ts';
import type { LogAppend, LogMemo, LogPosition } from '../seams/file-system.ts';
import { RowPlaces } from './row-places.ts';
import type { SlotCalls } from './slot-calls.ts';
import {
  decodeSlotHeader,
  isMarker,
  KIND_OFFSET,
  PAYLOAD_CHECKSUM_OFFSET,
  rowsOf,
  SLOT_HEADER_BYTES,
  slotName,
} from './slot-format.ts';
import { findLogEnd } from './slot-marks.ts';

/** Bytes of a row that are read ahead. */
const AHEAD_BYTES = 2 << 20;
/** So few slots are all read whole; where there are more, headers say where to begin. */
const MAX_UNSOUGHT = 8;
/**
 * Read of a slot at first; the rest of a larger one when its turn comes. Where calls are slow, a row of short slots is
 * read as quickly as many calls are under way: so each takes less room.
 */
const LONG_READ_BYTES = 512 << 10;
const SHORT_READ_BYTES = 64 << 10;

/** The appends at `from` and above. `memo`: as `readLog`. */
export async function* readSlots(
  calls: SlotCalls,
  log: string,
  from: LogPosition,
  memo: LogMemo | undefined,
): AsyncIterable<LogAppend> {
  const known = memo && placesIn(memo, log);
  let next = Math.max(from, 1);
  let last = 0;
  let afterTrim = false;
  for (let readings = 0; ; readings++) {
    const end = await findLogEnd(calls, log, known);
    if (end === undefined) return;
    const { nonce, lowWater } = end;
    if (readings === 0) last = end.last;
    const isTrimmed = readings > 0 && lowWater > next;
    afterTrim ||= isTrimmed;
    next = Math.max(next, lowWater);
    // after a trim up to the append whose contents say what was trimmed: it precedes the one that deleted the slots
    if (isTrimmed || lowWater > last) last = end.last;
    const begin = next;
    if (next > last) return;
    for await (const { position, bytes } of merged(calls, log, nonce, next, known)) {
      if (position < next) continue;
      // it was trimmed, or the other row was written to after it was listed
      if (position > next) break;
      yield afterTrim ? { position, bytes, afterTrim } : { position, bytes };
      afterTrim = false;
      if (++next > last) return;
    }
    if (readings > 0 && next === begin && !isTrimmed)
      throw new CorruptionError(log, next, `append ${next} is missing, append ${last} exists`);
  }
}

/** What was learned of each row. */
function placesIn(memo: LogMemo, log: string): readonly RowPlaces[] {
  const known = memo.learned ?? rowsOf(log).map(() => new RowPlaces());
  assert(Array.isArray(known) && known.every((each) => each instanceof RowPlaces), 'a memo is one of logs of slots');
  memo.learned = known;
  return known;
}

/**
 * The appends of both rows as they are now, by number, those at `from` and above among them; an append that is in both
 * comes once.
 */
async function* merged(
  calls: SlotCalls,
  log: string,
  nonce: Buffer,
  from: LogPosition,
  known: readonly RowPlaces[] | undefined,
): AsyncIterable<LogAppend> {
  const rows = rowsOf(log).map((row, i) => rowAppends(calls, row, nonce, from, known?.[i]));
  try {
    const heads = await Promise.all(rows.map((row) => row.next()));
    for (;;) {
      const [a, b] = heads.map((head) => (head.done ? undefined : head.value));
      const first = a === undefined || (b !== undefined && b.position < a.position) ? b : a;
      if (first === undefined) return;
      yield first;
      for (const [i, row] of rows.entries()) {
        const head = heads[i]!;
        if (!head.done && head.value.position === first.position) heads[i] = await row.next();
      }
    }
  } finally {
    for (const row of rows) await row.return?.();
  }
}

/** A read that is under way. */
interface Piece {
  readonly contents: Promise<Buffer | undefined>;
  /** What it may bring. */
  readonly bytes: number;
}

async function* rowAppends(
  calls: SlotCalls,
  row: string,
  nonce: Buffer,
  from: LogPosition,
  known: RowPlaces | undefined,
): AsyncGenerator<LogAppend, void, void> {
  let isBelow = from > 1;
  for await (const page of calls.pages(row, known?.below(from)?.slot ?? 1)) {
    const slots = isBelow ? page.slice(await slotsBelow(calls, row, page, nonce, from)) : page;
    if (slots.length > 0) isBelow = false;
    const ahead: Piece[] = [];
    let aheadBytes = 0;
    let readBytes = LONG_READ_BYTES;
    for (const [i, slot] of slots.entries()) {
      while (aheadBytes + readBytes <= AHEAD_BYTES && i + ahead.length < slots.length) {
        const contents = calls.read(row, slots[i + ahead.length]!, 0, readBytes);
        // the reading may end before it is awaited
        contents.catch(() => undefined);
        ahead.push({ contents, bytes: readBytes });
        aheadBytes += readBytes;
      }
      const { contents, bytes } = ahead.shift()!;
      aheadBytes -= bytes;
      const piece = await contents;
      if (piece !== undefined) readBytes = piece.length < SHORT_READ_BYTES ? SHORT_READ_BYTES : LONG_READ_BYTES;
      const append = piece && (await appendOf(calls, row, slot, nonce, { piece, bytes }));
      if (append === undefined) continue;
      known?.note({ slot, position: append.position });
      yield append;
    }
  }
}

/**
 * How many of `slots`, from the first on, surely have appends before `from`: their numbers ascend in a row. A slot that
 * shows none decides nothing: it was trimmed, it is a marker, or what is wrong with it is found when it is read whole.
 */
async function slotsBelow(
  calls: SlotCalls,
  row: string,
  slots: readonly number[],
  nonce: Buffer,
  from: LogPosition,
): Promise<number> {
  if (slots.length <= MAX_UNSOUGHT) return 0;
  const isBelow = async (slot: number): Promise<boolean> => {
    const header = await calls.readHeader(row, slot);
    return header?.kind === 'append' && header.nonce.equals(nonce) && header.sequence < from;
  };
  let [below, end] = [0, slots.length - 1];
  if (await isBelow(slots[end]!)) return slots.length;
  while (end - below > MAX_UNSOUGHT) {
    const middle = (below + end) >> 1;
    if (await isBelow(slots[middle]!)) below = middle + 1;
    else end = middle;
  }
  return below;
}

/** The append in a slot that begins with `piece`; undefined: a marker, or it was deleted before it was read whole. */
async function appendOf(
  calls: SlotCalls,
  row: string,
  slot: number,
  nonce: Buffer,
  { piece, bytes: readBytes }: { readonly piece: Buffer; readonly bytes: number },
): Promise<LogAppend | undefined> {
  const { clock, checksum } = calls;
  const file = slotName(row, slot);
  const header = decodeSlotHeader(piece, row, slot, checksum);
  // nothing lies behind one, but if it lies in a slot that was trimmed
  if (isMarker(header)) return undefined;
  if (header.kind !== 'append') throw new CorruptionError(file, KIND_OFFSET, `a slot of kind ${header.kind}`);
  if (!header.nonce.equals(nonce)) throw new CorruptionError(file, 16, 'the slot was written by another writer');
  let bytes = piece.subarray(SLOT_HEADER_BYTES);
  if (piece.length === readBytes) {
    const missing = header.payloadBytes - bytes.length;
    // a byte more, so that one too many shows; in one part, as an append is handed on in one
    const rest = await calls.read(row, slot, readBytes, Math.max(1, missing + 1));
    if (rest === undefined) return undefined;
    if (rest.length > 0) bytes = Buffer.concat([bytes, rest]);
  }
  if (bytes.length !== header.payloadBytes)
    throw new CorruptionError(file, SLOT_HEADER_BYTES, `${bytes.length} bytes of ${header.payloadBytes}`);
  if ((await checksumOf([bytes], checksum, clock.yield)) !== header.payloadChecksum)
    throw new CorruptionError(file, PAYLOAD_CHECKSUM_OFFSET, 'the checksum of the append is wrong');
  return { position: header.sequence, bytes };
}
