/**
 * The mark of a deletion: a file of the lock service that exists from before a table's schema is removed until the last
 * of its rows is gone. It distinguishes a table that was deleted from one whose schema has vanished. Format:
 * docs/formats/metadata.md.
 */
import { assert } from '../base/index.ts';
import { encodeDocument, PlainObject } from './plain-json.ts';

const DIRECTORY = 'deletions/';

/** `deletions/` and the table's id; without an id the directory. */
export function deletionPath(tableId = ''): string {
  return DIRECTORY + tableId;
}

export interface DeletionMark {
  readonly tableId: string;
  /** The table's full name. */
  readonly name: string;
}

export function encodeDeletionMark({ name }: Pick<DeletionMark, 'name'>): Buffer {
  return encodeDocument({ name });
}

/** DATA_LOSS if it is not a mark. */
export function decodeDeletionMark(path: string, contents: Uint8Array): DeletionMark {
  assert(path.startsWith(DIRECTORY), 'a mark of a deletion is read from the directory of marks');
  return { tableId: path.slice(DIRECTORY.length), name: PlainObject.parse(path, contents).text('name') };
}
