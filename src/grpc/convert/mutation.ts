/**
 * google.bigtable.v2.Mutation, ReadModifyWriteRule and the Value forms of aggregates to the model and back.
 *
 * Timestamps: -1 in a SetCell is the server's time (model: undefined). TimestampOrigin CLIENT_AUTO_GENERATED asks the
 * server to truncate to the table's granularity; the decoder of requests (codec/mutation-reader.ts) does that, since
 * only it can read the table's schema.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type ByteString,
  fromBytes,
  int64,
  type Int64,
  invalidArgument,
  quote,
  toBigInt,
  toBytes,
  toText,
  utf8,
} from '../../base/index.ts';
import type { Mutation, ReadModifyWriteRule } from '../../model/index.ts';
import { SERVER_TIME } from './set-cell-timestamp.ts';
import {
  type Mutation as MutationMessage,
  type Mutation_AddToCell,
  type Mutation_MergeToCell,
  MutationSchema,
  type ReadModifyWriteRule as RuleMessage,
  ReadModifyWriteRuleSchema,
  type Value,
  ValueSchema,
} from '../generated/google/bigtable/v2/data_pb.ts';
import { timestampRangeMessage, timestampRangeOf } from './filter.ts';

export function mutationOf(message: MutationMessage): Mutation {
  const { mutation } = message;
  switch (mutation.case) {
    case 'setCell': {
      const { familyName, columnQualifier, timestampMicros, value } = mutation.value;
      const timestamp = int64(timestampMicros);
      return {
        kind: 'setCell',
        family: utf8(familyName),
        qualifier: fromBytes(columnQualifier),
        timestamp: timestamp === SERVER_TIME ? undefined : timestamp,
        value,
      };
    }
    case 'addToCell':
      return {
        kind: 'addToCell',
        ...aggregateCell('add_to_cell', mutation.value),
        input: inputOf(mutation.value.input),
      };
    case 'mergeToCell':
      return {
        kind: 'mergeToCell',
        ...aggregateCell('merge_to_cell', mutation.value),
        state: stateOf(mutation.value.input),
      };
    case 'deleteFromColumn': {
      const { familyName, columnQualifier, timeRange } = mutation.value;
      const range = timeRange && timestampRangeOf(timeRange);
      if (range?.end !== undefined && range.start !== undefined && range.start >= range.end) {
        throw invalidArgument(`delete_from_column: time range [${range.start}, ${range.end}) holds nothing`, {
          field: 'delete_from_column.time_range',
        });
      }
      return { kind: 'deleteFromColumn', family: utf8(familyName), qualifier: fromBytes(columnQualifier), range };
    }
    case 'deleteFromFamily':
      return { kind: 'deleteFromFamily', family: utf8(mutation.value.familyName) };
    case 'deleteFromRow':
      return { kind: 'deleteFromRow' };
    default:
      throw invalidArgument('a Mutation must be one of the six kinds of google.bigtable.v2.Mutation', {
        field: 'mutations',
      });
  }
}

function aggregateCell(
  name: string,
  message: Mutation_AddToCell | Mutation_MergeToCell,
): { family: string; qualifier: ByteString; timestamp: Int64 } {
  const column = message.columnQualifier?.kind;
  if (column?.case !== 'rawValue' && column?.case !== 'bytesValue') {
    throw invalidArgument(`${name}: column_qualifier must be a raw_value of bytes`, {
      field: `${name}.column_qualifier`,
    });
  }
  return {
    family: utf8(message.familyName),
    qualifier: fromBytes(column.value),
    timestamp: timestampOf(name, message.timestamp),
  };
}

function timestampOf(name: string, value: Value | undefined): Int64 {
  switch (value?.kind.case) {
    case 'rawTimestampMicros':
      return int64(value.kind.value);
    case 'timestampValue':
      return microsOf(value.kind.value);
    default:
      throw invalidArgument(`${name}: timestamp must be a raw_timestamp_micros`, { field: `${name}.timestamp` });
  }
}

function microsOf(timestamp: Timestamp): Int64 {
  return int64(timestamp.seconds * 1_000_000n + BigInt(Math.trunc(timestamp.nanos / 1000)));
}

function inputOf(value: Value | undefined): Int64 | Uint8Array {
  switch (value?.kind.case) {
    case 'intValue':
      return int64(value.kind.value);
    case 'rawValue':
    case 'bytesValue':
      return value.kind.value;
    case 'stringValue':
      return Buffer.from(value.kind.value, 'utf8');
    default:
      throw invalidArgument('add_to_cell: input must be an int_value, or bytes', { field: 'add_to_cell.input' });
  }
}

/** Undefined: NULL, which a Value is with none of its kinds set. */
function stateOf(value: Value | undefined): Uint8Array | undefined {
  if (value?.kind.case === 'rawValue' || value?.kind.case === 'bytesValue') return value.kind.value;
  const isNull = value === undefined || (value.kind.case === undefined && value.$unknown === undefined);
  if (isNull) return undefined;
  throw invalidArgument('merge_to_cell: input must be a raw_value of bytes, or NULL', { field: 'merge_to_cell.input' });
}

export function mutationMessage(mutation: Mutation): MutationMessage {
  return create(MutationSchema, { mutation: kindMessage(mutation) });
}

type Kind = NonNullable<NonNullable<Parameters<typeof create<typeof MutationSchema>>[1]>['mutation']>;

function kindMessage(mutation: Mutation): Kind {
  switch (mutation.kind) {
    case 'setCell': {
      const { timestamp, value } = mutation;
      if (timestamp === SERVER_TIME)
        throw invalidArgument(
          "a cell at timestamp -1 cannot be sent over the Bigtable API, where -1 means the server's time",
        );
      const timestampMicros = timestamp === undefined ? BigInt(SERVER_TIME) : toBigInt(timestamp);
      return {
        case: 'setCell',
        value: {
          familyName: toText(mutation.family),
          columnQualifier: toBytes(mutation.qualifier),
          timestampMicros,
          value,
        },
      };
    }
    case 'addToCell': {
      const { input } = mutation;
      const given = typeof input === 'number' || typeof input === 'bigint';
      return {
        case: 'addToCell',
        value: { ...cellMessage(mutation), input: given ? intValue(toBigInt(input)) : rawValue(input) },
      };
    }
    case 'mergeToCell':
      return {
        case: 'mergeToCell',
        value: {
          ...cellMessage(mutation),
          input: mutation.state === undefined ? create(ValueSchema) : rawValue(mutation.state),
        },
      };
    case 'deleteFromColumn': {
      const { range } = mutation;
      const timeRange =
        range === undefined || (range.start === undefined && range.end === undefined)
          ? {}
          : { timeRange: timestampRangeMessage(range) };
      return {
        case: 'deleteFromColumn',
        value: { familyName: toText(mutation.family), columnQualifier: toBytes(mutation.qualifier), ...timeRange },
      };
    }
    case 'deleteFromFamily':
      return { case: 'deleteFromFamily', value: { familyName: toText(mutation.family) } };
    case 'deleteFromRow':
      return { case: 'deleteFromRow', value: {} };
  }
}

function cellMessage(mutation: { readonly family: string; readonly qualifier: ByteString; readonly timestamp: Int64 }) {
  return {
    familyName: toText(mutation.family),
    columnQualifier: rawValue(toBytes(mutation.qualifier)),
    timestamp: create(ValueSchema, { kind: { case: 'rawTimestampMicros', value: toBigInt(mutation.timestamp) } }),
  };
}

function rawValue(value: Uint8Array): Value {
  return create(ValueSchema, { kind: { case: 'rawValue', value } });
}

function intValue(value: bigint): Value {
  return create(ValueSchema, { kind: { case: 'intValue', value } });
}

export function ruleOf(message: RuleMessage): ReadModifyWriteRule {
  const { rule } = message;
  const column = { family: utf8(message.familyName), qualifier: fromBytes(message.columnQualifier) };
  switch (rule.case) {
    case 'appendValue':
      return { ...column, change: { kind: 'append', suffix: rule.value } };
    case 'incrementAmount':
      return { ...column, change: { kind: 'increment', amount: int64(rule.value) } };
    default:
      throw invalidArgument(
        `rule for column ${quote(column.family)}:${quote(column.qualifier)}: append_value or increment_amount must be set`,
        { field: 'rules' },
      );
  }
}

export function ruleMessage(rule: ReadModifyWriteRule): RuleMessage {
  const { change } = rule;
  return create(ReadModifyWriteRuleSchema, {
    familyName: toText(rule.family),
    columnQualifier: toBytes(rule.qualifier),
    rule:
      change.kind === 'append'
        ? { case: 'appendValue', value: change.suffix }
        : { case: 'incrementAmount', value: toBigInt(change.amount) },
  });
}
