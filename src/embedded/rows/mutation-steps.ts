/** The steps of a mutation as they are shown: each under the name of the method of `Mutations` that made it. */
import { type ByteString, type Int64, jsonField, toBytes, toText } from '../../base/index.ts';
import type { Mutation, TimestampRange } from '../../model/index.ts';
import { readable, readableTime } from '../values/show.ts';

const METHODS: Readonly<Record<Mutation['kind'], string>> = {
  setCell: 'set',
  addToCell: 'add',
  mergeToCell: 'merge',
  deleteFromColumn: 'delete',
  deleteFromFamily: 'deleteFamily',
  deleteFromRow: 'deleteRow',
};

/** The formats of the parts of a step. */
interface Style {
  readonly bytes: (name: string, bytes: Uint8Array) => object;
  readonly column: (family: string, qualifier: ByteString) => object;
  readonly int: (value: Int64) => unknown;
  readonly time: (time: Int64) => unknown;
}

const JSON_STYLE: Style = {
  bytes: jsonField,
  column: (family, qualifier) => ({ family, ...jsonField('qualifier', toBytes(qualifier)) }),
  int: String,
  time: String,
};

const SHOWN: Style = {
  bytes: (name, bytes) => ({ [name]: readable(bytes) }),
  column: (family, qualifier) => {
    const shown = readable(toBytes(qualifier));
    return typeof shown === 'string' ? { column: `${family}:${toText(qualifier)}` } : { family, qualifier: shown };
  },
  int: (value) => value,
  time: readableTime,
};

export function jsonStep(step: Mutation): object {
  return stepIn(JSON_STYLE, step);
}

export function shownStep(step: Mutation): object {
  return stepIn(SHOWN, step);
}

function stepIn({ bytes, column, int, time }: Style, step: Mutation): object {
  const kind = METHODS[step.kind];
  switch (step.kind) {
    case 'deleteFromRow':
      return { kind };
    case 'deleteFromFamily':
      return { kind, family: step.family };
    case 'deleteFromColumn':
      return { kind, ...column(step.family, step.qualifier), ...rangeIn(time, step.range) };
    case 'setCell':
      return {
        kind,
        ...column(step.family, step.qualifier),
        ...timeIn(time, step.timestamp),
        ...bytes('value', step.value),
      };
    case 'addToCell': {
      const input = step.input instanceof Uint8Array ? bytes('input', step.input) : { input: int(step.input) };
      return { kind, ...column(step.family, step.qualifier), ...timeIn(time, step.timestamp), ...input };
    }
    case 'mergeToCell': {
      const state = step.state === undefined ? {} : bytes('state', step.state);
      return { kind, ...column(step.family, step.qualifier), ...timeIn(time, step.timestamp), ...state };
    }
  }
}

function timeIn(time: Style['time'], timestamp: Int64 | undefined): object {
  return timestamp === undefined ? {} : { timestamp: time(timestamp) };
}

function rangeIn(time: Style['time'], range: TimestampRange | undefined): object {
  const { start, end } = range ?? {};
  return { ...(start === undefined ? {} : { since: time(start) }), ...(end === undefined ? {} : { until: time(end) }) };
}
