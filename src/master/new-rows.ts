/** Rows of METADATA for tablets that are created or change their server. */
import { assert } from '../base/index.ts';
import { givenTo, keyOfRow, type MetadataCommit, type MetadataRow, withoutLog } from '../metadata/index.ts';
import type { RowRange } from '../model/index.ts';
import { logPathOf } from '../protocol/index.ts';
import type { LiveServer } from './live-server.ts';

/** The row of a tablet that no server has had. `keepsChanges`: its table has a change stream. */
export function newRow(tableId: string, range: RowRange, keepsChanges = false): MetadataRow {
  return {
    tableId,
    range,
    server: undefined,
    epoch: 0,
    version: 0,
    commitId: '',
    files: {},
    redo: { epoch: 0, sequence: 0 },
    logs: [],
    lastServerMicros: 0,
    ...(keepsChanges && { pastOwners: [] }),
  };
}

/**
 * A tablet is given away only at a new epoch, and its row lists the new owner's log before that holds a record of it.
 */
export function assertGiven({ expected, row }: MetadataCommit['rows'][number]): void {
  assert(row?.server !== undefined, 'a tablet is given to a server');
  assert(row.epoch > (expected?.epoch ?? 0), 'a tablet is given away at a new epoch');
  assert(row.logs.includes(logPathOf(row.server.name)), "the row of a tablet lists its new owner's log");
}

/** The row of a tablet that its server has released (`withoutLog`). */
export function afterRelease(row: MetadataRow): MetadataRow {
  assert(row.server !== undefined, 'a tablet is released by a server that had it');
  return withoutLog(row, logPathOf(row.server.name));
}

/** The row under its next assignment. The server counts it from now on, so that the next one goes to another. */
export function assignTo(row: MetadataRow, server: LiveServer, atMicros: number): MetadataRow {
  server.give(keyOfRow(row));
  const given = givenTo(row, server, logPathOf(server.name), atMicros);
  assert(
    (given.pastOwners === undefined) === (row.pastOwners === undefined),
    'an assignment leaves it to the server whether the changes of a tablet are kept',
  );
  return given;
}
