/** Where a log of slots is cut into parts. Headers of some slots, at equal distances, stand for the others. */
import type { LogCuts, LogPosition } from '../seams/file-system.ts';
import type { SlotCalls } from './slot-calls.ts';
import { rowsOf } from './slot-format.ts';
import { findLogEnd } from './slot-marks.ts';

/** Headers that are read of a row, concurrently. They tell the size. */
const FEW_SAMPLES = 16;
/** And of a row of a log that is to be cut: they tell where. */
const MANY_SAMPLES = 128;

interface Sample {
  readonly position: LogPosition;
  /** Bytes of the slots that it stands for. */
  readonly bytes: number;
  /** What they count besides. */
  readonly callCostBytes: number;
}

/** A log that is estimated at less than half a part is not cut, and not read further: its size is of few headers. */
export async function cutSlots(calls: SlotCalls, log: string, partBytes: number, from: LogPosition): Promise<LogCuts> {
  const [end, ...rows] = await Promise.all([findLogEnd(calls, log), ...rowsOf(log).map((row) => slotsOf(calls, row))]);
  if (end === undefined) return { sizeBytes: 0, callCostBytes: 0, positions: [] };
  const sampling = { nonce: end.nonce, lowWater: Math.max(end.lowWater, from) };
  const few = cutSamples(await samplesOf(calls, rows, FEW_SAMPLES, sampling), partBytes, from);
  if (few.sizeBytes < partBytes / 2) return few;
  return cutSamples(await samplesOf(calls, rows, MANY_SAMPLES, sampling), partBytes, from);
}

function cutSamples(samples: readonly Sample[], partBytes: number, from: LogPosition): LogCuts {
  const positions: LogPosition[] = [];
  let [sizeBytes, inPart, costBytes] = [0, 0, 0];
  for (const { position, bytes, callCostBytes } of samples) {
    if (inPart >= partBytes && position > (positions.at(-1) ?? from)) {
      positions.push(position);
      inPart = 0;
    }
    sizeBytes += bytes;
    inPart += bytes;
    costBytes += callCostBytes;
  }
  return { sizeBytes, callCostBytes: costBytes, positions };
}

interface Row {
  readonly name: string;
  readonly slots: readonly number[];
}

async function slotsOf(calls: SlotCalls, name: string): Promise<Row> {
  const slots: number[] = [];
  // slot 0 is the head
  for await (const page of calls.pages(name, 1)) slots.push(...page);
  return { name, slots };
}

/** In the order of their positions, at most `most` of each row. */
async function samplesOf(
  calls: SlotCalls,
  rows: readonly Row[],
  most: number,
  sampling: { readonly nonce: Buffer; readonly lowWater: number },
): Promise<Sample[]> {
  // an append that was slow is in both rows
  const byPosition = new Map<LogPosition, Sample>();
  for (const samples of await Promise.all(rows.map((row) => samplesOfRow(calls, row, most, sampling))))
    for (const sample of samples) byPosition.set(sample.position, sample);
  return [...byPosition.values()].sort((a, b) => a.position - b.position);
}

async function samplesOfRow(
  calls: SlotCalls,
  { name, slots }: Row,
  most: number,
  { nonce, lowWater }: { readonly nonce: Buffer; readonly lowWater: number },
): Promise<Sample[]> {
  const step = Math.max(1, Math.ceil(slots.length / most));
  const chosen = slots.filter((_, i) => i % step === 0);
  const samples: Sample[] = [];
  for (let i = 0; i < chosen.length; i += FEW_SAMPLES) {
    const headers = await Promise.all(chosen.slice(i, i + FEW_SAMPLES).map((slot) => calls.readHeader(name, slot)));
    for (const header of headers) {
      // markers, and what was trimmed, are no part of it
      if (header?.kind !== 'append' || !header.nonce.equals(nonce) || header.sequence < lowWater) continue;
      const { sequence: position, payloadBytes } = header;
      const callCostBytes = Math.max(0, calls.slotCostBytes - payloadBytes) * step;
      samples.push({ position, bytes: payloadBytes * step, callCostBytes });
    }
  }
  return samples;
}
