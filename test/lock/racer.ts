/**
 * One of the two processes of race.ts: told a round and a directory, it waits for the starting file and grasps at the
 * lock.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BigtableError, Code } from '../../src/base/index.ts';
import { type DirectoryLock, lockDirectory } from '../../src/platform/index.ts';

const root = process.argv[2] ?? '';
let held: DirectoryLock | undefined;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'release') {
    await held?.release();
    held = undefined;
    say('released');
    continue;
  }
  const [round, directory = ''] = line.split(' ');
  say('ready');
  const go = join(root, `go${round}`);
  while (!existsSync(go));
  try {
    held = await lockDirectory(join(root, directory));
    say('held');
  } catch (error) {
    say(error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION ? 'refused' : `failed: ${error}`);
  }
}
