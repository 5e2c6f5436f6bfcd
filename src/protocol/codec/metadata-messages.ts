/** Rows of METADATA and their commits as messages. */
import type { MetadataCommit, MetadataRow, PastOwner, ServerLocation } from '../../metadata/index.ts';
import {
  byteString,
  choice,
  count,
  flag,
  list,
  listOf,
  map,
  mapOf,
  maybe,
  type MessageCodec,
  message,
  number,
  oneOf,
  optional,
  present,
  required,
  text,
} from '../../protobuf/index.ts';
import type { CommitOutcome } from '../messages.ts';
import { rowRange } from './model-messages.ts';

export const metadataRow: MessageCodec<MetadataRow> = message('MetadataRow', {
  tableId: required(1, text),
  range: required(2, rowRange),
  server: present(
    3,
    message<ServerLocation>('ServerLocation', { name: required(1, text), address: required(2, text) }),
  ),
  epoch: required(4, count),
  version: required(5, count),
  commitId: required(6, text),
  files: map(7, listOf('FilePaths', text)),
  clips: optional(8, mapOf('Clips', listOf('RowRanges', rowRange))),
  redo: required(
    9,
    message<MetadataRow['redo']>('RedoPoint', { epoch: required(1, count), sequence: required(2, count) }),
  ),
  logs: list(10, text),
  lastServerMicros: optional(11, number),
  isOfBackup: optional(12, flag),
  pastOwners: optional(
    13,
    listOf(
      'PastOwners',
      message<PastOwner>('PastOwner', {
        server: required(1, text),
        epoch: required(2, count),
        untilMicros: required(3, number),
        changesFrom: optional(4, number),
        changesUntil: optional(5, number),
      }),
    ),
  ),
  changesFrom: optional(14, number),
  changesUntil: optional(15, number),
});

type RowCommit = MetadataCommit['rows'][number];

export const metadataCommit: MessageCodec<MetadataCommit> = message('MetadataCommit', {
  id: required(1, text),
  event: required(
    2,
    message<MetadataCommit['event']>('TabletEvent', {
      kind: required(
        1,
        choice('TabletEventKind', { created: 1, assigned: 2, compacted: 3, released: 4, split: 5, merged: 6 }),
      ),
      atMicros: required(2, number),
    }),
  ),
  rows: list(
    3,
    message<RowCommit>('RowCommit', {
      key: required(1, byteString),
      expected: present(
        2,
        message<NonNullable<RowCommit['expected']>>('RowState', {
          epoch: required(1, count),
          version: required(2, count),
        }),
      ),
      row: present(3, metadataRow),
    }),
  ),
});

export const commitOutcome: MessageCodec<CommitOutcome> = oneOf<CommitOutcome>('CommitOutcome', {
  done: [1, {}],
  refused: [2, { rows: list(1, maybe('MetadataRowNow', metadataRow)) }],
});
