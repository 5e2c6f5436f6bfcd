/**
 * The longest time the server's event loop was held, under what is large: a row of 100 MB written and read, 100,000 mutations in one request, a
 * full filtered scan. The server is the built command line in a process of its own, the client is this one: the delay is the server's alone.
 *
 *   npm run bench -- responsiveness
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../src/embedded/index.ts';
import type { Held } from './responsiveness/probe.ts';
import { startServer } from './serving/server-process.ts';

const steps: readonly (readonly [string, (database: Database) => Promise<void>])[] = [
  ['create a table', async (database) => void (await database.createTable('t', { families: { f: {}, g: {} }, granularity: 'millis' }))],
  [
    'write a row of 100 MB, in cells of 5 MB',
    async (database) => {
      for (let i = 0; i < 20; i++) await database.table('t').apply(new RowMutation('large').set(`f:${i}`, Buffer.alloc(5_000_000, i), 1000));
    },
  ],
  ['read it', async (database) => void (await database.table('t').get('large'))],
  [
    '100,000 mutations in one request',
    async (database) => {
      const mutation = new RowMutation('many');
      for (let i = 0; i < 100_000; i++) mutation.set(`g:${i}`, 'some value', 1000);
      await database.table('t').apply(mutation);
    },
  ],
  ['read that row', async (database) => void (await database.table('t').get('many'))],
  [
    'write 100,000 rows of 1000 bytes in batches of 1000',
    async (database) => {
      for (let from = 0; from < 100_000; from += 1000) {
        await database.table('t').applyAll(Array.from({ length: 1000 }, (_, i) => new RowMutation(`row${from + i}`).set('f:x', Buffer.alloc(1000, i), 1000)));
      }
    },
  ],
  [
    'a full filtered scan: no value matches',
    async (database) => {
      for await (const _ of database.table('t').scan({ prefix: 'row', filter: { kind: 'valueRegex', regex: '.*needle.*' } }));
    },
  ],
];

/** All threads of this process, the client, give way to the server's: what it computes itself must not look like a delay of the server's. Linux alone has priorities of threads. */
function giveWay(): void {
  if (process.platform !== 'linux') return;
  for (const thread of readdirSync('/proc/self/task')) {
    try {
      setPriority(Number(thread), constants.priority.PRIORITY_LOW);
    } catch (error) {
      if ((error as { info?: { code?: string } }).info?.code !== 'ESRCH') throw error; // it has ended since it was listed
    }
  }
}

/** How long its event loop was held since the last call. */
async function heldSince(server: ChildProcess): Promise<Held> {
  server.send('how long');
  const [held] = (await once(server, 'message')) as [Held];
  return held;
}

const directory = await mkdtemp(join(tmpdir(), 'edubba-responsive-'));
const probe = new URL('./responsiveness/probe.js', import.meta.url).href;
const { child: server, address, stop } = await startServer(directory, { nodeOptions: ['--import', probe], ipc: true });
giveWay();
try {
  const { service, env, close } = await connect(address);
  const database = overService(service, env.requestBudget, close);
  const lines: Record<string, string | number>[] = [];
  await heldSince(server);
  for (const [step, run] of steps) {
    const start = performance.now();
    await run(database);
    const seconds = Number(((performance.now() - start) / 1000).toFixed(2));
    const { longestMs, p99Ms } = await heldSince(server);
    lines.push({ step, seconds, 'longest delay ms': Number(longestMs.toFixed(1)), 'p99 ms': Number(p99Ms.toFixed(1)) });
  }
  await database.close();
  console.table(lines);
} finally {
  await stop();
  await rm(directory, { recursive: true });
}
