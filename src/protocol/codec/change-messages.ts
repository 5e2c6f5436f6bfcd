/** Change streams as messages. */
import type { ChangeBatch, ChangePosition, ChangeStream, RowChange, StreamProgress } from '../../model/index.ts';
import {
  byteString,
  choice,
  count,
  flag,
  list,
  longList,
  maybe,
  type MessageCodec,
  mappedMessage,
  message,
  number,
  optional,
  present,
  required,
  text,
} from '../../protobuf/index.ts';
import type { ReadChangesMessage } from '../messages.ts';
import { mutation, rowRange } from './model-messages.ts';

export const changeStream: MessageCodec<ChangeStream> = message('ChangeStream', {
  retentionMicros: required(1, number),
});

export const changeStreamOrNone: MessageCodec<ChangeStream | 'none'> = mappedMessage(
  maybe('ChangeStreamOrNone', changeStream),
  (stream: ChangeStream | 'none') => (stream === 'none' ? undefined : stream),
  (stream) => stream ?? 'none',
);

const changePosition: MessageCodec<ChangePosition> = message('ChangePosition', {
  server: required(1, text),
  epoch: required(2, count),
  position: required(3, number),
  record: required(4, count),
  row: required(5, count),
});

export const readChangesMessage: MessageCodec<ReadChangesMessage> = message('ReadChangesRequest', {
  tableId: required(1, text),
  range: required(2, rowRange),
  progress: list(
    3,
    message<StreamProgress>('StreamProgress', {
      range: required(1, rowRange),
      fromMicros: required(2, number),
      after: present(3, changePosition),
    }),
  ),
  endMicros: present(4, number),
  heartbeatMs: required(5, number),
  schemaVersion: optional(6, count),
});

export const changeBatch: MessageCodec<ChangeBatch> = message('ChangeBatch', {
  changes: list(
    1,
    message<RowChange>('RowChange', {
      row: required(1, byteString),
      mutations: longList(2, mutation),
      commitMicros: required(3, number),
      origin: required(4, choice('ChangeOrigin', { user: 1, garbageCollection: 2 })),
      position: required(5, changePosition),
    }),
  ),
  position: present(2, changePosition),
  watermarkMicros: required(3, number),
  isEnd: required(4, flag),
});
