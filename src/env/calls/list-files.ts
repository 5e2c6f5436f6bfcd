/** Reads a list of the lock service page by page. */
import { assert } from '../../base/index.ts';
import type { LockService, SmallFile } from '../seams/lock-service.ts';

/** All files whose path starts with `prefix`, by path. A file that exists from the first page to the last is in it. */
export async function listFiles(lockService: LockService, prefix: string): Promise<SmallFile[]> {
  const all: SmallFile[] = [];
  for (;;) {
    const last = all.at(-1)?.path;
    const page = await lockService.list(prefix, last);
    const first = page[0];
    if (first === undefined) return all;
    assert(last === undefined || first.path > last, 'the pages of a list ascend');
    all.push(...page);
  }
}
