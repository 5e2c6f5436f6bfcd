/** Draws calls that contend on a few rows. One seed draws one sequence, as far as the same values are seen. */
import { SeededRandom } from '../../src/env/index.ts';
import type { Call } from './calls.ts';
import type { Change, RowWork } from './row.ts';

/** Percent of the calls that are on the first rows. */
const HOT_CALLS = 30;
const HOT_ROWS = 2;
/** Percent of the read-modify-writes that append. The order of appends shows, so many are slow to check. */
const APPENDS = 30;
const MAX_AMOUNT = 5;
const MAX_CANCELLED_AFTER = 6;
/** Per thousand calls. */
const CANCELLED = 4;
const OPERATORS = 3;

/** Calls by their share, in percent. */
const METHODS = {
  readRow: 22,
  readRows: 6,
  scan: 4,
  mutateRow: 22,
  mutateRows: 10,
  readModifyWriteRow: 18,
  checkAndMutateRow: 18,
} satisfies Partial<Record<Call['method'], number>>;
type DataMethod = keyof typeof METHODS;

export class Draw {
  readonly rows: readonly string[];
  /** All calls on one row are on this one, if it is set. */
  focus: string | undefined;
  readonly #random: SeededRandom;
  /** By row: the value of f:a that was seen last. */
  readonly #seen = new Map<string, string>();
  #values = 0;

  /** `suffix`: of the names of all rows. */
  constructor(rows: number, seed: number, suffix = '') {
    this.rows = Array.from({ length: rows }, (_, i) => `row-${String(i).padStart(2, '0')}${suffix}`);
    this.#random = new SeededRandom(seed);
  }

  /** A whole number from 0 up to and without `limit`. */
  below(limit: number): number {
    return Math.floor(this.#random.float() * limit);
  }

  saw(row: string, value: string): void {
    this.#seen.set(row, value);
  }

  call(): Call {
    if (this.below(1000) < OPERATORS) return this.#operatorsCall();
    const call = this.#dataCall(this.#method());
    return this.below(1000) < CANCELLED ? { ...call, cancelAfter: this.below(MAX_CANCELLED_AFTER) } : call;
  }

  #operatorsCall(): Call {
    const methods = ['flush', 'flush', 'flush', 'compact', 'split', 'merge'] as const;
    return {
      method: methods[this.below(methods.length)]!,
      rows: [],
      at: this.rows[1 + this.below(this.rows.length - 1)],
    };
  }

  #method(): DataMethod {
    let at = this.below(100);
    for (const [method, share] of Object.entries(METHODS)) if ((at -= share) < 0) return method as DataMethod;
    return 'readRow';
  }

  #dataCall(method: DataMethod): Call {
    const row = this.#row();
    switch (method) {
      case 'readRow':
        return { method, rows: [{ row, work: { kind: 'read' } }] };
      case 'readRows':
        return { method, rows: this.#someRows().map((name) => ({ row: name, work: { kind: 'read' } })) };
      case 'scan':
        return { method, rows: this.rows.map((name) => ({ row: name, work: { kind: 'read' } })) };
      case 'mutateRow':
        return { method, rows: [{ row, work: this.#mutation() }] };
      case 'mutateRows':
        return { method, rows: this.#someRows().map((name) => ({ row: name, work: this.#mutation() })) };
      case 'readModifyWriteRow': {
        const suffix = this.below(100) < APPENDS ? `${this.#value()}.` : undefined;
        return {
          method,
          rows: [{ row, work: { kind: 'readModifyWrite', amount: 1 + this.below(MAX_AMOUNT), suffix } }],
        };
      }
      case 'checkAndMutateRow':
        return { method, rows: [{ row, work: this.#check(row) }] };
    }
  }

  #row(): string {
    const row = this.rows[this.below(this.below(100) < HOT_CALLS ? HOT_ROWS : this.rows.length)]!;
    return this.focus ?? row;
  }

  /** Two to six different rows. */
  #someRows(): readonly string[] {
    const rows = new Set<string>();
    for (let left = 2 + this.below(5); left > 0; left--) rows.add(this.#row());
    return [...rows];
  }

  #mutation(): RowWork {
    const kind = this.below(50) === 0 ? 'mutateInvalidly' : 'mutate';
    const value = this.#value();
    const both: Change[] = [
      { kind: 'set', column: 'f:a', value },
      { kind: 'set', column: 'f:b', value },
    ];
    switch (this.below(10)) {
      case 0:
        return { kind, changes: [{ kind: 'deleteRow' }] };
      case 1:
        return { kind, changes: [{ kind: 'deleteRow' }, ...both] };
      case 2:
        return { kind, changes: [{ kind: 'deleteFamily', family: 'g' }] };
      case 3:
        return { kind, changes: [{ kind: 'deleteColumn', column: 'f:b' }] };
      case 4:
        return { kind, changes: [{ kind: 'deleteFamily', family: 'f' }, both[0]!] };
      case 5:
        return { kind, changes: [both[1]!, { kind: 'deleteColumn', column: 'g:t' }] };
      default:
        return { kind, changes: both };
    }
  }

  #check(row: string): RowWork {
    const seen = this.#seen.get(row);
    const expected = seen === undefined || seen === '' || this.below(4) === 0 ? undefined : seen;
    const value = this.#value();
    const set: Change = { kind: 'set', column: 'f:a', value };
    const whenTrue: Change[] =
      this.below(4) === 0 ? [{ kind: 'deleteRow' }] : [set, { kind: 'set', column: 'f:b', value }];
    const whenFalse: Change[] = this.below(2) === 0 ? [] : [set];
    return { kind: 'checkAndMutate', expected, whenTrue, whenFalse };
  }

  /** A value that no other call writes. */
  #value(): string {
    return (this.#values++).toString(36);
  }
}
