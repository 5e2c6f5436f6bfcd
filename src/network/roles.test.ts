/** Master, tablet servers and client, each with a transport of its own, over loopback sockets. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SETTINGS } from '../../test/cluster.ts';
import { testEnv } from '../../test/raw-server.ts';
import { Client } from '../client/index.ts';
import { type Env, InlineWorkers, MemoryFileSystem, MemoryLockService, requestContext } from '../env/index.ts';
import { Master } from '../master/index.ts';
import { LIMITS } from '../model/index.ts';
import { nativeCodecs, systemRandom } from '../platform/index.ts';
import { CALL_CODEC } from '../protocol/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../tablet/index.ts';
import { TabletServer } from '../tabletserver/index.ts';
import { SECRET } from './fixtures.ts';
import { NetworkTransport } from './index.ts';

interface Process {
  readonly env: Env;
  readonly transport: NetworkTransport;
  readonly address: string;
}

describe('a cluster over sockets', () => {
  test('serves rows, passes errors on, and goes on when a server is gone', { timeout: 60_000 }, async () => {
    const [fileSystem, lockService, codecs] = [new MemoryFileSystem(), new MemoryLockService(), nativeCodecs()];
    const transports: NetworkTransport[] = [];
    const startProcess = async (name: string): Promise<Process> => {
      const own = testEnv();
      const options = {
        env: own,
        codec: CALL_CODEC,
        identity: { name, cluster: 'c', role: 'process' },
        secret: SECRET,
      };
      const transport = new NetworkTransport(options);
      transports.push(transport);
      const address = `127.0.0.1:${await transport.listen('127.0.0.1', 0)}/${name}`;
      const { clock } = own;
      const workers = new InlineWorkers({
        [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock }, job),
      });
      const env: Env = { ...own, random: systemRandom, fileSystem, lockService, transport, workers, codecs };
      return { env, transport, address };
    };
    const startServer = async (name: string) => {
      const { env, transport, address } = await startProcess(name);
      return { transport, server: await TabletServer.start({ env, address, settings: SETTINGS }) };
    };
    const [first, second] = [await startServer('s1'), await startServer('s2')];
    const master = await startProcess('master');
    const running = await Master.start({ env: master.env, address: master.address });
    const { env } = await startProcess('client');
    const client = await Client.open({ env, limits: LIMITS.default });
    const context = requestContext({ budget: env.requestBudget });

    const name = 'projects/p/instances/i/tables/t';
    const families = [{ name: 'f' }];
    const splits = ['row3', 'row6'];
    await client.createTable(context, { name, families, splits, granularity: 'millis', deletionProtection: false });
    await assert.rejects(
      client.createTable(context, { name, families, splits, granularity: 'millis', deletionProtection: false }),
      { code: 6 },
    );
    const value = (n: number): Buffer => Buffer.alloc(1000, n);
    const entries = Array.from({ length: 10 }, (_, n) => ({
      row: `row${n}`,
      mutations: [{ kind: 'setCell' as const, family: 'f', qualifier: 'q', timestamp: 1000, value: value(n) }],
    }));
    assert.deepEqual(new Set(await client.mutateRows(context, name, entries)), new Set([undefined]));
    const read = async (): Promise<[string, number][]> => {
      const rows: [string, number][] = [];
      for await (const { fragments } of client.readRows(context, { table: name }))
        for (const { row, cells } of fragments) for (const cell of cells) rows.push([row, cell.value[0]!]);
      return rows;
    };
    const expected = entries.map(({ row }, n) => [row, n]);
    assert.deepEqual(await read(), expected);

    // its process ends: connections first, then its session
    const lock = await lockService.holder(`servers/${first.server.name}`);
    await first.transport.close(0);
    await lockService.closeSession(lock!.sessionId);
    assert.deepEqual(await read(), expected);
    await client.mutateRow(context, name, entries[0]!);

    client.close();
    await running.close();
    for (const kind of ['users', 'metadata', 'root'] as const) await second.server.releaseTablets(kind);
    await second.server.close();
    for (const transport of transports) await transport.close(0);
  });
});
