/**
 * The server's time in cells: filled in where a cell comes without a timestamp, cut to the table's granularity, and
 * recognized in cells that are read from a log. Pure: the time itself comes from the tablet
 * (tablet/layers/server-time.ts).
 */
import type { Int64 } from '../base/index.ts';
import { type CellRun, isCellRun, type Mutations, timestampAt } from './cell-run.ts';
import { type Mutation, setCell } from './mutation.ts';
import type { Granularity } from './schema.ts';

const MILLI_MICROS = 1000;

/** `micros` as a cell of the table may carry it: rounded down to the granularity. */
export function cutToGranularity(micros: number, granularity: Granularity): number {
  return granularity === 'micros' ? micros : Math.floor(micros / MILLI_MICROS) * MILLI_MICROS;
}

/** True when a cell among them gets the server's time. */
export function needsServerTime(mutations: Mutations): boolean {
  if (!isCellRun(mutations))
    return mutations.some((mutation) => mutation.kind === 'setCell' && mutation.timestamp === undefined);
  for (let at = mutations.from; at < mutations.from + mutations.length; at++)
    if (timestampAt(mutations, at) === undefined) return true;
  return false;
}

/** The mutations with the server's time where a cell has none: the same object where all cells have one. */
export function resolveTimestamps<M extends Mutations>(mutations: M, nowMicros: number, granularity: Granularity): M;
export function resolveTimestamps(mutations: Mutations, nowMicros: number, granularity: Granularity): Mutations {
  if (isCellRun(mutations))
    return needsServerTime(mutations) ? runAt(mutations, cutToGranularity(nowMicros, granularity)) : mutations;
  let resolved: Mutation[] | undefined;
  for (let i = 0; i < mutations.length; i++) {
    const mutation = mutations[i]!;
    if (mutation.kind !== 'setCell' || mutation.timestamp !== undefined) continue;
    resolved ??= mutations.slice();
    resolved[i] = setCell(
      mutation.family,
      mutation.qualifier,
      cutToGranularity(nowMicros, granularity),
      mutation.value,
    );
  }
  return resolved ?? mutations;
}

/**
 * True when a cell among them carries that time, as cells with the server's time do. The server assigns no time beyond
 * 2^53.
 */
export function carriesServerTime(mutations: Mutations, micros: Int64, granularity: Granularity): boolean {
  if (typeof micros === 'bigint') return false;
  const timestamp = cutToGranularity(micros, granularity);
  if (!isCellRun(mutations))
    return mutations.some((mutation) => mutation.kind === 'setCell' && mutation.timestamp === timestamp);
  for (let at = mutations.from; at < mutations.from + mutations.length; at++)
    if (timestampAt(mutations, at) === timestamp) return true;
  return false;
}

function runAt({ batch, from, length }: CellRun, serverMicros: number): CellRun {
  return { batch, from, length, serverMicros };
}
