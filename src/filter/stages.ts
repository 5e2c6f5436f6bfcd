/**
 * The stages of compiled filters: each takes the cells of a row one by one and pushes those that pass to the next.
 *
 * Invariants: cells reach every stage in the row's order (family, qualifier, timestamp descending), copies of a cell
 * one after another. `push` returns a hint about later cells that enter THIS STAGE: they would yield no output and
 * change nothing that matters. So a stage returns its next stage's hint, unless it counts over columns; and a hint
 * stays true for the rest of its column or row.
 *
 * Hot path of every filtered read: only the stages that change or hold a cell allocate.
 */
import { type ByteString, compareBytes, type Int64, toBytes } from '../base/index.ts';
import type { Cell } from '../model/index.ts';
import type { Bound, RowFilter } from './filter.ts';
import { Hint } from './program.ts';
import type { Question } from './questions.ts';

export interface Stage {
  push(cell: Cell): Hint;
}

/** Has state that belongs to one row. */
export interface RowState {
  startRow(): void;
}

const NO_BYTES: Uint8Array = new Uint8Array(0);
const NO_CELLS: Cell[] = [];

/** The output of the run. The run sets `out` before anything is pushed. */
export class Output implements Stage {
  out = NO_CELLS;

  push(cell: Cell): Hint {
    this.out.push(cell);
    return Hint.next;
  }
}

/** Sends cells to the output, past all later filters. */
export class Sink implements Stage {
  readonly #output: Stage;

  constructor(output: Stage) {
    this.#output = output;
  }

  push(cell: Cell): Hint {
    this.#output.push(cell);
    return Hint.next;
  }
}

export class Block implements Stage {
  push(): Hint {
    return Hint.skipRow;
  }
}

/** Open or closed for a whole row. */
export abstract class Gate implements Stage {
  readonly #next: Stage;
  open = false;

  constructor(next: Stage) {
    this.#next = next;
  }

  abstract startRow(row: ByteString): void;

  push(cell: Cell): Hint {
    return this.open ? this.#next.push(cell) : Hint.skipRow;
  }
}

export class RowKeyGate extends Gate {
  readonly #question: Question<ByteString>;

  constructor(question: Question<ByteString>, next: Stage) {
    super(next);
    this.#question = question;
  }

  startRow(row: ByteString): void {
    this.open = this.#question.of(row);
  }
}

export class SampleGate extends Gate {
  readonly #probability: number;
  readonly #random: { float(): number };

  constructor(probability: number, random: { float(): number }, next: Stage) {
    super(next);
    this.#probability = probability;
    this.#random = random;
  }

  startRow(): void {
    this.open = this.#random.float() < this.#probability;
  }
}

export class FamilyStage implements Stage {
  readonly #question: Question<string>;
  readonly #next: Stage;
  #family: string | undefined;
  #passes = false;

  constructor(question: Question<string>, next: Stage) {
    this.#question = question;
    this.#next = next;
  }

  push(cell: Cell): Hint {
    if (cell.family !== this.#family) {
      this.#family = cell.family;
      this.#passes = this.#question.of(cell.family);
    }
    return this.#passes ? this.#next.push(cell) : Hint.skipColumn;
  }
}

export class QualifierStage implements Stage {
  readonly #question: Question<ByteString>;
  readonly #next: Stage;
  #qualifier: ByteString | undefined;
  #passes = false;

  constructor(question: Question<ByteString>, next: Stage) {
    this.#question = question;
    this.#next = next;
  }

  push(cell: Cell): Hint {
    if (cell.qualifier !== this.#qualifier) {
      this.#qualifier = cell.qualifier;
      this.#passes = this.#question.of(cell.qualifier);
    }
    return this.#passes ? this.#next.push(cell) : Hint.skipColumn;
  }
}

export class ColumnRangeStage implements Stage {
  readonly #family: string;
  readonly #start: Bound | undefined;
  readonly #end: Bound | undefined;
  readonly #next: Stage;

  constructor(filter: RowFilter & { kind: 'columnRange' }, next: Stage) {
    this.#family = filter.family;
    this.#start = filter.start;
    this.#end = filter.end;
    this.#next = next;
  }

  push(cell: Cell): Hint {
    const { family, qualifier } = cell;
    if (family !== this.#family) return family > this.#family ? Hint.skipRow : Hint.skipColumn;
    const start = this.#start;
    if (start && (qualifier < start.value || (!start.closed && qualifier === start.value))) return Hint.skipColumn;
    const end = this.#end;
    if (end && (qualifier > end.value || (!end.closed && qualifier === end.value))) return Hint.skipRow;
    return this.#next.push(cell);
  }
}

export class TimestampStage implements Stage {
  readonly #start: Int64 | undefined;
  readonly #end: Int64 | undefined;
  readonly #next: Stage;

  constructor(filter: RowFilter & { kind: 'timestampRange' }, next: Stage) {
    this.#start = filter.range.start;
    this.#end = filter.range.end;
    this.#next = next;
  }

  push(cell: Cell): Hint {
    // versions come newest first: older ones follow a cell that is too new, none that pass follow one that is too old
    if (this.#end !== undefined && cell.timestamp >= this.#end) return Hint.next;
    if (this.#start !== undefined && cell.timestamp < this.#start) return Hint.skipColumn;
    return this.#next.push(cell);
  }
}

export class ValueRegexStage implements Stage {
  readonly #question: Question<Uint8Array>;
  readonly #next: Stage;

  constructor(question: Question<Uint8Array>, next: Stage) {
    this.#question = question;
    this.#next = next;
  }

  push(cell: Cell): Hint {
    return this.#question.of(cell.value) ? this.#next.push(cell) : Hint.next;
  }
}

export class ValueRangeStage implements Stage {
  readonly #start: Buffer | undefined;
  readonly #end: Buffer | undefined;
  /** The least result of comparing with the start that passes, the greatest with the end. */
  readonly #startLeast: number;
  readonly #endMost: number;
  readonly #next: Stage;
  #value: Uint8Array | undefined;
  #passes = false;

  constructor(filter: RowFilter & { kind: 'valueRange' }, next: Stage) {
    this.#start = filter.start && toBytes(filter.start.value);
    this.#end = filter.end && toBytes(filter.end.value);
    this.#startLeast = filter.start?.closed ? 0 : 1;
    this.#endMost = filter.end?.closed ? 0 : -1;
    this.#next = next;
  }

  push(cell: Cell): Hint {
    const value = cell.value;
    if (value !== this.#value) {
      this.#value = value;
      this.#passes = this.#holds(value);
    }
    return this.#passes ? this.#next.push(cell) : Hint.next;
  }

  #holds(value: Uint8Array): boolean {
    if (this.#start && compareBytes(value, this.#start) < this.#startLeast) return false;
    return !this.#end || compareBytes(value, this.#end) <= this.#endMost;
  }
}

/** Passes values of the mask's length that have every bit of it. */
export class BitmaskStage implements Stage {
  readonly #mask: Buffer;
  readonly #next: Stage;
  #value: Uint8Array | undefined;
  #passes = false;

  constructor(mask: ByteString, next: Stage) {
    this.#mask = toBytes(mask);
    this.#next = next;
  }

  push(cell: Cell): Hint {
    const value = cell.value;
    // a stripped value has another length: it changes nothing that is known of the others
    if (value.length !== this.#mask.length) return Hint.next;
    if (value !== this.#value) {
      this.#value = value;
      this.#passes = this.#holds(value);
    }
    return this.#passes ? this.#next.push(cell) : Hint.next;
  }

  #holds(value: Uint8Array): boolean {
    const mask = this.#mask;
    for (let i = 0; i < mask.length; i++) {
      const bits = mask[i]!;
      if ((value[i]! & bits) !== bits) return false;
    }
    return true;
  }
}

export class RowOffset implements Stage, RowState {
  readonly #cells: number;
  readonly #next: Stage;
  #passed = 0;

  constructor(cells: number, next: Stage) {
    this.#cells = cells;
    this.#next = next;
  }

  startRow(): void {
    this.#passed = 0;
  }

  push(cell: Cell): Hint {
    if (this.#passed < this.#cells) {
      this.#passed++;
      return Hint.next;
    }
    return this.#next.push(cell);
  }
}

export class RowLimit implements Stage, RowState {
  readonly #cells: number;
  readonly #next: Stage;
  #left = 0;

  constructor(cells: number, next: Stage) {
    this.#cells = cells;
    this.#next = next;
  }

  startRow(): void {
    this.#left = this.#cells;
  }

  push(cell: Cell): Hint {
    if (this.#left === 0) return Hint.skipRow;
    this.#left--;
    const hint = this.#next.push(cell);
    // cells of this column that the next stage would drop still count here
    return this.#left === 0 || hint === Hint.skipRow ? Hint.skipRow : Hint.next;
  }
}

export class ColumnLimit implements Stage, RowState {
  readonly #cells: number;
  readonly #next: Stage;
  #family = '';
  #qualifier: ByteString = '';
  #left = 0;

  constructor(cells: number, next: Stage) {
    this.#cells = cells;
    this.#next = next;
  }

  /** No family has the empty name, so the first cell of a row begins a column. */
  startRow(): void {
    this.#family = '';
  }

  push(cell: Cell): Hint {
    if (cell.qualifier !== this.#qualifier || cell.family !== this.#family) {
      this.#qualifier = cell.qualifier;
      this.#family = cell.family;
      this.#left = this.#cells;
    }
    if (this.#left === 0) return Hint.skipColumn;
    this.#left--;
    const hint = this.#next.push(cell);
    return this.#left === 0 && hint === Hint.next ? Hint.skipColumn : hint;
  }
}

export class StripValue implements Stage {
  readonly #next: Stage;

  constructor(next: Stage) {
    this.#next = next;
  }

  push(cell: Cell): Hint {
    const { family, qualifier, timestamp, labels } = cell;
    return this.#next.push(
      labels
        ? { family, qualifier, timestamp, value: NO_BYTES, labels }
        : { family, qualifier, timestamp, value: NO_BYTES },
    );
  }
}

export class ApplyLabel implements Stage {
  readonly #labels: readonly string[];
  readonly #next: Stage;

  constructor(label: string, next: Stage) {
    this.#labels = Object.freeze([label]);
    this.#next = next;
  }

  push(cell: Cell): Hint {
    const { family, qualifier, timestamp, value } = cell;
    return this.#next.push({ family, qualifier, timestamp, value, labels: this.#labels });
  }
}

/** An interleave whose branches yield the copies of each cell immediately: the output is in order. */
export class Fanout implements Stage {
  readonly #branches: readonly Stage[];

  constructor(branches: readonly Stage[]) {
    this.#branches = branches;
  }

  push(cell: Cell): Hint {
    let least: Hint = Hint.skipRow;
    for (const branch of this.#branches) {
      const hint = branch.push(cell);
      if (hint < least) least = hint;
    }
    return least;
  }
}
