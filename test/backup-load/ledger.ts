/**
 * What was written to the rows of a table under load, and the judge of a backup of it. Each write of a row has the next
 * number of that row and sets all cells to it, or deletes the row. So a row of a backup shows the write that it is of:
 * a write that was acknowledged before the backup began must be in it, one that began after its answer must not, and
 * cells of different writes are a torn row.
 */
import type { Row } from '../../src/embedded/index.ts';
import { RowMutation } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';

/** Two families, so that a row lies in the files of two locality groups. */
export const COLUMNS = ['a:one', 'a:two', 'b:three'] as const;
const FILLER_BYTES = 300;
/** Every so many writes of a row delete it. */
const DELETES_EVERY = 9;

/** The writes of each row at an instant: the greatest number that is surely there, or that may be there. */
export type Numbers = Uint32Array;

/** What a backup may show of each row: a write from `least` to `most`. */
export interface Bounds {
  readonly least: Numbers;
  readonly most: Numbers;
}

export class Ledger {
  readonly #keys: readonly string[];
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #begun: Numbers;
  readonly #acknowledged: Numbers;
  /** Bytes that do not shrink by compression. */
  readonly #filler: string;

  constructor(rows: number) {
    this.#keys = Array.from({ length: rows }, (_, row) => `row-${String(row).padStart(6, '0')}`);
    this.#indexes = new Map(this.#keys.map((key, row) => [key, row]));
    [this.#begun, this.#acknowledged] = [new Uint32Array(rows), new Uint32Array(rows)];
    const random = new SeededRandom(1);
    this.#filler = Buffer.from(Array.from({ length: 4096 }, () => Math.floor(random.float() * 256))).toString('base64');
  }

  /** The next write of a row. Whoever begins it ends it, or leaves it in doubt, before the row's next one. */
  begin(row: number): RowMutation {
    const number = ++this.#begun[row]!;
    const mutation = new RowMutation(this.#keys[row]!);
    if (isDeletion(number)) return mutation.deleteRow();
    for (const column of COLUMNS) mutation.set(column, this.#valueOf(row, number), BigInt(number) * 1000n);
    return mutation;
  }

  acknowledge(row: number): void {
    this.#acknowledged[row] = this.#begun[row]!;
  }

  get acknowledged(): Numbers {
    return this.#acknowledged.slice();
  }

  get begun(): Numbers {
    return this.#begun.slice();
  }

  /** What is wrong with the rows of a backup, a line each; empty where nothing is. */
  judge(rows: readonly Row[], { least, most }: Bounds): string[] {
    const faults: string[] = [];
    const seen = new Set<number>();
    for (const row of rows) {
      const index = this.#indexes.get(row.key.toString());
      if (index === undefined || seen.has(index)) {
        faults.push(`${row.key.toString()} is no row, or is there twice`);
        continue;
      }
      seen.add(index);
      const fault = this.#faultOf(row, index, [least[index]!, most[index]!]);
      if (fault !== undefined) faults.push(`${this.#keys[index]}: ${fault}`);
    }
    for (const [index, key] of this.#keys.entries())
      if (!seen.has(index) && !mayBeAbsent(least[index]!, most[index]!))
        faults.push(`${key}: is lost; it must show one of the writes ${least[index]} to ${most[index]}`);
    return faults;
  }

  #faultOf(row: Row, index: number, [least, most]: readonly [number, number]): string | undefined {
    const shown = COLUMNS.map((column) => row.get(column)?.text);
    const number = Number(shown[0]?.split(':')[0]);
    if (shown.some((value) => value === undefined || value !== this.#valueOf(index, number)))
      return `is torn: it shows ${shown.map((value) => value?.split(':')[0] ?? 'nothing').join(', ')}`;
    if (number < least)
      return `shows write ${number}, and not ${least}, which was acknowledged before the backup began`;
    if (number > most) return `shows write ${number}, which began after the backup was answered, when ${most} had`;
    return undefined;
  }

  #valueOf(row: number, number: number): string {
    const at = (row * 31 + number * 7) % (this.#filler.length - FILLER_BYTES);
    return `${number}:${this.#filler.slice(at, at + FILLER_BYTES)}`;
  }
}

function isDeletion(number: number): boolean {
  return number % DELETES_EVERY === 0;
}

/** True where the row was not written, or one of the writes has deleted it. */
function mayBeAbsent(least: number, most: number): boolean {
  for (let number = least; number <= most; number++) if (number === 0 || isDeletion(number)) return true;
  return false;
}
