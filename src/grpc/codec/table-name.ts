/**
 * The name of the table in a request. Calls name the same table over and over: where the bytes spell the name of the call before, that string is
 * given out, so that what looks the table up by it need neither hash it nor compare its characters.
 */
import type { WireReader } from '../bytes/wire-reader.ts';

let last = '';

/** The text of the field that the reader stands on. */
export function tableName(reader: WireReader): string {
  last = reader.textLike(last);
  return last;
}
