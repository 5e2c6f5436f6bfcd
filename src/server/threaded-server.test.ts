import assert from 'node:assert/strict';
import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, connect as connectSocket, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { connect } from '../boot/index.ts';
import { requestContext } from '../env/index.ts';
import { startThreadedServer } from './threaded-server.ts';

const TABLE = 'projects/p/instances/i/tables/t';

test('two threads on one port: every connection sees every row, and the port is free afterwards, time and again', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-listener-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  for (const round of [1, 2]) {
    const server = await startThreadedServer({ address: '127.0.0.1:0', database: { directory, tabletServers: 2 } });
    const [host, port] = server.address.split(':') as [string, string];
    assert.ok(fstatSync(0).isSocket());
    const connections = await Promise.all(Array.from({ length: 8 }, () => connect(server.address)));
    const context = requestContext({ budget: server.database.env.requestBudget });
    const [first] = connections;
    const families = [{ name: 'f' }];
    if (round === 1)
      await first?.service.createTable(context, {
        name: TABLE,
        families,
        splits: ['b', 'c', 'd'],
        granularity: 'millis',
        deletionProtection: false,
      });
    for (const [i, { service }] of connections.entries()) {
      const mutations = [
        { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') },
      ] as const;
      await service.mutateRow(context, TABLE, { row: `${'abcd'[i % 4]}${i}`, mutations });
    }
    for (const { service } of connections) {
      const rows: string[] = [];
      for await (const { fragments } of service.readRows(context, { table: TABLE }))
        rows.push(...fragments.map(({ row }) => row));
      assert.deepEqual(rows, ['a0', 'a4', 'b1', 'b5', 'c2', 'c6', 'd3', 'd7']);
    }
    const counters = [...(await server.database.counters()).values()];
    assert.ok(counters.reduce((sum, counts) => sum + (counts['transport.callsPassedOn'] ?? 0), 0) > 0);
    for (const { close } of connections) await close();
    await server.close();
    const socket = connectSocket(Number(port), host);
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
    assert.ok(!fstatSync(0).isSocket());
  }
});

test('connections are spread evenly over the threads, also after some have ended, and after a new start', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-accepts-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  for (const tabletServers of [2, 3]) {
    const server = await startThreadedServer({ address: '127.0.0.1:0', database: { directory, tabletServers } });
    const [host, port] = server.address.split(':') as [string, string];
    const sockets = new Set<Socket>();
    const open = async (count: number): Promise<void> => {
      const opened = Array.from({ length: count }, () => connectSocket(Number(port), host));
      for (const socket of opened) sockets.add(socket);
      await Promise.all(opened.map((socket) => once(socket, 'connect')));
    };
    const counts = async (): Promise<number[]> => {
      for (;;) {
        const reports = await server.database.reports();
        const found = reports.map(({ gauges }) => gauges['wire.connections'] ?? 0);
        if (found.reduce((sum, each) => sum + each, 0) === sockets.size) return found.sort();
      }
    };
    const even = (each: number): number[] => new Array<number>(tabletServers).fill(each);
    await open(4 * tabletServers);
    assert.deepEqual(await counts(), even(4));
    for (const socket of [...sockets].slice(0, 2 * tabletServers)) {
      socket.destroy();
      sockets.delete(socket);
    }
    await counts();
    for (let i = 0; i < 2 * tabletServers; i++) await open(1);
    assert.deepEqual(await counts(), even(4));
    for (const socket of sockets) socket.destroy();
    await server.close();
  }
});

test('an address in use is refused, and nothing stays open', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const starting = startThreadedServer({
    address: `127.0.0.1:${port}`,
    database: { directory: join(tmpdir(), 'edubba-never-made'), tabletServers: 2 },
  });
  await assert.rejects(starting, (error) => error instanceof BigtableError && error.code === Code.ALREADY_EXISTS);
  assert.ok(!fstatSync(0).isSocket());
  other.close();
});

test('a public address without authentication is refused before anything is served, and the directory is free again', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-guard-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const open = { directory, tabletServers: 2 };
  const refused = startThreadedServer({ address: '0.0.0.0:0', database: open });
  await assert.rejects(
    refused,
    (error) =>
      error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT && /insecure-public/.test(error.message),
  );
  assert.ok(!fstatSync(0).isSocket());
  await (await startThreadedServer({ address: '127.0.0.1:0', database: open })).close();
});
