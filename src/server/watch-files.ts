/**
 * Watches files by polling their time, size and identity, so links that are swapped, as cluster managers do, and
 * replaced files are seen too. It works on every file system, and needs no descriptors.
 */
import { stat } from 'node:fs/promises';
import type { Timer } from '../env/index.ts';
import type { ApiEnv } from '../wire/index.ts';

const POLL_MS = 2000;

/**
 * Calls `reload` when one of the files has changed. Returns a function that stops it. A failure is logged, under the
 * name `what`, and the next change is tried again.
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
  const reloadAndLog = async (): Promise<void> => {
    try {
      await reload();
      env.logger.info(`${what} reloaded`, { files: paths.join(' ') });
    } catch (error) {
      env.logger.error(`cannot reload ${what}; the old ones stay in use`, {
        files: paths.join(' '),
        message: error instanceof Error ? error.message : String(error),
      });
    }
  };
  const poll = async (): Promise<void> => {
    const now = await marksOf(paths);
    if (seen !== undefined && now !== seen) await reloadAndLog();
    seen = now;
    if (!stopped) timer = env.clock.timer(POLL_MS, () => void poll());
  };
  void poll();
  return () => {
    stopped = true;
    timer?.cancel();
  };
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
