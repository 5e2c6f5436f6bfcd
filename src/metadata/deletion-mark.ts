/**
 * The mark of a deletion: a file of the lock service that exists from before a table's schema is removed until the last
 * of its rows is gone. It distinguishes a table that was deleted from one whose schema has vanished. Where it says that
 * the table is kept, the rows stay, and so do its files of the lock service, in a place of their own
 * (docs/decisions/0106-undeleting-tables.md). Format: docs/formats/metadata.md.
 */
import { assert } from '../base/index.ts';
import type { DeletedTable } from '../model/index.ts';
import { encodeDocument, FEATURE_KEPT_TABLE, PlainObject } from './plain-json.ts';

const DIRECTORY = 'deletions/';
const KEPT_FILES = 'kept/';

/** `deletions/` and the table's id; without an id the directory. */
export function deletionPath(tableId = ''): string {
  return DIRECTORY + tableId;
}

/** Where a file of the lock service that belonged to a kept table lies; without a path the prefix of all of them. */
export function keptFilePath(tableId: string, path = ''): string {
  return `${KEPT_FILES}${tableId}/${path}`;
}

/** A deleted table that may be restored. */
export interface KeptTable extends Pick<DeletedTable, 'deletedMicros' | 'keptUntilMicros'> {
  /** The number of its tablets when it was deleted. */
  readonly tablets: number;
}

export interface DeletionMark {
  readonly tableId: string;
  /** The table's full name. */
  readonly name: string;
  /** Undefined: its rows are to be removed. */
  readonly kept?: KeptTable | undefined;
  /** It was kept, and files of it may be left. Left out: false. */
  readonly wasKept?: boolean | undefined;
}

export function encodeDeletionMark({ name, kept, wasKept }: Omit<DeletionMark, 'tableId'>): Buffer {
  if (kept === undefined) return encodeDocument({ name, ...(wasKept === true && { wasKept }) });
  return encodeDocument({ name, ...kept }, FEATURE_KEPT_TABLE);
}

/** DATA_LOSS if it is not a mark. */
export function decodeDeletionMark(path: string, contents: Uint8Array): DeletionMark {
  assert(path.startsWith(DIRECTORY), 'a mark of a deletion is read from the directory of marks');
  const object = PlainObject.parse(path, contents);
  const mark = { tableId: path.slice(DIRECTORY.length), name: object.text('name') };
  if (!object.has('keptUntilMicros'))
    return object.has('wasKept') ? { ...mark, wasKept: object.flag('wasKept') } : mark;
  return {
    ...mark,
    kept: {
      deletedMicros: object.count('deletedMicros'),
      keptUntilMicros: object.count('keptUntilMicros'),
      tablets: object.count('tablets'),
    },
  };
}
