/**
 * A load's progress in words: on a terminal one line that is written over, elsewhere a line every second.
 */
import type { LoadCounts, LoadTotal } from './loader.ts';

export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const TERMINAL_EVERY_MS = 100;
const LOG_EVERY_MS = 1000;

export class Progress {
  readonly #output: ProgressOutput;
  readonly #nowMs: () => number;
  readonly #startMs: number;
  #toldMs: number;

  constructor(output: ProgressOutput, nowMs: () => number = () => performance.now()) {
    this.#output = output;
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
    this.#toldMs = this.#startMs;
  }

  update(counts: Readonly<LoadCounts>, total: LoadTotal): void {
    const now = this.#nowMs();
    if (now - this.#toldMs < (this.#output.isTTY ? TERMINAL_EVERY_MS : LOG_EVERY_MS)) return;
    this.#toldMs = now;
    const line = this.#line(counts, total, now - this.#startMs);
    this.#output.write(this.#output.isTTY ? `\r\x1b[2K${line}` : `${line}\n`);
  }

  /** Clears the line; gives the seconds since the start. */
  finish(): number {
    if (this.#output.isTTY) this.#output.write('\r\x1b[2K');
    return (this.#nowMs() - this.#startMs) / 1000;
  }

  #line(counts: Readonly<LoadCounts>, total: LoadTotal, elapsedMs: number): string {
    const done = counts.pages + counts.tooLarge;
    const percent = total.pages === 0 ? 100 : Math.floor((100 * done) / total.pages);
    const pagesPerSecond = Math.round((1000 * done) / Math.max(elapsedMs, 1));
    const bytes = `${megabytes(counts.bytes)} of ${megabytes(total.bytes)}`;
    return `${String(percent).padStart(3)} %  ${done} of ${total.pages} pages  ${bytes}  ${pagesPerSecond} pages/s`;
  }
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
