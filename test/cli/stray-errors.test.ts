/**
 * Uncaught errors: a server logs them, counts them, and goes on or ends in order; a program that uses the
 * library keeps its own ways.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Child, output, temporaryDirectory } from './run.ts';

const here = fileURLToPath(import.meta.url);

/**
 * Loaded before the command, in all its threads: on SIGUSR2 an error comes up that is not caught, as the variable
 * STRAY_ERROR says: a rejection or an exception, in the main thread or in those of the tablet servers (a loader has
 * threads of its own). CommonJS, since Node 20 loads nothing else before the program of a thread.
 */
const STRAY = `
const { BroadcastChannel, isMainThread, workerData } = require('node:worker_threads');
const [where, what] = process.env.STRAY_ERROR.split(' ');
const channel = new BroadcastChannel('edubba-test-stray');
function strayBug() {
  const error = new Error('a stray ' + what);
  if (what === 'rejection') void Promise.reject(error);
  else setImmediate(() => { throw error; });
}
if (isMainThread) process.on('SIGUSR2', () => (where === 'main' ? strayBug() : channel.postMessage('now')));
else if (workerData?.tabletServers !== undefined) channel.onmessage = strayBug;
channel.unref();
`;

async function serve(t: TestContext, stray: string, more: readonly string[] = []) {
  const above = await temporaryDirectory(t);
  const [directory, preload] = [join(above, 'data'), join(above, 'stray.cjs')];
  await writeFile(preload, STRAY);
  const words = ['serve', '--dir', directory, '--address', '127.0.0.1:0', ...more];
  const server = new Child(t, words, { preload, environment: { STRAY_ERROR: stray } });
  const address = await server.address();
  await output(['--address', address, 'createtable', 't', 'families=f']);
  return { directory, server, address };
}

/** Waits until the server has complained so. */
async function complained(server: Child, message: RegExp): Promise<void> {
  while (!message.test(server.err)) {
    const data = once(server.process.stderr as NodeJS.ReadableStream, 'data').then(() => true);
    if (!(await Promise.race([data, server.ended().then(() => false)]))) assert.match(server.err, message);
  }
}

describe('an uncaught error, in edubba serve', () => {
  for (const servers of ['1', '2']) {
    test(`a rejection in the main thread is logged with its stack and counted; the server goes on (${servers} tablet servers)`, async (t) => {
      const { server, address } = await serve(t, 'main rejection', ['--tablet-servers', servers]);
      for (const count of [1, 2]) {
        server.process.kill('SIGUSR2');
        await complained(
          server,
          new RegExp(
            `^\\S+ error .* count=${count}\\n[\\s\\S]*a stray rejection[\\s\\S]*strayBug[\\s\\S]*stray\\.cjs`,
            'm',
          ),
        );
      }
      await output(['--address', address, 'set', 't', 'r', 'f:q=after']);
      assert.match(await output(['--address', address, 'read', 't']), /"after"/);
      server.process.kill('SIGTERM');
      assert.equal(await server.ended(), 0, server.err);
    });
  }

  test('a rejection in the threads of tablet servers is logged and counted, and each goes on', async (t) => {
    const { server, address } = await serve(t, 'threads rejection', ['--tablet-servers', '2']);
    server.process.kill('SIGUSR2');
    for (const thread of [0, 1])
      await complained(
        server,
        new RegExp(`^\\S+ error .* count=1 thread=${thread}\\n[\\s\\S]*a stray rejection[\\s\\S]*strayBug`, 'm'),
      );
    await output(['--address', address, 'set', 't', 'r', 'f:q=after']);
    assert.doesNotMatch(server.err, /has failed/);
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
  });

  test('an exception in the threads of tablet servers is logged with its stack; others take their place', async (t) => {
    const { server, address } = await serve(t, 'threads exception', ['--tablet-servers', '2']);
    server.process.kill('SIGUSR2');
    for (const thread of [0, 1])
      await complained(
        server,
        new RegExp(
          `^\\S+ error the thread of a tablet server has failed thread=${thread} .*a stray exception.*\\n[\\s\\S]*stray\\.cjs`,
          'm',
        ),
      );
    await output(['--address', address, 'set', 't', 'r', 'f:q=after']);
    assert.match(await output(['--address', address, 'read', 't']), /"after"/);
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
  });

  for (const servers of ['1', '2']) {
    test(`an exception in the main thread ends the server in order, with status 1 (${servers} tablet servers)`, async (t) => {
      const { directory, server, address } = await serve(t, 'main exception', [
        '--tablet-servers',
        servers,
        '--durability',
        'buffered',
      ]);
      await output(['--address', address, 'set', 't', 'r', 'f:q=before']);
      server.process.kill('SIGUSR2');
      assert.equal(await server.ended(), 1, server.err);
      assert.match(server.err, /^\S+ error an exception .* count=1\n[\s\S]*a stray exception[\s\S]*strayBug/m);
      assert.match(server.err, /^edubba: INTERNAL: .*exception/m);
      assert.match(server.out, /^stopping/m);
      // an end in order loses nothing, also where writes are acknowledged before they are on the disk
      assert.match(await output(['--dir', directory, 'read', 't']), /"before"/);
    });
  }
});

describe('the library', () => {
  test('leaves uncaught errors to the program that uses it', async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const program = join(dirname(here), `library-user${extname(here)}`);
    for (const [what, status] of [
      ['rejection', 1],
      ['handled', 0],
    ] as const) {
      const child = spawn(process.execPath, [...process.execArgv, program, directory, what], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      let [out, err] = ['', ''];
      child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
      const [code] = await once(child, 'close');
      assert.equal(code, status, err);
      assert.equal(out, '0 handlers of the library\n', err);
      if (what === 'rejection') assert.match(err, /Error: the program's own bug/);
    }
  });
});
