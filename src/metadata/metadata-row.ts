/**
 * A row of METADATA: the server of a tablet, its files and logs, and its events. Format: docs/formats/metadata.md.
 *
 * Invariant: a row changes only by a commit conditional on its (epoch, version); each commit adds 1 to the version and
 * leaves its id. The version is also the timestamp of the row's cells, so the newest cell is that of the last commit
 * whatever clocks say.
 */
import { assert, type ByteString, CorruptionError, quote } from '../base/index.ts';
import type { Cell, FamilySchema, Mutation, PastEvent, RowRange, TableSchema, TabletHistory } from '../model/index.ts';
import { type MetadataKey, METADATA_TABLE_ID, metadataKey, parseMetadataKey } from './keys.ts';
import { encodeDocument, FEATURE_BACKUP, FEATURE_CLIPS, FEATURE_PAST_OWNERS, PlainObject } from './plain-json.ts';

export const LOCATION_FAMILY = 'location';
const FILES_FAMILY = 'files';
const EVENTS_FAMILY = 'events';

/** The number of events kept of each tablet. */
const MAX_EVENTS = 20;

/** The server incarnation that a tablet is assigned to. */
export interface ServerLocation {
  readonly name: string;
  readonly address: string;
}

/** A server incarnation that had the tablet. Its log holds the changes of that time. */
export interface PastOwner {
  readonly server: string;
  /** The tablet's epoch at that time: there is one owner at each epoch of a row. */
  readonly epoch: number;
  /** Real time at which it ceased to be the owner, microseconds. */
  readonly untilMicros: number;
  /** As the row's `changesFrom` was. */
  readonly changesFrom?: number | undefined;
  /** As the row's `changesUntil` was. */
  readonly changesUntil?: number | undefined;
}

/** The part of the row that clients need: the family `location`. */
export interface TabletLocation {
  readonly tableId: string;
  readonly range: RowRange;
  /** Undefined: assigned to no server. */
  readonly server: ServerLocation | undefined;
  /** The row keeps the files of a backup, and is never given to a server. Left out: it is of a table. */
  readonly isOfBackup?: boolean | undefined;
  /** Grows with every assignment and release: a master changes it, or a server that takes back what it has released. */
  readonly epoch: number;
  /** Grows with every change of the row. */
  readonly version: number;
  /** Id of the commit that last changed the row. */
  readonly commitId: string;
}

export interface MetadataRow extends TabletLocation {
  /** Paths of SSTables by locality group, each newest first. */
  readonly files: Readonly<Record<string, readonly string[]>>;
  /**
   * By path: the parts of the tablet's range for which the file is listed. Files that are missing here are listed for
   * the whole range.
   */
  readonly clips?: Readonly<Record<string, readonly RowRange[]>> | undefined;
  /** Records at or below it are in the files. */
  readonly redo: { readonly epoch: number; readonly sequence: number };
  /** Every log that may hold records after the redo point. */
  readonly logs: readonly string[];
  /**
   * The newest time, microseconds, that a server gave to a cell in a record at or below the redo point, or a newer one;
   * 0 if none was given, undefined if an earlier version wrote the row.
   */
  readonly lastServerMicros?: number | undefined;
  /**
   * The owners before the present one whose logs are kept for the table's change stream, by epoch. Undefined where the
   * table has none.
   */
  readonly pastOwners?: readonly PastOwner[] | undefined;
  /**
   * The changes of the tablet that the present owner's log has for the table's change stream are in appends at this
   * position or above. Undefined until the owner serves the tablet, and where the table has no change stream.
   */
  readonly changesFrom?: number | undefined;
  /** The owner has released the tablet, and its changes are in appends at this position or below. */
  readonly changesUntil?: number | undefined;
}

/** An entry in the tablet's log of events. */
export interface TabletEvent {
  readonly kind: 'created' | 'assigned' | 'compacted' | 'released' | 'split' | 'merged';
  /** Real time, microseconds. */
  readonly atMicros: number;
}

/**
 * Every miss of a client's cache reads the location of a tablet: that family has a locality group to itself, in memory.
 */
const LOCATION_GROUP = 'location';

const family = (name: string, versions: number, group?: string): FamilySchema => ({
  name,
  gcRule: { kind: 'maxVersions', versions },
  ...(group && { group }),
});

/** The schema of METADATA's own table. */
export const METADATA_SCHEMA: TableSchema = Object.freeze({
  name: 'METADATA',
  id: METADATA_TABLE_ID,
  granularity: 'micros',
  families: Object.freeze({
    [LOCATION_FAMILY]: family(LOCATION_FAMILY, 1, LOCATION_GROUP),
    [FILES_FAMILY]: family(FILES_FAMILY, 1),
    [EVENTS_FAMILY]: family(EVENTS_FAMILY, MAX_EVENTS),
  }),
  groups: Object.freeze({ [LOCATION_GROUP]: Object.freeze({ inMemory: true }) }),
  deletionProtection: true,
});

export function keyOfRow(row: TabletLocation): MetadataKey {
  return metadataKey(row.tableId, row.range.end);
}

/** The mutations that make the row's cells. A row that is deleted takes `[{ kind: 'deleteFromRow' }]`. */
export function encodeRow(row: MetadataRow, event: TabletEvent): Mutation[] {
  const cell = (name: string, value: Buffer): Mutation => ({
    kind: 'setCell',
    family: name,
    qualifier: 'tablet',
    timestamp: row.version,
    value,
  });
  return [
    cell(LOCATION_FAMILY, encodeDocument(locationFields(row), row.isOfBackup ? FEATURE_BACKUP : 0)),
    cell(FILES_FAMILY, encodeDocument(filesFields(row), featuresOf(row))),
    cell(EVENTS_FAMILY, encodeDocument({ ...event, epoch: row.epoch, server: row.server?.name })),
  ];
}

/** The row from its newest cells; undefined if it does not exist. */
export function decodeRow(key: MetadataKey, cells: readonly Cell[]): MetadataRow | undefined {
  const location = decodeLocation(key, cells);
  if (!location) return undefined;
  const files = newest(cells, FILES_FAMILY);
  if (!files) throw new CorruptionError('METADATA', 0, `row ${quote(key)} has a location and no files`);
  return { ...location, ...readFiles(PlainObject.parse(`METADATA row ${quote(key)}, files`, files.value)) };
}

/** The tablet's log of events, from all cells of its row. */
export function decodeEvents(key: MetadataKey, cells: readonly Cell[]): PastEvent[] {
  return cells.filter(({ family }) => family === EVENTS_FAMILY).map(({ value }) => readEvent(key, value));
}

/** The tablet's range and its events, from all cells of its row; undefined if it does not exist. */
export function decodeHistory(key: MetadataKey, cells: readonly Cell[]): TabletHistory | undefined {
  const location = decodeLocation(key, cells);
  return location && { range: location.range, events: decodeEvents(key, cells) };
}

/** The location alone, from the cells of its family; undefined if it does not exist. */
export function decodeLocation(key: MetadataKey, cells: readonly Cell[]): TabletLocation | undefined {
  const { tableId, end } = parseMetadataKey(key);
  const cell = newest(cells, LOCATION_FAMILY);
  return cell && readLocation(PlainObject.parse(`METADATA row ${quote(key)}, location`, cell.value), tableId, end);
}

/** The root tablet's row as the contents of the lock service's file `root`. */
export function encodeRootFile(row: MetadataRow): Buffer {
  assert(row.pastOwners === undefined, 'METADATA has no change stream');
  return encodeDocument({ end: row.range.end, ...locationFields(row), ...filesFields(row) }, featuresOf(row));
}

export function decodeRootFile(contents: Uint8Array): MetadataRow {
  const object = PlainObject.parse('root file', contents);
  return { ...readLocation(object, METADATA_TABLE_ID, object.bytes('end')), ...readFiles(object) };
}

/** The row of a backup as one document. It leaves the id of the backup out. */
export function encodeBackupRow(row: MetadataRow): Buffer {
  assert(row.isOfBackup && row.pastOwners === undefined, 'a backup has no change stream');
  const fields = { end: row.range.end, ...locationFields(row), ...filesFields(row) };
  return encodeDocument(fields, featuresOf(row) | FEATURE_BACKUP);
}

/** `tableId`: the id of the backup. */
export function decodeBackupRow(object: PlainObject, tableId: string): MetadataRow {
  const end = object.has('end') ? object.bytes('end') : undefined;
  return { ...readLocation(object, tableId, end), ...readFiles(object) };
}

function locationFields({
  range,
  server,
  isOfBackup,
  epoch,
  version,
  commitId,
}: TabletLocation): Record<string, unknown> {
  assert(!isOfBackup || server === undefined, 'the row of a backup names no server');
  return { start: range.start, server, isOfBackup, epoch, version, commitId };
}

function filesFields(row: MetadataRow): Record<string, unknown> {
  const { files, clips, redo, logs, lastServerMicros, pastOwners, changesFrom, changesUntil } = row;
  assert(changesFrom === undefined || pastOwners !== undefined, 'changes are kept of a tablet with past owners');
  assert(changesUntil === undefined || changesFrom !== undefined, 'changes have a beginning before they have an end');
  return { files, clips, redo, logs, lastServerMicros, pastOwners, changesFrom, changesUntil };
}

function featuresOf({ clips, pastOwners }: MetadataRow): number {
  return (clips ? FEATURE_CLIPS : 0) | (pastOwners ? FEATURE_PAST_OWNERS : 0);
}

function readLocation(object: PlainObject, tableId: string, end: ByteString | undefined): TabletLocation {
  const server = object.has('server') ? object.object('server') : undefined;
  return {
    tableId,
    range: { start: object.bytes('start'), end },
    server: server && { name: server.text('name'), address: server.text('address') },
    ...(object.has('isOfBackup') && { isOfBackup: object.flag('isOfBackup') }),
    epoch: object.count('epoch'),
    version: object.count('version'),
    commitId: object.text('commitId'),
  };
}

function readFiles(object: PlainObject): Omit<MetadataRow, keyof TabletLocation> {
  const redo = object.object('redo');
  return {
    files: object.object('files').record((groups, name) => groups.texts(name)),
    ...(object.has('clips') && {
      clips: object.object('clips').record((clips, path) => clips.objects(path).map(readRange)),
    }),
    redo: { epoch: redo.count('epoch'), sequence: redo.count('sequence') },
    logs: object.texts('logs'),
    ...(object.has('lastServerMicros') && { lastServerMicros: object.count('lastServerMicros') }),
    ...(object.has('pastOwners') && { pastOwners: object.objects('pastOwners').map(readPastOwner) }),
    ...readPlace(object),
  };
}

/** Where the changes are in the owner's log. */
function readPlace(object: PlainObject): Pick<PastOwner, 'changesFrom' | 'changesUntil'> {
  return {
    ...(object.has('changesFrom') && { changesFrom: object.count('changesFrom') }),
    ...(object.has('changesUntil') && { changesUntil: object.count('changesUntil') }),
  };
}

function readPastOwner(object: PlainObject): PastOwner {
  return {
    server: object.text('server'),
    epoch: object.count('epoch'),
    untilMicros: object.count('untilMicros'),
    ...readPlace(object),
  };
}

function readRange(object: PlainObject): RowRange {
  return { start: object.bytes('start'), end: object.has('end') ? object.bytes('end') : undefined };
}

function readEvent(key: MetadataKey, value: Uint8Array): PastEvent {
  const event = PlainObject.parse(`METADATA row ${quote(key)}, events`, value);
  return {
    kind: event.text('kind'),
    atMicros: event.count('atMicros'),
    epoch: event.count('epoch'),
    server: event.has('server') ? event.text('server') : undefined,
  };
}

function newest(cells: readonly Cell[], name: string): Cell | undefined {
  return cells.find((cell) => cell.family === name && cell.qualifier === 'tablet');
}
