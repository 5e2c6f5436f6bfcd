/**
 * The end of a log: what the highest slots of its rows say, and the markers that end a row, FENCE and REMOVED.
 *
 * Invariant: a marker that `sealRow` has returned is in the slot that the writer would create next, so that the writer
 * can create no other. A marker, another's too, can also come to lie in a slot that was trimmed meanwhile, and then
 * seals nothing: so the slots above it are listed when it is there, and readers ignore what is below the low-water
 * mark.
 */
import { CorruptionError, unavailable } from '../../base/index.ts';
import type { Random } from '../seams/clock.ts';
import type { RowPlaces } from './row-places.ts';
import type { SlotCalls } from './slot-calls.ts';
import {
  encodeSlotHeader,
  isMarker,
  KIND_OFFSET,
  rowsOf,
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
  /** The newest append; 0 = there was none, the heads alone. */
  readonly last: number;
  readonly lowWater: number;
}

export function drawNonce(random: Random): Buffer {
  return Buffer.from(random.uniqueName(), 'hex').subarray(0, SLOT_NONCE_BYTES);
}

/**
 * The newest append of a row, or its head. `removed`: the log is being deleted. `headless`: the row has slots, and its
 * head is gone. Undefined: it has nothing but markers.
 */
type RowTop = SlotHeader | 'removed' | 'headless' | undefined;

/**
 * Where the log ends now; undefined: there is no log, or it was never opened, or it was deleted. `known`: what earlier
 * readings have learned of the log's rows.
 */
export async function findLogEnd(
  calls: SlotCalls,
  log: string,
  known: readonly RowPlaces[] = [],
): Promise<LogEnd | undefined> {
  const rows = rowsOf(log);
  for (let readings = 1; ; readings++) {
    const tops = await Promise.all(rows.map((row, i) => findRowTop(calls, row, known[i])));
    if (tops.includes('removed')) return undefined;
    const opened = tops.filter((top) => typeof top === 'object');
    const headless = tops.indexOf('headless');
    // no row has a head: a deletion took them, and an append that its writer had sent landed after that
    if (opened.length === 0) return undefined;
    if (headless < 0)
      return {
        nonce: opened.at(-1)!.nonce,
        last: Math.max(...opened.map(({ sequence }) => sequence)),
        lowWater: Math.max(...opened.map(({ lowWater }) => lowWater)),
      };
    // perhaps it was deleted after the other row was read
    if (readings > 1) throw new CorruptionError(slotName(rows[headless]!, 0), 0, 'the slot is missing, others exist');
  }
}

async function findRowTop(calls: SlotCalls, row: string, known: RowPlaces | undefined): Promise<RowTop> {
  const place = known?.top;
  if (place !== undefined) {
    const top = await findTopAbove(calls, row, place.slot);
    if (top !== undefined) return noted(top, known);
  }
  for (let lists = 0; lists < MAX_LISTS; lists++) {
    const { lowest, highest, count } = await extentOf(calls, row);
    if (highest < 0) return undefined;
    let top: SlotHeader | undefined;
    let slot = highest;
    do {
      top = await calls.readHeader(row, slot);
      if (top?.kind === 'removed') return 'removed';
    } while (top !== undefined && isMarker(top) && --slot >= 0);
    // a server that has never opened its log, or one whose log is gone
    if (slot < 0 || count === highest - slot) return undefined;
    // it was deleted meanwhile, unless it is missing a second time
    if (top === undefined) {
      if (lists === 0 || (await calls.readHeader(row, highest)) === undefined) continue;
      throw new CorruptionError(slotName(row, slot), 0, `the slot is missing, slot ${highest} exists`);
    }
    if (lowest !== 0) return 'headless';
    if ((top.kind === 'head') !== (slot === 0))
      throw new CorruptionError(slotName(row, slot), KIND_OFFSET, `a slot of kind ${top.kind}`);
    return noted(top, known);
  }
  throw unavailable(`${row}: the row changed each time it was listed`);
}

/** The newest append of a row with a head, if it lies in `slot` or above. Undefined: the whole row must be listed. */
async function findTopAbove(calls: SlotCalls, row: string, slot: number): Promise<SlotHeader | undefined> {
  const { lowest, highest } = await extentOf(calls, row, slot);
  for (let at = highest; lowest >= 0 && at >= lowest; at--) {
    const header = await calls.readHeader(row, at);
    if (header === undefined || header.kind === 'removed') return undefined;
    if (isMarker(header)) continue;
    const isOpened = header.kind === 'append' && (await calls.readHeader(row, 0))?.kind === 'head';
    return isOpened ? header : undefined;
  }
  return undefined;
}

function noted(top: SlotHeader, known: RowPlaces | undefined): SlotHeader {
  if (top.kind === 'append') known?.note({ slot: top.slot, position: top.sequence });
  return top;
}

/**
 * Puts a marker above the row's last slot, unless one is there that says as much. Returns its slot; undefined for a
 * removal where there is no slot. Whatever is acknowledged before lies below it, and nothing is after.
 */
export async function sealRow(
  calls: SlotCalls,
  row: string,
  kind: SlotKind & ('fence' | 'removed'),
  random: Random,
): Promise<number | undefined> {
  const nonce = drawNonce(random);
  for (let highest = (await extentOf(calls, row)).highest; ; ) {
    if (highest < 0 && kind === 'removed') return undefined;
    const top = highest < 0 ? undefined : await headerUnlessDamaged(calls, row, highest);
    let marker = highest;
    if (top?.kind !== 'removed' && top?.kind !== kind) {
      marker = highest + 1;
      const header = { kind, nonce, slot: marker, sequence: 0, lowWater: 0, payloadBytes: 0, payloadChecksum: 0 };
      if (!(await calls.create(row, marker, [encodeSlotHeader(header, calls.checksum)]))) {
        highest = marker;
        continue;
      }
    }
    highest = (await extentOf(calls, row, marker + 1)).highest;
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
