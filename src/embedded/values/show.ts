/**
 * The output of the library's objects by console.log (Node's `util.inspect`, which other runtimes follow) and by
 * JSON.stringify. Fields have the names of the properties and methods that return them.
 *
 * JSON has everything, each field of one type: int64 as a decimal text, bytes in `NAME` if they are UTF-8 and otherwise
 * in `NAMEBase64`, as on the command line. Inspected output is for people, so long values are cut.
 */
import { asBuffer, type Int64, toBigInt, utf8Text } from '../../base/index.ts';

/** The name of the method that `util.inspect` calls. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

export type Inspect = (value: unknown, options?: object) => string;

export interface InspectOptions {
  readonly depth?: number | null;
  readonly maxStringLength?: number | null;
  readonly maxArrayLength?: number | null;
}

/** Longer texts are cut when they are inspected. */
const MAX_CHARS = 200;
/** Control characters but tab, line feed and carriage return: bytes rather than text. */
const NOT_SHOWN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

/** `NAME { … }`, whatever depth is left, so that a list of rows shows their cells. */
export function inspected(
  name: string,
  fields: object,
  depth: number,
  options: InspectOptions,
  inspect: Inspect,
): string {
  if (depth < 0) return `[${name}]`;
  const { maxStringLength } = options;
  const inner = {
    ...options,
    depth: 4,
    maxStringLength: Math.min(maxStringLength ?? Number.POSITIVE_INFINITY, MAX_CHARS),
  };
  return `${name} ${inspect(fields, inner)}`;
}

/** For people: text if it is readable, otherwise bytes. */
export function readable(bytes: Uint8Array): string | Buffer {
  const text = utf8Text(bytes);
  return text === undefined || NOT_SHOWN.test(text) ? asBuffer(bytes) : text;
}

/** For people: a text that is no longer than values that are inspected. */
export function cut(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text;
}

/** For people: microseconds, and the time that they are. */
export function readableTime(timestamp: Int64): object {
  return new ShownTime(toBigInt(timestamp));
}

/** The last millisecond that a Date writes with four digits of a year. */
const LAST_MS = 253_402_300_799_999n;

class ShownTime {
  readonly #micros: bigint;

  constructor(micros: bigint) {
    this.#micros = micros;
  }

  [INSPECT](_depth: number, options: InspectOptions, inspect: Inspect): string {
    const micros = this.#micros;
    const shown = inspect(micros, options);
    if (micros <= 0n || micros / 1000n > LAST_MS) return shown;
    // biome-ignore lint/style/noRestrictedGlobals: a time of a cell is written out, no clock is read
    const seconds = new Date(Number(micros / 1000n)).toISOString().slice(0, -5);
    return `${shown} (${seconds}.${String(micros % 1_000_000n).padStart(6, '0')}Z)`;
  }
}
