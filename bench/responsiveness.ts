/**
 * The longest time the server's event loop was held, under what is large: a row of 100 MB written and read, 100,000 mutations in one request, a
 * full filtered scan. The server runs in this process, its client in another, so that the delay measured is the server's alone.
 *
 *   npm run bench -- responsiveness
 */
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { connect, openDatabase } from '../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../src/embedded/index.ts';
import { startServer } from '../src/server/index.ts';

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

async function client(address: string): Promise<void> {
  const { service, env, close } = await connect(address);
  const database = overService(service, env.requestBudget, close);
  for (const [index, [, run]] of steps.entries()) {
    await new Promise<void>((resolve) => {
      process.once('message', () => resolve());
      process.send?.({ ready: index });
    });
    await run(database);
    process.send?.({ done: index });
  }
  await database.close();
  process.disconnect();
}

async function serverSide(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-responsive-'));
  const { service, env, close } = await openDatabase({ directory });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  const child = fork(fileURLToPath(import.meta.url), [server.address], { stdio: 'inherit', execArgv: [] });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const lines: Record<string, string | number>[] = [];
  let start = 0;
  child.on('message', (message: { ready?: number; done?: number }) => {
    if (message.ready !== undefined) {
      delay.reset();
      delay.enable();
      start = performance.now();
      child.send('go');
    } else if (message.done !== undefined) {
      delay.disable();
      lines.push({
        step: steps[message.done]?.[0] ?? '',
        seconds: Number(((performance.now() - start) / 1000).toFixed(2)),
        // the histogram counts its own 1 ms timer
        'longest delay ms': Number((delay.max / 1e6 - 1).toFixed(1)),
        'p99 ms': Number(Math.max(0, delay.percentile(99) / 1e6 - 1).toFixed(1)),
      });
    }
  });
  const code = await new Promise((resolve) => child.on('exit', resolve));
  console.table(lines);
  await server.close();
  await close();
  await rm(directory, { recursive: true });
  process.exitCode = code === 0 && lines.length === steps.length ? 0 : 1;
}

const address = process.argv[2];
if (process.send !== undefined && address !== undefined) await client(address);
else await serverSide();
