/**
 * Looks now and then whether files have changed, by time, size and identity: links that are swapped, as cluster managers do, and files that take
 * another's place are seen too. It works on every file system, and needs no descriptor a file.
 */
import { readFile, stat } from 'node:fs/promises';
import { BigtableError, Code } from '../base/index.ts';
import type { Timer } from '../env/index.ts';
import type { ApiEnv } from '../wire/index.ts';

const LOOK_MS = 2000;

/**
 * Calls `reload` whenever one of the files has changed, from now on; answers how to stop. Where it fails the old contents stay in use, and
 * the log is told, under the name `what`; the next change is tried again.
 */
export function watchFiles(
  what: string,
  paths: readonly string[],
  env: Pick<ApiEnv, 'clock' | 'logger'>,
  reload: () => Promise<void>,
): () => void {
  let timer: Timer | undefined;
  let stopped = false;
  let seen: string | undefined;
  const renew = async (): Promise<void> => {
    try {
      await reload();
      env.logger.info(`${what} were read anew`, { files: paths.join(' ') });
    } catch (error) {
      env.logger.error(`${what} could not be read anew; the old ones stay in use`, {
        files: paths.join(' '),
        message: error instanceof Error ? error.message : String(error),
      });
    }
  };
  const look = async (): Promise<void> => {
    const now = await marksOf(paths);
    if (seen !== undefined && now !== seen) await renew();
    seen = now;
    if (!stopped) timer = env.clock.timer(LOOK_MS, () => void look());
  };
  void look();
  return () => {
    stopped = true;
    timer?.cancel();
  };
}

/** INVALID_ARGUMENT, with the path, where it cannot be read. */
export function readInput(path: string): Promise<Buffer> {
  return readFile(path).catch((cause: unknown) => {
    throw new BigtableError(
      Code.INVALID_ARGUMENT,
      `cannot read ${path}: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  });
}

async function marksOf(paths: readonly string[]): Promise<string> {
  const marks = paths.map(async (path) => {
    try {
      const { mtimeMs, size, ino } = await stat(path);
      return `${mtimeMs} ${size} ${ino}`;
    } catch (error) {
      return String(error);
    }
  });
  return (await Promise.all(marks)).join();
}
