/** The behaviour suite against the embedded library, in memory and in a directory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '../../src/embedded/index.ts';
import { behaviourSuite } from './suite.ts';

behaviourSuite({
  name: 'embedded, in memory',
  start: async () => {
    const database = await open(':memory:');
    return { database, close: () => database.close() };
  },
});

behaviourSuite({
  name: 'embedded, in a directory',
  start: async () => {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-behaviour-'));
    const database = await open(directory);
    return {
      database,
      close: async () => {
        await database.close();
        await rm(directory, { recursive: true });
      },
    };
  },
});
