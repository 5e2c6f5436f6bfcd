/**
 * Paths of files and logs, as every FileSystem takes them: parts joined by "/", of the characters [A-Za-z0-9._-], no
 * part empty, "." or "..", so that one path means one object in a directory, in memory and in an object store alike.
 */
import { invalidArgument } from '../../base/index.ts';

const PATH = /^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/;
const DOTS = /(?:^|\/)\.{1,2}(?:\/|$)/;

/** Throws INVALID_ARGUMENT where `path` is no path of a file or log. */
export function checkFilePath(path: string): void {
  if (PATH.test(path) && !DOTS.test(path)) return;
  throw invalidArgument(
    `invalid path ${JSON.stringify(path)}: expected parts of [A-Za-z0-9._-] joined by "/", none of them "." or ".."`,
  );
}
