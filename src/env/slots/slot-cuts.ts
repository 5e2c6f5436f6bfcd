/** Where a log of slots is cut into parts. Headers of some slots, at equal distances, stand for the others. */
import type { LogCuts, LogPosition } from '../seams/file-system.ts';
import type { SlotCalls } from './slot-calls.ts';
import { rowsOf } from './slot-format.ts';
import { findLogEnd } from './slot-marks.ts';

/** The number of headers that are read of a row, and of those that are read concurrently. */
const MAX_SAMPLES = 128;
const AT_ONCE = 16;

interface Sample {
  readonly position: LogPosition;
  /** Bytes of the slots that it stands for. */
  readonly bytes: number;
  /** What they count besides. */
  readonly callCostBytes: number;
}

export async function cutSlots(calls: SlotCalls, log: string, partBytes: number, from: LogPosition): Promise<LogCuts> {
  const end = await findLogEnd(calls, log);
  if (end === undefined) return { sizeBytes: 0, callCostBytes: 0, positions: [] };
  // an append that was slow is in both rows
  const byPosition = new Map<LogPosition, Sample>();
  for (const row of rowsOf(log))
    for (const sample of await samplesOf(calls, row, { ...end, lowWater: Math.max(end.lowWater, from) }))
      byPosition.set(sample.position, sample);
  const samples = [...byPosition.values()].sort((a, b) => a.position - b.position);
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

async function samplesOf(
  calls: SlotCalls,
  row: string,
  { nonce, lowWater }: { readonly nonce: Buffer; readonly lowWater: number },
): Promise<Sample[]> {
  const slots: number[] = [];
  // slot 0 is the head
  for await (const page of calls.pages(row, 1)) slots.push(...page);
  const step = Math.max(1, Math.ceil(slots.length / MAX_SAMPLES));
  const chosen = slots.filter((_, i) => i % step === 0);
  const samples: Sample[] = [];
  for (let i = 0; i < chosen.length; i += AT_ONCE) {
    const headers = await Promise.all(chosen.slice(i, i + AT_ONCE).map((slot) => calls.readHeader(row, slot)));
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
