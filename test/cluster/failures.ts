/** Failures of data calls: all of them in a log, their number, and the last of them for messages. */
import { createWriteStream, type WriteStream } from 'node:fs';

const MAX_KEPT = 200;

export class Failures {
  count = 0;
  readonly #kept: { readonly atMs: number; readonly text: string }[] = [];
  readonly #log: WriteStream;

  constructor(logFile: string) {
    this.#log = createWriteStream(logFile);
  }

  note(text: string): void {
    this.count++;
    this.#kept.push({ atMs: performance.now(), text });
    if (this.#kept.length > MAX_KEPT) this.#kept.shift();
    this.#log.write(`${new Date().toISOString()} ${text}\n`);
  }

  /** Those since then, as far as they are kept. */
  since(sinceMs: number): readonly string[] {
    return this.#kept.filter(({ atMs }) => atMs >= sinceMs).map(({ text }) => text);
  }
}
