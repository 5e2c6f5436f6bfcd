/** Files that users name: how they are read, and a warning of those that other users of the machine may touch. */
import { readFile } from 'node:fs/promises';
import { BigtableError, Code } from '../../base/index.ts';
import type { Logger } from '../../env/index.ts';
import { modeForOthers } from '../../platform/index.ts';

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

/**
 * Warns if other users may read or write a secret file, or write a trusted one. `what`: the file in words. An undefined
 * file is none.
 */
export async function warnOfOthers(
  file: string | undefined,
  what: string,
  kind: 'secret' | 'trusted',
  logger: Logger,
): Promise<void> {
  const mode = file === undefined ? undefined : await modeForOthers(file, kind);
  if (file === undefined || mode === undefined) return;
  const harm =
    kind === 'secret' ? 'can be read by other users of this machine' : 'can be changed by other users of this machine';
  logger.warn(`${what} ${harm}`, { file, mode, remedy: `chmod ${kind === 'secret' ? '600' : 'go-w'} ${file}` });
}
