/** Lists of files with their sizes, for file systems in a directory. */
import type { FileInfo } from '../../env/index.ts';
import { isMissing, systemError } from './posix-errors.ts';

/** Concurrent requests of sizes. */
const MAX_CONCURRENT_SIZES = 16;

/** The files of the walk whose path begins with `prefix`, by path. One that is deleted meanwhile is left out. */
export async function listFilesOf(
  walk: AsyncIterable<{ readonly files: readonly string[] }>,
  prefix: string,
  sizeOf: (path: string) => Promise<number>,
): Promise<FileInfo[]> {
  const infoOf = async (path: string): Promise<FileInfo | undefined> => {
    try {
      return { path, sizeBytes: await sizeOf(path) };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  };
  const found: FileInfo[] = [];
  try {
    for await (const { files } of walk) {
      const paths = files.filter((path) => path.startsWith(prefix));
      for (let at = 0; at < paths.length; at += MAX_CONCURRENT_SIZES) {
        const infos = await Promise.all(paths.slice(at, at + MAX_CONCURRENT_SIZES).map(infoOf));
        for (const info of infos) if (info) found.push(info);
      }
    }
  } catch (error) {
    throw systemError(error, `listing ${prefix}`);
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}
