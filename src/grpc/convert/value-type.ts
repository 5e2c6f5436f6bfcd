/**
 * A family's google.bigtable.admin.v2.Type to the model and back. Aggregates get a meaning; the type that the client
 * wrote is kept and returned unchanged.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { invalidArgument } from '../../base/index.ts';
import type { AggregateKind, ValueType } from '../../model/index.ts';
import { type Type, type Type_Aggregate, TypeSchema } from '../generated/google/bigtable/admin/v2/types_pb.ts';

const KINDS = { sum: 'sum', min: 'min', max: 'max', hllppUniqueCount: 'hll' } as const;

export function valueTypeOf(message: Type | undefined): ValueType | undefined {
  if (message === undefined || (message.kind.case === undefined && message.$unknown === undefined)) return undefined;
  const encoded = Buffer.from(toBinary(TypeSchema, message)).toString('base64');
  if (message.kind.case !== 'aggregateType') return { encoded };
  return { encoded, aggregate: aggregateOf(message.kind.value) };
}

function aggregateOf(message: Type_Aggregate): NonNullable<ValueType['aggregate']> {
  const which = message.aggregator.case;
  if (which === undefined)
    throw invalidArgument('aggregate_type: one of sum, min, max and hllpp_unique_count must be set', {
      field: 'value_type.aggregate_type',
    });
  const kind = KINDS[which];
  const input = message.inputType?.kind.case;
  if (kind !== 'hll' && input !== undefined && input !== 'int64Type') {
    throw invalidArgument(`aggregate ${kind}: input_type must be an int64_type`, {
      field: 'value_type.aggregate_type.input_type',
    });
  }
  const encoding =
    message.inputType?.kind.case === 'int64Type' ? message.inputType.kind.value.encoding?.encoding.case : undefined;
  if (kind !== 'hll' && encoding === 'orderedCodeBytes') {
    // the state of such a family would be in the ordered code too, and cells of this one hold big-endian integers
    throw invalidArgument(`aggregate ${kind}: the encoding of input_type must be big_endian_bytes`, {
      field: 'value_type.aggregate_type.input_type.int64_type.encoding',
    });
  }
  return { kind, input: input === 'int64Type' || kind !== 'hll' ? 'int64' : 'bytes' };
}

export function valueTypeMessage(type: ValueType): Type {
  if (type.encoded !== undefined) return fromBinary(TypeSchema, Buffer.from(type.encoded, 'base64'));
  if (type.aggregate === undefined) return create(TypeSchema);
  const { kind, input } = type.aggregate;
  const inputType =
    input === 'int64'
      ? INT64
      : create(TypeSchema, {
          kind: { case: 'bytesType', value: { encoding: { encoding: { case: 'raw', value: {} } } } },
        });
  return create(TypeSchema, {
    kind: { case: 'aggregateType', value: { inputType, aggregator: { case: AGGREGATORS[kind], value: {} } } },
  });
}

const AGGREGATORS = { sum: 'sum', min: 'min', max: 'max', hll: 'hllppUniqueCount' } as const satisfies Record<
  AggregateKind,
  string
>;

const INT64 = create(TypeSchema, {
  kind: { case: 'int64Type', value: { encoding: { encoding: { case: 'bigEndianBytes', value: {} } } } },
});
