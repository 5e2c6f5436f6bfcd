/** Metrics, probes and logs of `edubba serve`, seen from outside. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect, type Database, RowMutation } from '../../src/embedded/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import { Child, documents, edubba, output, temporaryDirectory } from './run.ts';

async function serve(
  t: TestContext,
  words: readonly string[] = [],
): Promise<{ server: Child; address: string; metrics: string; directory: string }> {
  const directory = join(await temporaryDirectory(t), 'data');
  const server = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0', ...words]);
  const address = await server.address();
  const metrics = /^metrics: (http:\/\/\S+)\/metrics/m.exec(server.out)?.[1] ?? assert.fail(server.out);
  return { server, address, metrics, directory };
}

async function databaseAt(t: TestContext, address: string): Promise<Database> {
  const database = await connect(address);
  t.after(() => database.close());
  return database;
}

const pageOf = async (metrics: string): Promise<string> => (await fetch(`${metrics}/metrics`)).text();

/** The sum over all samples of that name whose labels have that text. */
function sumOf(page: string, name: string, labels = ''): number {
  const samples = [...page.matchAll(new RegExp(`^${name}(\\{.*\\})? (\\S+)$`, 'gm'))];
  assert.ok(samples.length > 0, `${name} is on the page`);
  return samples.filter(([, its = '']) => its.includes(labels)).reduce((sum, [, , value]) => sum + Number(value), 0);
}

/** A page that holds what happened until now: pages are kept for a second. */
async function pageWhere(metrics: string, holds: (page: string) => boolean): Promise<string> {
  for (;;) {
    const page = await pageOf(metrics);
    if (holds(page)) return page;
    await new Promise((resolve) => systemClock.timer(100, () => resolve(undefined)));
    await systemClock.yield();
  }
}

test('metrics tell of calls, promtool finds no fault with them, and probes of the server’s end', async (t) => {
  const { server, address, metrics } = await serve(t);
  const database = await databaseAt(t, address);
  const table = await database.createTable('t', { families: { f: {} } });
  await table.apply(new RowMutation('r').set('f:q', 'v'));
  for (let i = 0; i < 10; i++) await table.get('r');
  const page = await pageWhere(
    metrics,
    (text) =>
      text.includes('google.bigtable.v2.Bigtable/ReadRows') &&
      sumOf(text, 'edubba_calls_total', 'Bigtable/ReadRows') === 10,
  );
  assert.equal(sumOf(page, 'edubba_calls_total', 'Bigtable/MutateRow"'), 1);
  assert.equal(sumOf(page, 'edubba_call_duration_seconds_count', 'Bigtable/ReadRows'), 10);
  assert.equal(sumOf(page, 'edubba_tables'), 1);
  assert.equal(sumOf(page, 'edubba_tablets_unserved'), 0);
  assert.equal(sumOf(page, 'edubba_ready'), 1);
  assert.equal(sumOf(page, 'edubba_build_info'), 1);
  for (const name of [
    'edubba_log_appended_bytes_total',
    'edubba_memtables_used_bytes',
    'edubba_disk_free_bytes',
    'edubba_connections',
    'edubba_request_budget_limit_bytes',
    'edubba_block_cache_limit_bytes',
  ]) {
    assert.ok(sumOf(page, name) > 0, name);
  }
  const promtool = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
  if (promtool.error === undefined) assert.deepEqual([promtool.status, promtool.stdout, promtool.stderr], [0, '', '']);
  else t.diagnostic('promtool is not installed');
  assert.equal((await fetch(`${metrics}/healthz`)).status, 200);
  assert.equal((await fetch(`${metrics}/readyz`)).status, 200);
  server.process.kill('SIGTERM');
  assert.equal(await server.ended(), 0, server.err);
  assert.equal(server.err, '');
  await assert.rejects(fetch(`${metrics}/healthz`));
});

test('while the server ends, calls go on, and it is not ready', async (t) => {
  const { server, address, metrics } = await serve(t);
  const database = await databaseAt(t, address);
  const table = await database.createTable('t', { families: { f: {} } });
  for (let i = 0; i < 40; i++) await table.apply(new RowMutation(`r${i}`).set('f:q', 'v'.repeat(500_000)));
  // an answer that is not read to its end keeps its call under way
  const rows = table.scan()[Symbol.asyncIterator]();
  await rows.next();
  server.process.kill('SIGTERM');
  while (!/^stopping on SIGTERM$/m.test(server.out)) await once(server.process.stdout as NodeJS.ReadableStream, 'data');
  const ready = await fetch(`${metrics}/readyz`);
  assert.deepEqual([ready.status, await ready.text()], [503, 'the server is stopping\n']);
  assert.equal((await fetch(`${metrics}/healthz`)).status, 200);
  assert.match(await pageOf(metrics), /^edubba_ready [01]$/m);
  await rows.return?.();
  await database.close();
  assert.equal(await server.ended(), 0, server.err);
});

test('the figures of all threads are on one page', async (t) => {
  const { server, address, metrics } = await serve(t, ['--tablet-servers', '2']);
  const first = await databaseAt(t, address);
  await first.createTable('t', { families: { f: {} } });
  const databases = await Promise.all(Array.from({ length: 8 }, () => databaseAt(t, address)));
  await Promise.all(
    databases.map(async (database) => {
      for (let i = 0; i < 5; i++) await database.table('t').get('r');
    }),
  );
  const page = await pageWhere(
    metrics,
    (text) => text.includes('Bigtable/ReadRows') && sumOf(text, 'edubba_calls_total', 'Bigtable/ReadRows') === 40,
  );
  assert.equal(sumOf(page, 'edubba_tables'), 1);
  assert.ok(sumOf(page, 'edubba_tablets') >= 3);
  assert.equal(sumOf(page, 'edubba_request_budget_limit_bytes'), 2 * Math.floor((128 * 1024 * 1024) / 2));
  for (const database of [first, ...databases]) await database.close();
  server.process.kill('SIGTERM');
  assert.equal(await server.ended(), 0, server.err);
});

test('an address for metrics that is taken: an error if it was set, else the server goes on without', async (t) => {
  const directory = join(await temporaryDirectory(t), 'data');
  const holder = createServer();
  t.after(() => holder.close());
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  const { port } = holder.address() as AddressInfo;
  const refused = await edubba([
    'serve',
    '--dir',
    directory,
    '--address',
    '127.0.0.1:0',
    '--metrics-address',
    `127.0.0.1:${port}`,
  ]);
  assert.deepEqual([refused.status, refused.out], [1, '']);
  assert.match(refused.err, new RegExp(`^edubba: ALREADY_EXISTS: 127\\.0\\.0\\.1:${port} is already in use`));
  const nonsense = await edubba([
    'serve',
    '--dir',
    directory,
    '--address',
    '127.0.0.1:0',
    '--metrics-address',
    'nowhere',
  ]);
  assert.match(nonsense.err, /argument 'nowhere' is invalid. It must be HOST:PORT .*; or off/);
  const server = new Child(t, ['serve', '--dir', directory, '--address', `127.0.0.1:${port - 1000}`]);
  await server.address();
  assert.match(server.out, new RegExp(`^metrics: off, because 127\\.0\\.0\\.1:${port} is already in use`, 'm'));
  server.process.kill('SIGTERM');
  assert.equal(await server.ended(), 0, server.err);
  assert.equal(server.err, '');
  const off = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0', '--metrics-address', 'off']);
  await off.address();
  assert.match(off.out, /^metrics: off$/m);
});

test('an address for metrics that other machines can reach is warned of', async (t) => {
  const directory = join(await temporaryDirectory(t), 'data');
  const server = new Child(t, [
    'serve',
    '--dir',
    directory,
    '--address',
    '127.0.0.1:0',
    '--metrics-address',
    '0.0.0.0:0',
  ]);
  await server.address();
  assert.match(
    server.err,
    /^\S+ warn other machines can read the metrics without authentication address=0\.0\.0\.0:\d+$/m,
  );
});

test('logs as JSON: each call in the access log, slow ones with what they cost, nothing of values and keys', async (t) => {
  const { server, address } = await serve(t, ['--log-format', 'json', '--access-log', '--slow-ms', '1']);
  await output(['--address', address, 'createtable', 'web', 'families=f:never']);
  await output(['--address', address, 'set', 'web', 'secret-row', 'f:q=secret-value']);
  await output(['--address', address, 'lookup', 'web', 'secret-row']);
  await edubba(['--address', address, 'lookup', 'a\nb', 'r']);
  server.process.kill('SIGTERM');
  assert.equal(await server.ended(), 0, server.err);
  const lines = documents(server.err);
  const access = lines.filter(({ log }) => log === 'access');
  const method = (name: string): Record<string, unknown> | undefined =>
    access.find((line) => String(line['method']).endsWith(`/${name}`));
  assert.deepEqual(
    [method('CreateTable')?.['code'], method('CreateTable')?.['principal'], method('CreateTable')?.['level']],
    ['OK', 'anonymous', 'info'],
  );
  assert.deepEqual(
    [method('MutateRow')?.['target'], method('ReadRows')?.['target'], method('ReadRows')?.['rows']],
    ['projects/local/instances/local/tables/web', 'projects/local/instances/local/tables/web', 1],
  );
  const slow = lines.find(
    ({ message, method: its }) => message === 'a slow call' && String(its).endsWith('/CreateTable'),
  );
  assert.ok(Number(slow?.['ms']) > 1, 'the first call waits for a part of the program to be loaded');
  assert.doesNotMatch(server.err, /secret/);
});

test('if no process reads the log, calls are answered, lines are dropped and counted, and the server ends', async (t) => {
  const { server, address, metrics } = await serve(t, ['--access-log']);
  server.process.stderr?.pause();
  const database = await databaseAt(t, address);
  const table = await database.createTable('t', { families: { f: {} } });
  for (let i = 0; i < 150; i++) await Promise.all(Array.from({ length: 50 }, () => table.get('r')));
  const page = await pageWhere(
    metrics,
    (text) => text.includes('Bigtable/ReadRows') && sumOf(text, 'edubba_calls_total', 'Bigtable/ReadRows') === 7500,
  );
  assert.ok(sumOf(page, 'edubba_log_lines_dropped_total') > 100, page);
  await database.close();
  server.process.kill('SIGTERM');
  const [status] = server.process.exitCode === null ? await once(server.process, 'exit') : [server.process.exitCode];
  assert.equal(status, 0);
  server.process.stderr?.destroy();
});
