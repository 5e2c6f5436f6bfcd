/** What every lock service checks of its arguments, and the errors with which it refuses a change. */
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { LockHandle } from '../seams/lock-service.ts';

const MAX_CONTENTS_BYTES = 1024 * 1024;
const MAX_PATH_BYTES = 4096;

/** INVALID_ARGUMENT for a path that is no text, too long or has an empty part. */
export function checkPath(path: string): void {
  const bytes = Buffer.from(path, 'utf8');
  if (bytes.length > MAX_PATH_BYTES)
    throw invalidArgument(`a lock service path has ${bytes.length} bytes, at most ${MAX_PATH_BYTES} are allowed`);
  if (bytes.toString('utf8') !== path)
    throw invalidArgument(`lock service path ${JSON.stringify(path)} is not well-formed text`);
  if (path.split('/').includes(''))
    throw invalidArgument(`lock service path ${JSON.stringify(path)} has an empty part`);
}

/** INVALID_ARGUMENT for contents above 1 MiB. */
export function checkContents(path: string, contents: Uint8Array): void {
  if (contents.length > MAX_CONTENTS_BYTES) {
    throw invalidArgument(
      `lock service file ${JSON.stringify(path)}: contents of ${contents.length} bytes, at most ${MAX_CONTENTS_BYTES} are allowed`,
    );
  }
}

/** ABORTED: the file has another version. */
export function versionRefused(path: string, expected: number, version: number): BigtableError {
  return new BigtableError(
    Code.ABORTED,
    `lock service file ${JSON.stringify(path)}: version ${expected} was expected, it is ${version}`,
  );
}

/** ABORTED: the lock is not held in this epoch. */
export function lockRefused({ path, epoch }: LockHandle): BigtableError {
  return new BigtableError(Code.ABORTED, `lock ${JSON.stringify(path)} is no longer held in epoch ${epoch}`);
}

/** FAILED_PRECONDITION: the session is unknown, closed or expired. */
export function sessionEnded(sessionId: string): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, `session ${JSON.stringify(sessionId)} has ended`);
}

/** The directory of a path for `lastRemoval`: its part before the first "/", '' without one. */
export function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.indexOf('/')));
}

export function removalRefused(path: string): BigtableError {
  return new BigtableError(Code.ABORTED, `a file next to ${quote(path)} was removed since the creation began`);
}
