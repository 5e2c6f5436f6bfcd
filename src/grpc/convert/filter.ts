/**
 * google.bigtable.v2.RowFilter to the filter in plain data and back: all twenty kinds.
 *
 * A RowFilter with nothing set passes all cells, wherever it stands. One of a kind that is not known here (it was made
 * with later definitions of the API) is refused: it comes with unknown fields, and must not be taken for one with
 * nothing set.
 *
 * Only what the message alone can get wrong is checked here (an unknown kind, a flag that is false); the filter room
 * checks whether a filter makes sense.
 */
import { create } from '@bufbuild/protobuf';
import { fromBytes, INT64_MIN, int64, invalidArgument, toBigInt, toBytes, toText, utf8 } from '../../base/index.ts';
import type { Bound, RowFilter } from '../../filter/index.ts';
import type { TimestampRange } from '../../model/index.ts';
import {
  type ColumnRange,
  ColumnRangeSchema,
  type RowFilter as RowFilterMessage,
  RowFilterSchema,
  type TimestampRange as TimestampRangeMessage,
  TimestampRangeSchema,
  type ValueRange,
  ValueRangeSchema,
} from '../generated/google/bigtable/v2/data_pb.ts';

/** Undefined where nothing is set: all cells pass. */
export function filterOf(message: RowFilterMessage | undefined): RowFilter | undefined {
  if (message === undefined) return undefined;
  const isUnset = message.filter.case === undefined && message.$unknown === undefined;
  return isUnset ? undefined : partOf(message);
}

function partOf(message: RowFilterMessage): RowFilter {
  const { filter } = message;
  switch (filter.case) {
    case 'chain':
    case 'interleave':
      return { kind: filter.case, filters: filter.value.filters.map(partOf) };
    case 'condition': {
      const { predicateFilter, trueFilter, falseFilter } = filter.value;
      if (!predicateFilter)
        throw invalidArgument('condition: predicate_filter must be set', {
          field: 'filter.condition.predicate_filter',
        });
      return {
        kind: 'condition',
        predicate: partOf(predicateFilter),
        whenTrue: trueFilter && partOf(trueFilter),
        whenFalse: falseFilter && partOf(falseFilter),
      };
    }
    case 'sink':
      return { kind: flag('sink', filter.value) };
    case 'passAllFilter':
      return { kind: flag('passAll', filter.value) };
    case 'blockAllFilter':
      return { kind: flag('blockAll', filter.value) };
    case 'rowKeyRegexFilter':
      return { kind: 'rowKeyRegex', regex: fromBytes(filter.value) };
    case 'rowSampleFilter':
      return { kind: 'rowSample', probability: filter.value };
    case 'familyNameRegexFilter':
      return { kind: 'familyNameRegex', regex: utf8(filter.value) };
    case 'columnQualifierRegexFilter':
      return { kind: 'columnQualifierRegex', regex: fromBytes(filter.value) };
    case 'columnRangeFilter':
      return columnRangeOf(filter.value);
    case 'timestampRangeFilter':
      return { kind: 'timestampRange', range: timestampRangeOf(filter.value) };
    case 'valueRegexFilter':
      return { kind: 'valueRegex', regex: fromBytes(filter.value) };
    case 'valueRangeFilter':
      return valueRangeOf(filter.value);
    case 'valueBitmaskFilter':
      return { kind: 'valueBitmask', mask: fromBytes(filter.value.mask) };
    case 'cellsPerRowOffsetFilter':
      return { kind: 'cellsPerRowOffset', cells: filter.value };
    case 'cellsPerRowLimitFilter':
      return { kind: 'cellsPerRowLimit', cells: filter.value };
    case 'cellsPerColumnLimitFilter':
      return { kind: 'cellsPerColumnLimit', cells: filter.value };
    case 'stripValueTransformer':
      return { kind: flag('stripValue', filter.value) };
    case 'applyLabelTransformer':
      return { kind: 'applyLabel', label: filter.value };
    default:
      if (message.$unknown === undefined) return { kind: 'passAll' };
      throw invalidArgument(
        `a RowFilter is of none of the twenty kinds known here: it has the field ${message.$unknown[0]?.no}`,
        { field: 'filter' },
      );
  }
}

function flag<K extends string>(kind: K, value: boolean): K {
  if (!value) throw invalidArgument(`${kind}: the flag must be true where it is set`, { field: 'filter' });
  return kind;
}

function columnRangeOf(message: ColumnRange): RowFilter {
  const { startQualifier, endQualifier } = message;
  return {
    kind: 'columnRange',
    family: utf8(message.familyName),
    start: startQualifier.case && bound(startQualifier.value, startQualifier.case === 'startQualifierClosed'),
    end: endQualifier.case && bound(endQualifier.value, endQualifier.case === 'endQualifierClosed'),
  };
}

function valueRangeOf(message: ValueRange): RowFilter {
  const { startValue, endValue } = message;
  return {
    kind: 'valueRange',
    start: startValue.case && bound(startValue.value, startValue.case === 'startValueClosed'),
    end: endValue.case && bound(endValue.value, endValue.case === 'endValueClosed'),
  };
}

function bound(value: Uint8Array, closed: boolean): Bound {
  return { value: fromBytes(value), closed };
}

/**
 * The start is 0 where it is left out, as the API says: negative timestamps are requested by their number. An end of 0
 * means none.
 */
export function timestampRangeOf(message: TimestampRangeMessage): TimestampRange {
  return {
    start: int64(message.startTimestampMicros),
    end: message.endTimestampMicros === 0n ? undefined : int64(message.endTimestampMicros),
  };
}

/** INVALID_ARGUMENT for an end of 0, which the API cannot say. */
export function timestampRangeMessage(range: TimestampRange): TimestampRangeMessage {
  if (range.end === 0)
    throw invalidArgument('a time range that ends at 0 cannot be sent over the Bigtable API, where 0 means no end');
  return create(TimestampRangeSchema, {
    startTimestampMicros: range.start === undefined ? INT64_MIN : toBigInt(range.start),
    endTimestampMicros: range.end === undefined ? 0n : toBigInt(range.end),
  });
}

export function filterMessage(filter: RowFilter): RowFilterMessage {
  return create(RowFilterSchema, { filter: kindMessage(filter) });
}

type Kind = NonNullable<Parameters<typeof create<typeof RowFilterSchema>>[1]>['filter'];

function kindMessage(filter: RowFilter): NonNullable<Kind> {
  switch (filter.kind) {
    case 'chain':
    case 'interleave':
      return { case: filter.kind, value: { filters: filter.filters.map(filterMessage) } };
    case 'condition': {
      const { predicate, whenTrue, whenFalse } = filter;
      return {
        case: 'condition',
        value: {
          predicateFilter: filterMessage(predicate),
          ...(whenTrue && { trueFilter: filterMessage(whenTrue) }),
          ...(whenFalse && { falseFilter: filterMessage(whenFalse) }),
        },
      };
    }
    case 'sink':
      return { case: 'sink', value: true };
    case 'passAll':
      return { case: 'passAllFilter', value: true };
    case 'blockAll':
      return { case: 'blockAllFilter', value: true };
    case 'rowKeyRegex':
      return { case: 'rowKeyRegexFilter', value: toBytes(filter.regex) };
    case 'rowSample':
      return { case: 'rowSampleFilter', value: filter.probability };
    case 'familyNameRegex':
      return { case: 'familyNameRegexFilter', value: toText(filter.regex) };
    case 'columnQualifierRegex':
      return { case: 'columnQualifierRegexFilter', value: toBytes(filter.regex) };
    case 'columnRange':
      return { case: 'columnRangeFilter', value: columnRangeMessage(filter) };
    case 'timestampRange':
      return { case: 'timestampRangeFilter', value: timestampRangeMessage(filter.range) };
    case 'valueRegex':
      return { case: 'valueRegexFilter', value: toBytes(filter.regex) };
    case 'valueRange':
      return { case: 'valueRangeFilter', value: valueRangeMessage(filter) };
    case 'valueBitmask':
      return { case: 'valueBitmaskFilter', value: { mask: toBytes(filter.mask) } };
    case 'cellsPerRowOffset':
      return { case: 'cellsPerRowOffsetFilter', value: filter.cells };
    case 'cellsPerRowLimit':
      return { case: 'cellsPerRowLimitFilter', value: filter.cells };
    case 'cellsPerColumnLimit':
      return { case: 'cellsPerColumnLimitFilter', value: filter.cells };
    case 'stripValue':
      return { case: 'stripValueTransformer', value: true };
    case 'applyLabel':
      return { case: 'applyLabelTransformer', value: filter.label };
  }
}

function columnRangeMessage(filter: Extract<RowFilter, { kind: 'columnRange' }>): ColumnRange {
  const { start, end } = filter;
  return create(ColumnRangeSchema, {
    familyName: toText(filter.family),
    ...(start && {
      startQualifier: {
        case: start.closed ? 'startQualifierClosed' : 'startQualifierOpen',
        value: toBytes(start.value),
      } as const,
    }),
    ...(end && {
      endQualifier: {
        case: end.closed ? 'endQualifierClosed' : 'endQualifierOpen',
        value: toBytes(end.value),
      } as const,
    }),
  });
}

function valueRangeMessage(filter: Extract<RowFilter, { kind: 'valueRange' }>): ValueRange {
  const { start, end } = filter;
  return create(ValueRangeSchema, {
    ...(start && {
      startValue: { case: start.closed ? 'startValueClosed' : 'startValueOpen', value: toBytes(start.value) } as const,
    }),
    ...(end && {
      endValue: { case: end.closed ? 'endValueClosed' : 'endValueOpen', value: toBytes(end.value) } as const,
    }),
  });
}
