/**
 * The resources that a process has used since a moment: time, CPU of all its threads, bytes written; and the wait until
 * nothing runs any more.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const WINDOW_MS = 200;
/** So many windows in a row with less CPU time than this share of one core are rest. */
const QUIET_WINDOWS = 3;
const QUIET_SHARE = 0.03;

export interface Usage {
  readonly seconds: number;
  readonly cpuMicros: number;
  readonly writtenBytes: number;
}

const cpuMicros = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const field = (path: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(path, 'utf8'))?.[1] ?? Number.NaN);

/**
 * Bytes given to write calls, zeros written ahead included. The kernel's own count of what goes to the disk
 * (write_bytes) counts a whole large folio for each append into it, several times what is written.
 */
const writtenBytes = (): number => field('/proc/self/io', 'wchar');

export const residentBytes = (): number => field('/proc/self/status', 'VmRSS') * 1024;

export class Stopwatch {
  readonly #start = performance.now();
  readonly #cpu = cpuMicros();
  readonly #written = writtenBytes();

  read(): Usage {
    return {
      seconds: (performance.now() - this.#start) / 1000,
      cpuMicros: cpuMicros() - this.#cpu,
      writtenBytes: writtenBytes() - this.#written,
    };
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the process rests, and answers what the stopwatch showed at the end of its last busy moment. */
export async function untilRest(
  stopwatch: Stopwatch,
  isBusy: () => boolean | Promise<boolean> = () => false,
): Promise<Usage> {
  let last = stopwatch.read();
  for (let quiet = 0; quiet < QUIET_WINDOWS; ) {
    const before = cpuMicros();
    await pause(WINDOW_MS);
    const worked = await isBusy();
    if (worked || cpuMicros() - before > QUIET_SHARE * WINDOW_MS * 1000) {
      quiet = 0;
      last = stopwatch.read();
    } else quiet++;
  }
  return last;
}

/** Bytes that the files of a directory take on disk. */
export function diskBytes(directory: string): number {
  let bytes = 0;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    // blocks, not lengths: a preallocated or mapped file may be longer than what it takes
    bytes += entry.isDirectory() ? diskBytes(path) : (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
  }
  return bytes;
}

/** The value below which `share` of the numbers lie. Sorts them. */
export function percentile(numbers: Float64Array, share: number): number {
  numbers.sort();
  return numbers[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? Number.NaN;
}
