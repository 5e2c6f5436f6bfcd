/** `edubba serve` as users start it, where the process may open few files. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { before, describe, test, type TestContext } from 'node:test';
import { Child, output, temporaryDirectory } from './run.ts';
import { userEnvironment } from './user-environment.ts';

/** `bin/edubba serve`, or `npm start`'s own script, under a limit of descriptors. Ends it once it listens. */
async function serve(
  t: TestContext,
  limit: number,
  directory: string,
  more: readonly string[] = [],
  start: readonly string[] = ['bin/edubba', 'serve'],
) {
  const words = [process.execPath, ...start, '--dir', directory, '--address', '127.0.0.1:0', ...more];
  const child = spawn('sh', ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: userEnvironment(),
  });
  t.after(() => child.kill('SIGKILL'));
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const before = out;
    out += text;
    // a second signal would end it at once
    if (/^listening on/m.test(out) && !/^listening on/m.test(before)) child.kill('SIGTERM');
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const [status, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { status: status ?? signal, out, err };
}

describe('edubba serve with few descriptors', () => {
  // a build would need more; npm test has built already
  before(() => execFileSync(process.execPath, ['scripts/build.mjs'], { stdio: 'ignore' }));

  for (const [limit, start] of [
    [24, undefined],
    [26, undefined],
    [40, undefined],
    [88, undefined],
    [26, ['scripts/start.mjs']],
  ] as const) {
    test(`ulimit -n ${limit}: says what the limit is and what is needed, and makes nothing (${start?.[0] ?? 'bin/edubba'})`, async (t) => {
      const above = await temporaryDirectory(t);
      const { status, out, err } = await serve(t, limit, join(above, 'data'), [], start);
      assert.equal(status, 1, err);
      assert.equal(out, '');
      assert.match(
        err,
        new RegExp(
          `^edubba: RESOURCE_EXHAUSTED: this process may open ${limit} files, and a database needs at least 89: raise .*ulimit -n 89.*\n$`,
        ),
      );
      assert.deepEqual(await readdir(above), []);
    });
  }

  test('several tablet servers need more, and say how much', async (t) => {
    const above = await temporaryDirectory(t);
    const { status, err } = await serve(t, 89, join(above, 'data'), ['--tablet-servers', '2']);
    assert.equal(status, 1);
    assert.match(err, /may open 89 files, and a database with 2 tablet servers needs at least \d+/);
  });

  test('what is said to be enough is enough', async (t) => {
    const above = await temporaryDirectory(t);
    assert.deepEqual((await serve(t, 89, join(above, 'one'))).err, '');
    const needed = Number(
      /at least (\d+)/.exec((await serve(t, 89, join(above, 'two'), ['--tablet-servers', '2'])).err)?.[1],
    );
    const { status, err } = await serve(t, needed, join(above, 'two'), ['--tablet-servers', '2']);
    assert.deepEqual([status, err], [0, '']);
  });
});

describe('edubba serve with several compactions at once', () => {
  test('needs more descriptors, says how many, and leaves fewer to connections', async (t) => {
    const above = await temporaryDirectory(t);
    const possible: number[] = [];
    for (const compactions of ['1', '4']) {
      const more = ['--compactions-at-once', compactions, '--max-connections', '1000'];
      const refused = await serve(t, 79, join(above, `refused-${compactions}`), more);
      const needed = Number(/at least (\d+)/.exec(refused.err)?.[1]);
      assert.equal((await serve(t, needed, join(above, `least-${compactions}`), more)).status, 0);
      const { err } = await serve(t, 300, join(above, compactions), more);
      possible.push(Number(/allows fewer connections.* possible=(\d+)/.exec(err)?.[1]));
    }
    const [one = 0, four = 0] = possible;
    assert.ok(four > 0 && four < one, `${one} during one compaction, ${four} during four`);
  });
});

/** Loaded before the command: SIGUSR2 takes every descriptor that is left, and gives all of them back the next time. */
const GREEDY = `
const { closeSync, openSync } = require('node:fs');
const held = [];
process.on('SIGUSR2', () => {
  if (held.length > 0) for (const fd of held.splice(0)) closeSync(fd);
  else try { for (;;) held.push(openSync('/dev/null')); } catch {}
  process.stderr.write('held ' + held.length + '\\n');
});
`;

describe('a server without a descriptor left', () => {
  test('closes new connections and lives on; callers are answered as soon as there are some', async (t) => {
    const above = await temporaryDirectory(t);
    const preload = join(above, 'greedy.cjs');
    await writeFile(preload, GREEDY);
    const server = new Child(t, ['serve', '--dir', join(above, 'data'), '--address', '127.0.0.1:0'], { preload });
    const address = await server.address();
    await output(['--address', address, 'createtable', 't', 'families=f']);
    const told = async (message: RegExp): Promise<void> => {
      server.process.kill('SIGUSR2');
      while (!message.test(server.err)) await once(server.process.stderr as NodeJS.ReadableStream, 'data');
    };
    await told(/^held [1-9]/m);
    const [host, port] = address.split(':') as [string, string];
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = connect(Number(port), host)
          .on('error', () => {})
          .resume();
        await once(socket, 'close');
      }),
    );
    assert.equal(server.process.exitCode, null, server.err);
    await told(/^held 0$/m);
    assert.equal(await output(['--address', address, 'ls']), 't\n');
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
  });
});
