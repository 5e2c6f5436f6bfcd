/**
 * The end of a log: what its highest slots say, and the markers that end it, FENCE and REMOVED.
 *
 * Invariant: a marker that `sealLog` has returned is in the slot that the writer would create next, so that the writer
 * can create no other. A marker, another's too, can also come to lie in a slot that was trimmed meanwhile, and then
 * seals nothing: so the slots above it are listed when it is there, and readers ignore what is below the low-water
 * mark.
 */
import { CorruptionError, unavailable } from '../../base/index.ts';
import type { Random } from '../seams/clock.ts';
import type { SlotCalls } from './slot-calls.ts';
import {
  encodeSlotHeader,
  isMarker,
  SLOT_NONCE_BYTES,
  type SlotHeader,
  type SlotKind,
  slotName,
} from './slot-format.ts';

/** Slots that a list shows may be deleted before they are read; more often than this something is wrong. */
const MAX_LISTS = 100;

export interface LogEnd {
  /** The writer's. */
  readonly nonce: Buffer;
  /** The newest append; 0 = there was none, the head alone. */
  readonly last: number;
  readonly lowWater: number;
}

export function drawNonce(random: Random): Buffer {
  return Buffer.from(random.uniqueName(), 'hex').subarray(0, SLOT_NONCE_BYTES);
}

/** Where the log ends now; undefined: there is no log, or it was never opened, or it is being deleted. */
export async function findLogEnd(calls: SlotCalls, log: string): Promise<LogEnd | undefined> {
  for (let lists = 0; lists < MAX_LISTS; lists++) {
    const { lowest, highest, count } = await extentOf(calls, log);
    if (highest < 0) return undefined;
    let top: SlotHeader | undefined;
    let slot = highest;
    do {
      top = await calls.readHeader(log, slot);
      if (top?.kind === 'removed') return undefined;
    } while (top !== undefined && isMarker(top) && --slot >= 0);
    // nothing but markers: a server that has never opened its log, or one whose log is gone
    if (slot < 0 || count === highest - slot) return undefined;
    // it was trimmed or deleted meanwhile, unless it is missing a second time
    if (top === undefined) {
      if (lists === 0 || (await calls.readHeader(log, highest)) === undefined) continue;
      throw new CorruptionError(slotName(log, slot), 0, `the slot is missing, slot ${highest} exists`);
    }
    if (lowest !== 0) throw new CorruptionError(slotName(log, 0), 0, `the slot is missing, slot ${lowest} exists`);
    if ((top.kind === 'head') !== (slot === 0))
      throw new CorruptionError(slotName(log, slot), 56, `a slot of kind ${top.kind}`);
    return { nonce: top.nonce, last: slot, lowWater: top.lowWater };
  }
  throw unavailable(`${log}: the log changed each time it was listed`);
}

/**
 * Puts a marker above the log's last slot, unless one is there that says as much. Returns its slot; undefined for a
 * removal where there is no slot. Whatever is acknowledged before lies below it, and nothing is after.
 */
export async function sealLog(
  calls: SlotCalls,
  log: string,
  kind: SlotKind & ('fence' | 'removed'),
  random: Random,
): Promise<number | undefined> {
  const nonce = drawNonce(random);
  for (let highest = (await extentOf(calls, log)).highest; ; ) {
    if (highest < 0 && kind === 'removed') return undefined;
    const top = highest < 0 ? undefined : await headerUnlessDamaged(calls, log, highest);
    let marker = highest;
    if (top?.kind !== 'removed' && top?.kind !== kind) {
      marker = highest + 1;
      const header = { kind, nonce, slot: marker, lowWater: 0, payloadBytes: 0, payloadChecksum: 0 };
      if (!(await calls.create(log, marker, [encodeSlotHeader(header, calls.checksum)]))) {
        highest = marker;
        continue;
      }
    }
    highest = (await extentOf(calls, log, marker + 1)).highest;
    if (highest < 0) return marker;
  }
}

/** A damaged slot is sealed as any other: its readers will report it. */
async function headerUnlessDamaged(calls: SlotCalls, log: string, slot: number): Promise<SlotHeader | undefined> {
  try {
    return await calls.readHeader(log, slot);
  } catch (error) {
    if (error instanceof CorruptionError) return undefined;
    throw error;
  }
}

async function extentOf(
  calls: SlotCalls,
  log: string,
  from = 0,
): Promise<{ lowest: number; highest: number; count: number }> {
  let lowest = -1;
  let highest = -1;
  let count = 0;
  for await (const slots of calls.pages(log, from)) {
    if (lowest < 0) lowest = slots[0] ?? -1;
    highest = slots.at(-1) ?? highest;
    count += slots.length;
  }
  return { lowest, highest, count };
}
