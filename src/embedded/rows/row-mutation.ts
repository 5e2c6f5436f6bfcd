/**
 * RowMutation: a series of Set and Delete on one row, applied atomically by `Table.apply` (paper section 3, figure 2).
 *
 *   const r1 = new RowMutation('com.cnn.www');
 *   r1.set('anchor:www.c-span.org', 'CNN');
 *   r1.delete('anchor:www.abc.com');
 *   await table.apply(r1);
 */
import {
  type ByteString,
  checkOptions,
  describeValue,
  int64,
  invalidArgument,
  isInt64,
  jsonField,
  type OptionTable,
  toBytes,
} from '../../base/index.ts';
import { type Idempotency, type Mutation, setCell, type TimestampRange } from '../../model/index.ts';
import {
  asked,
  type Bytes,
  type Column,
  columnOf,
  isBytes,
  keyOf,
  textOf,
  type Timestamp,
  timestampOf,
  type Value,
  valueOf,
} from '../values/input.ts';
import { jsonStep, shownStep } from './mutation-steps.ts';
import { INSPECT, type Inspect, type InspectOptions, inspected, readable } from '../values/show.ts';

/** Versions with since <= timestamp < until; a side left out is open. */
export interface TimeRange {
  readonly since?: Timestamp;
  readonly until?: Timestamp;
}

const TIME_RANGE = { since: 'bound', until: 'bound' } satisfies OptionTable<TimeRange>;

let addSteps: (to: Mutations, steps: readonly Mutation[]) => void;

/** The steps of a mutation without their row: what `checkAndMutate` takes for each outcome. */
export class Mutations {
  readonly #mutations: Mutation[] = [];

  static {
    addSteps = (to, steps) => {
      for (const step of steps) to.#mutations.push(step);
    };
  }

  /** The steps so far, in order. */
  get mutations(): readonly Mutation[] {
    return this.#mutations;
  }

  /** Sets a cell. Without a timestamp it gets the database's time. */
  set(column: Column, value: Value, timestamp?: Timestamp): this {
    const { family, qualifier } = columnOf(column);
    this.#mutations.push(
      setCell(family, qualifier, timestamp === undefined ? undefined : timestampOf(timestamp), valueOf(value)),
    );
    return this;
  }

  /**
   * Adds an input to a cell of an aggregate family: an int64 to sum, min and max, text or bytes to hll; costs no read.
   * Timestamp default: 0, one cell for all time.
   */
  add(column: Column, input: number | bigint | Bytes, timestamp: Timestamp = 0): this {
    const isText = typeof input === 'string' || isBytes(input);
    if (!isText && !isInt64(input)) {
      const wrong = describeValue(input);
      throw invalidArgument(`an aggregate's input must be text, bytes or a whole number within int64, not ${wrong}`);
    }
    this.#mutations.push({
      kind: 'addToCell',
      ...columnOf(column),
      input: isText ? valueOf(input) : int64(input),
      timestamp: timestampOf(timestamp),
    });
    return this;
  }

  /** Merges the state of an aggregate, as a read of such a cell answers it, into another cell of its kind. */
  merge(column: Column, state: Uint8Array, timestamp: Timestamp = 0): this {
    this.#mutations.push({
      kind: 'mergeToCell',
      ...columnOf(column),
      state: valueOf(state),
      timestamp: timestampOf(timestamp),
    });
    return this;
  }

  /**
   * Deletes a column's versions: all, or those in the range. INVALID_ARGUMENT for a range that is undefined or has
   * neither side: all versions are deleted where no range is given at all.
   */
  delete(column: Column, ...versions: [] | [range: TimeRange]): this {
    const range = versions.length === 0 ? undefined : asked(() => rangeOf(versions[0]));
    this.#mutations.push({ kind: 'deleteFromColumn', ...columnOf(column), ...(range ? { range } : {}) });
    return this;
  }

  deleteFamily(family: string): this {
    this.#mutations.push({ kind: 'deleteFromFamily', family: textOf(family, 'a family') });
    return this;
  }

  deleteRow(): this {
    this.#mutations.push({ kind: 'deleteFromRow' });
    return this;
  }

  /** `{ mutations }`: each with the method that made it as its `kind`, and what that was given. */
  toJSON(): object {
    return { mutations: this.#mutations.map(jsonStep) };
  }

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    return inspected('Mutations', { mutations: this.#mutations.map(shownStep) }, depth, options, inspect);
  }
}

export class RowMutation extends Mutations {
  readonly row: ByteString;
  #idempotency: Idempotency | undefined;

  constructor(row: Bytes) {
    super();
    this.row = keyOf(row, 'a row key');
  }

  /**
   * The mutation is made once, however often it is applied with this token within 15 minutes: adding to an aggregate
   * can then be tried again when its outcome is unknown. 8 to 1024 bytes, different for each mutation of the row.
   * `firstSent`: when the first attempt was made; one that comes more than 15 minutes later is FAILED_PRECONDITION.
   */
  withToken(token: Bytes, firstSent?: Timestamp): this {
    const startMs = firstSent === undefined ? undefined : Number(timestampOf(firstSent)) / 1000;
    this.#idempotency = { token: asked(() => keyOf(token, 'a token')), startMs };
    return this;
  }

  get idempotency(): Idempotency | undefined {
    return this.#idempotency;
  }

  /** `{ row, mutations }`, and `token` if there is one; what is not UTF-8 is in `rowBase64` and `tokenBase64`. */
  override toJSON(): object {
    const token = this.#idempotency && jsonField('token', toBytes(this.#idempotency.token));
    return { ...jsonField('row', toBytes(this.row)), ...super.toJSON(), ...token };
  }

  override [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    const token = this.#idempotency && { token: readable(toBytes(this.#idempotency.token)) };
    const fields = { row: readable(toBytes(this.row)), mutations: this.mutations.map(shownStep), ...token };
    return inspected('RowMutation', fields, depth, options, inspect);
  }
}

/** A mutation of steps that came from the service. */
export function rowMutationOf(row: ByteString, steps: readonly Mutation[]): RowMutation {
  const mutation = new RowMutation(toBytes(row));
  addSteps(mutation, steps);
  return mutation;
}

/** True for an object that the constructor made. One that only has the prototype throws when it is read. */
export function isRowMutation(value: unknown): value is RowMutation {
  return value instanceof RowMutation && Object.hasOwn(value, 'row');
}

function rangeOf(range: TimeRange): TimestampRange {
  checkOptions(range, TIME_RANGE, 'a range of versions to delete');
  const { since, until } = range;
  if (since === undefined && until === undefined) {
    throw invalidArgument(
      'a range of versions to delete must have since, until or both; give no range to delete all versions',
    );
  }
  return {
    ...(since === undefined ? {} : { start: timestampOf(since, 'since') }),
    ...(until === undefined ? {} : { end: timestampOf(until, 'until') }),
  };
}
