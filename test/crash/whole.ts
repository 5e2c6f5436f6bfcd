/** Asserts that a database at rest is whole, by `edubba inspect check`. */
import assert from 'node:assert/strict';
import type { OpenDatabase } from '../../src/boot/index.ts';
import { checkDatabase } from '../../src/inspect/index.ts';
import { readAllLockFiles } from '../../src/platform/index.ts';

/** Every block, order and reference, and no file or log that nothing refers to. */
export async function assertWhole({ env }: OpenDatabase, when: string): Promise<void> {
  const { findings, orphans } = await checkDatabase({
    ...env,
    readAllLockFiles: () => readAllLockFiles(env.fileSystem),
  });
  assert.deepEqual(findings, [], when);
  assert.deepEqual(orphans, [], `${when}: nothing is left behind`);
}
