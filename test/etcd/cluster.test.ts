/**
 * Masters and tablet servers on a real etcd, each with an adapter of its own, as processes have them. Files and calls
 * are in memory, and shared.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toBigtableError } from '../../src/base/index.ts';
import { Client } from '../../src/client/index.ts';
import {
  ByteBudget,
  type Env,
  InlineWorkers,
  isOutcomeUnknown,
  LocalTransport,
  type LockService,
  MemoryFileSystem,
  Metrics,
  silentLogger,
} from '../../src/env/index.ts';
import { Master } from '../../src/master/index.ts';
import { LIMITS } from '../../src/model/index.ts';
import { nativeCodecs, systemClock, systemRandom } from '../../src/platform/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../../src/tablet/index.ts';
import { TabletServer } from '../../src/tabletserver/index.ts';
import { SETTINGS } from '../cluster.ts';
import { setCell, TABLES, Tables } from '../tables.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { newPrefix, openAt } from './fixtures.ts';
import { TcpProxy } from './tcp-proxy.ts';

const SERVERS = 3;
const WRITERS = 4;
const ROWS = 10 * WRITERS;
const CALL_MS = 60_000;

const fileSystem = new MemoryFileSystem();
const transport = new LocalTransport(systemClock);
const codecs = nativeCodecs();

function envOf(lockService: LockService): Env {
  const clock = systemClock;
  return {
    fileSystem,
    lockService,
    transport,
    clock,
    random: systemRandom,
    workers: new InlineWorkers({
      [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock }, job),
    }),
    codecs,
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(1 << 27),
  };
}

/** Makes the call again while its outcome is unknown. */
async function untilKnown(call: () => Promise<unknown>): Promise<void> {
  for (;;) {
    const error = await call().then(() => undefined, toBigtableError);
    if (error === undefined) return;
    assert.ok(isOutcomeUnknown(error), error.message);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('a cluster on etcd keeps what it has answered when etcd, a tablet server and the master fail', async () => {
  const etcd = await EtcdCluster.start({ members: 3 });
  const prefix = newPrefix();
  /** A process that a test can cut off from etcd. */
  const start = async () => {
    const proxies = await Promise.all(etcd.members.map(({ clientPort }) => TcpProxy.to(clientPort)));
    const endpoints = proxies.map(({ endpoint }) => endpoint);
    const lockService = await openAt(endpoints, prefix);
    return {
      env: envOf(lockService),
      cutOff: () => proxies.forEach((proxy) => proxy.goSilent()),
      endWatches: () => lockService.close(),
    };
  };
  const ended = new Set<string>();
  const servers: TabletServer[] = [];
  const processes = [];
  for (let i = 0; i < SERVERS; i++) {
    const { env, ...process } = await start();
    const address = `server-${i}`;
    const onEnd = (): void => void ended.add(address);
    servers.push(await TabletServer.start({ env, address, settings: SETTINGS, onEnd }));
    processes.push(process);
  }
  const first = await start();
  processes.push(first);
  const master = await Master.start({ env: first.env, address: 'master-0', onEnd: () => void ended.add('master-0') });
  await master.assigned;
  const second = await start();
  const standingBy = Master.start({ env: second.env, address: 'master-1' });

  const { env } = await start();
  const client = await Client.open({ env, limits: LIMITS.default });
  const tables = new Tables(env, client);
  await tables.create('t', { splits: ['2', '4', '6', '8'] });

  const written = new Map<string, string>();
  let stopped = false;
  const writing = Array.from({ length: WRITERS }, async (_, writer) => {
    for (let i = 0; !stopped; i++) {
      const row = `${i % 10}-${writer}`;
      const entry = { row, mutations: [setCell(`${i}`)] };
      await untilKnown(() => client.mutateRow(tables.context(CALL_MS), `${TABLES}t`, entry));
      written.set(row, `${i}`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  /** Resolves when every row was written again. */
  const goesOn = async (): Promise<void> => {
    const before = new Map(written);
    while (written.size < ROWS || [...before].some(([row, value]) => written.get(row) === value))
      await new Promise((resolve) => setTimeout(resolve, 20));
  };
  await goesOn();
  const leader = await etcd.leader();
  await leader.kill();
  await goesOn();
  leader.start();
  await leader.ready();
  assert.equal(ended.size, 0, 'servers outlive a change of the leader');

  const lost = [processes[1]!, processes[SERVERS]!];
  for (const process of lost) process.cutOff();
  const successor = await standingBy;
  await successor.assigned;
  // the client may still know the master that is cut off, which cannot tell what is so
  await untilKnown(() => tables.create('later'));
  assert.equal(servers[1]?.leaseHeld(), false);
  // what is cut off serves nothing, and ends itself when its watches do; clients ask it until then
  for (const process of lost) await process.endWatches();
  while (ended.size < lost.length) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual([...ended].sort(), ['master-0', 'server-1']);
  await goesOn();

  stopped = true;
  await Promise.all(writing);
  assert.deepEqual(await tables.read('t'), [...written].sort());
  client.close();
  await successor.close();
  const living = [servers[0]!, servers[2]!];
  for (const kind of ['users', 'metadata', 'root'] as const)
    for (const server of living) await server.releaseTablets(kind);
  for (const server of living) await server.close();
});
