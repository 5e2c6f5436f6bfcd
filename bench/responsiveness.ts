/**
 * The longest time the server's event loop was held, under what is large: a row of 100 MB written and read, 100,000
 * mutations in one request, a full filtered scan. The server is the built command line in a process of its own, the
 * client is this one: the delay is the server's alone. Then each attack of responsiveness/attacks.ts: how long others
 * wait for their answers meanwhile, and how long the loop is held, compared with an idle process on the same machine.
 *
 *   npm run bench -- responsiveness [--only=large|attacks] [--secs=5] [--attacks='NAME;...']
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../src/embedded/index.ts';
import { ATTACKS } from './responsiveness/attacks.ts';
import { OtherCallers } from './responsiveness/other-callers.ts';
import type { Held } from './responsiveness/probe.ts';
import { startServer } from './serving/server-process.ts';

const steps: readonly (readonly [string, (database: Database) => Promise<void>])[] = [
  [
    'create a table',
    async (database) => void (await database.createTable('t', { families: { f: {}, g: {} }, granularity: 'millis' })),
  ],
  [
    'write a row of 100 MB, in cells of 5 MB',
    async (database) => {
      for (let i = 0; i < 20; i++)
        await database.table('t').apply(new RowMutation('large').set(`f:${i}`, Buffer.alloc(5_000_000, i), 1000));
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
        await database
          .table('t')
          .applyAll(
            Array.from({ length: 1000 }, (_, i) =>
              new RowMutation(`row${from + i}`).set('f:x', Buffer.alloc(1000, i), 1000),
            ),
          );
      }
    },
  ],
  [
    'a full filtered scan: no value matches',
    async (database) => {
      for await (const _ of database
        .table('t')
        .scan({ prefix: 'row', filter: { kind: 'valueRegex', regex: '.*needle.*' } }));
    },
  ],
];

/**
 * All threads of this process, the client, give way to the server's: what it computes itself must not look like a delay
 * of the server's. Linux alone has priorities of threads.
 */
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

const option = (name: string, fallback: string): string =>
  process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback;
const PROBE = new URL('./responsiveness/probe.js', import.meta.url).href;
const ATTACKER = fileURLToPath(new URL('./responsiveness/attacker.js', import.meta.url));
const CERTIFICATES = fileURLToPath(new URL('../../test/certificates/', import.meta.url));
const TLS_WORDS = [
  '--tls-cert',
  join(CERTIFICATES, 'server.pem'),
  '--tls-key',
  join(CERTIFICATES, 'server.key'),
  '--insecure-public',
];
const MIB = 1024 * 1024;
const digits = (value: number): number => Number(value.toFixed(1));

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-responsive-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function largeSteps(directory: string): Promise<void> {
  const {
    child: server,
    address,
    stop,
  } = await startServer(directory, { nodeOptions: ['--import', PROBE], ipc: true });
  giveWay();
  try {
    const { service, env, close } = await connect(address);
    const database = overService(service, env, close);
    const lines: Record<string, string | number>[] = [];
    await heldSince(server);
    for (const [step, run] of steps) {
      const start = performance.now();
      await run(database);
      const seconds = Number(((performance.now() - start) / 1000).toFixed(2));
      const { longestMs, p99Ms } = await heldSince(server);
      lines.push({ step, seconds, 'longest delay ms': digits(longestMs), 'p99 ms': digits(p99Ms) });
    }
    await database.close();
    console.table(lines);
  } finally {
    await stop();
  }
}

/** A process that does nothing: how late its event loop is called is the machine's own. */
function startIdle(): ChildProcess {
  return spawn(process.execPath, ['--import', PROBE, '-e', 'setInterval(() => {}, 1e6)'], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** The line of one attack: what others waited for, how long the loop was held, what was resident. */
async function underAttack(name: string, seconds: number, directory: string): Promise<Record<string, string | number>> {
  const attack = ATTACKS[name];
  if (!attack) throw new Error(`no attack "${name}"; there are ${Object.keys(ATTACKS).join(', ')}`);
  const options = {
    words: [...(attack.words ?? []), ...(attack.isTls ? TLS_WORDS : [])],
    descriptors: attack.descriptors,
  };
  const {
    child: server,
    address,
    stop,
  } = await startServer(directory, { ...options, nodeOptions: ['--import', PROBE], ipc: true });
  const idle = startIdle();
  try {
    const others = await OtherCallers.connect(address, attack.isTls ? join(CERTIFICATES, 'ca.pem') : undefined);
    await attack.prepare?.(others.database);
    await others.callFor(500);
    const attacker = fork(ATTACKER, [name, address, String(seconds * 4)]);
    try {
      if (process.platform === 'linux') setPriority(attacker.pid as number, constants.priority.PRIORITY_LOW);
      await once(attacker, 'message');
      await Promise.all([heldSince(server), heldSince(idle)]);
      const { calls, unanswered, medianMs, longestMs } = await others.callFor(seconds * 1000);
      const [held, idleHeld] = await Promise.all([heldSince(server), heldSince(idle)]);
      return {
        attack: name,
        calls,
        unanswered,
        'answered in, median ms': digits(medianMs),
        'longest ms': digits(longestMs),
        'loop held, longest ms': digits(held.longestMs),
        'idle process ms': digits(idleHeld.longestMs),
        'most resident MiB': Math.round(held.peakRssBytes / MIB),
      };
    } finally {
      attacker.kill('SIGKILL');
      await others.close().catch(() => {});
    }
  } finally {
    idle.kill('SIGKILL');
    await stop();
  }
}

if (option('only', 'large') === 'large') await inDirectory(largeSteps);
if (option('only', 'attacks') === 'attacks') {
  const lines: Record<string, string | number>[] = [];
  for (const name of option('attacks', '') === '' ? Object.keys(ATTACKS) : option('attacks', '').split(';')) {
    await inDirectory(async (directory) => {
      const line = await underAttack(name, Number(option('secs', '5')), directory);
      console.error(JSON.stringify(line));
      lines.push(line);
    });
  }
  console.table(lines);
}
