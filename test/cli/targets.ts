/** Targets of commands: a fresh directory, or a fresh server in this process. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openDatabase } from '../../src/boot/index.ts';
import { startServer } from '../../src/server/index.ts';
import { temporaryDirectory } from './run.ts';

export interface Target {
  /** To stand before the command. */
  readonly words: readonly string[];
  /** To stand after a command on the backup store. */
  readonly storeWords: readonly string[];
  close(): Promise<void>;
}

export const TARGETS = {
  'a directory': async (t: TestContext): Promise<Target> => {
    const directory = await temporaryDirectory(t);
    return {
      words: ['--dir', join(directory, 'data')],
      storeWords: ['--backup-store', join(directory, 'backups')],
      close: async () => {},
    };
  },
  'a server': async (t: TestContext): Promise<Target> => {
    const backupStore = join(await temporaryDirectory(t), 'backups');
    const settings = { keepDeletedMs: 86_400_000, backupStore };
    const { service, env, close } = await openDatabase({ memory: true, settings });
    const server = await startServer({ service, env, address: '127.0.0.1:0' });
    let closed: Promise<void> | undefined;
    const end = (): Promise<void> => (closed ??= server.close().then(close));
    t.after(end);
    return { words: ['--address', server.address], storeWords: [], close: end };
  },
};
