/**
 * Files of a second store, called once at a time. A directory of another machine that hangs keeps a thread of Node's
 * pool with each call; the pool has four, which the files of the database need.
 */
import { Places } from '../../base/index.ts';
import type { StoredFiles } from '../../env/index.ts';

export function oneCallFiles(files: StoredFiles): StoredFiles {
  const places = new Places(1);
  return {
    create: (path) =>
      places.take(async () => {
        const writer = await files.create(path);
        return {
          append: (bytes) => places.take(() => writer.append(bytes)),
          close: () => places.take(() => writer.close()),
          abort: () => places.take(() => writer.abort()),
        };
      }),
    size: (path) => places.take(() => files.size(path)),
    read: (...wanted) => places.take(() => files.read(...wanted)),
    list: (prefix) => places.take(() => files.list(prefix)),
    delete: (path) => places.take(() => files.delete(path)),
  };
}
