/**
 * Measures what the steps of a large cluster cost, with the real parts: a master, a tablet server and a client of
 * METADATA, each with a transport of its own over loopback sockets, in one process. Prints CPU time in microseconds, of
 * both ends together. sim/scale/costs.ts has the figures with which the scale run charges its steps
 * (docs/decisions/0069-scale-run.md).
 *
 *   npm run sim -- --costs
 */
import { readEncodedAppends, sortLog } from '../../src/commitlog/index.ts';
import {
  ByteBudget,
  type Env,
  InlineWorkers,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  type RequestContext,
  requestContext,
  silentLogger,
} from '../../src/env/index.ts';
import { Client } from '../../src/client/index.ts';
import { Locator, MetadataClient } from '../../src/locator/index.ts';
import { chooseMoves, Master } from '../../src/master/index.ts';
import { commitOfRow, keyOfRow, type MetadataRow, USER_RANGE } from '../../src/metadata/index.ts';
import { LIMITS } from '../../src/model/index.ts';
import { ClusterSecret, NetworkTransport } from '../../src/network/index.ts';
import { nativeCodecs, systemClock, systemRandom } from '../../src/platform/index.ts';
import { CALL_CODEC, callServer, logPathOf } from '../../src/protocol/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../../src/tablet/index.ts';
import { TabletServer, type TabletServerSettings } from '../../src/tabletserver/index.ts';

const MIB = 1 << 20;
const TABLETS = 4000;
const REPETITIONS = 2000;
const LOG_BYTES = 64 * MIB;
const TABLE = 'projects/p/instances/i/tables/t';

const SETTINGS: TabletServerSettings = {
  limits: LIMITS.default,
  blockSizeBytes: 64 << 10,
  blockCacheBytes: 64 * MIB,
  scanCacheBytes: 0,
  memtableBytes: 256 * MIB,
  indexBytes: 64 * MIB,
  inMemoryBytes: 64 * MIB,
  logLimitBytes: 4 * LOG_BYTES,
  tabletBytes: 1 << 30,
  metadataTabletBytes: 1 << 30,
  compactionsAtOnce: 1,
  majorCompactionMs: 86_400_000,
};

const secret = ClusterSecret.parse('0123456789abcdef0123456789abcdef', 'the measurement');
const [fileSystem, lockService, codecs] = [new MemoryFileSystem(), new MemoryLockService(), nativeCodecs()];

async function environment(name: string): Promise<{ env: Env; address: string }> {
  const clock = systemClock;
  const own = {
    clock,
    random: systemRandom,
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(256 * MIB),
  };
  const transport = new NetworkTransport({
    env: own,
    codec: CALL_CODEC,
    identity: { name, role: 'process', cluster: 'measured' },
    secret,
  });
  const address = `127.0.0.1:${await transport.listen('127.0.0.1', 0)}/${name}`;
  const workers = new InlineWorkers({
    [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock }, job),
  });
  return { env: { ...own, fileSystem, lockService, transport, workers, codecs }, address };
}

/** CPU time of `work`, for each of `count` parts, microseconds. */
async function measure(what: string, count: number, work: () => Promise<unknown>): Promise<void> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  console.log(`${what}: ${((user + system) / count).toFixed(1)} us`);
}

async function times(count: number, parallel: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

async function rowsOf(metadata: MetadataClient, context: RequestContext): Promise<MetadataRow[]> {
  const rows: MetadataRow[] = [];
  for await (const some of metadata.scan(USER_RANGE, context)) rows.push(...some);
  return rows;
}

function released(row: MetadataRow, id: string): ReturnType<typeof commitOfRow> {
  return commitOfRow(id, { kind: 'compacted', atMicros: 1 }, keyOfRow(row), row, { ...row });
}

async function main(): Promise<void> {
  const server = await environment('server');
  const tabletServer = await TabletServer.start({ ...server, settings: SETTINGS });
  const masterProcess = await environment('master');
  const master = await Master.start(masterProcess);
  await master.assigned;
  const { env } = await environment('client');
  const client = await Client.open({ env, limits: LIMITS.default });
  const context = requestContext({ budget: env.requestBudget });
  const splits = Array.from({ length: TABLETS - 1 }, (_, i) => `row${String(i).padStart(6, '0')}`);
  const families = [{ name: 'f' }];
  await measure(`a tablet of a new table, of ${TABLETS}`, TABLETS, () =>
    client.createTable(context, { name: TABLE, families, splits, granularity: 'millis', deletionProtection: false }),
  );
  const entries = splits.map((row) => ({
    row,
    mutations: [{ kind: 'setCell' as const, family: 'f', qualifier: 'q', timestamp: 1000, value: Buffer.alloc(1000) }],
  }));
  await client.mutateRows(context, TABLE, entries);
  await measure('flush of a tablet with a row', TABLETS, () =>
    callServer(env.transport, server.address, 'flush', {}, context),
  );

  const to = tabletServer.name;
  await measure('a call (a brief status)', REPETITIONS, () =>
    times(REPETITIONS, 16, () => callServer(env.transport, server.address, 'status', { to, brief: true }, context)),
  );
  await measure('a tablet in a status', 20 * TABLETS, () =>
    times(20, 1, () => callServer(env.transport, server.address, 'status', { to }, context)),
  );
  const metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
  const rows = await rowsOf(metadata, context);
  for (let i = 0; i < 2; i++) await measure('a row in a scan', rows.length, () => rowsOf(metadata, context));
  await measure('a read of one row', REPETITIONS, () =>
    times(REPETITIONS, 64, (i) => metadata.readRow(keyOfRow(rows[(i * 7) % rows.length]!), context)),
  );
  const batch = 100;
  await measure(`a row in a commit of ${batch}`, TABLETS, () =>
    times(Math.floor(TABLETS / batch), 4, (i) =>
      metadata.commit(
        rows.slice(i * batch, (i + 1) * batch).map((row, j) => released(row, `a${i}-${j}`)),
        context,
      ),
    ),
  );
  const then = await rowsOf(metadata, context);
  await measure('a commit of one row', REPETITIONS, () =>
    times(REPETITIONS, 16, (i) => metadata.commit([released(then[i]!, `b${i}`)], context)),
  );
  await loads(env, server.address, to, metadata, context);
  for (let i = 0; i < LOG_BYTES / (1000 * TABLETS); i++) await client.mutateRows(context, TABLE, entries);
  await replay(logPathOf(to));
  plan();
  process.exit(0);
}

/** Unloads tablets and has them loaded at a later epoch. */
async function loads(
  env: Env,
  address: string,
  to: string,
  metadata: MetadataClient,
  context: RequestContext,
): Promise<void> {
  const part = 1024;
  const rows = (await rowsOf(metadata, context)).slice(0, part);
  const refs = rows.map((row) => ({ key: keyOfRow(row), epoch: row.epoch }));
  await measure('unload of a tablet', part, () =>
    times(part / 16, 4, (i) =>
      callServer(
        env.transport,
        address,
        'unload',
        { to, tablets: refs.slice(i * 16, i * 16 + 16), flush: true },
        context,
      ),
    ),
  );
  const next = (await rowsOf(metadata, context)).slice(0, part);
  const commits = next.map((row, i) =>
    commitOfRow(`c${i}`, { kind: 'assigned', atMicros: 1 }, keyOfRow(row), row, { ...row, epoch: row.epoch + 1 }),
  );
  await metadata.commit(commits, context);
  const again = refs.map(({ key, epoch }) => ({ key, epoch: epoch + 1 }));
  await measure('load of a tablet with a file, with the read of its row', part, () =>
    times(part / 16, 4, (i) =>
      callServer(env.transport, address, 'load', { to, tablets: again.slice(i * 16, i * 16 + 16) }, context),
    ),
  );
}

/** Reads the log of the server, with 64 MiB of rows of 1 KB. */
async function replay(path: string): Promise<void> {
  let records = 0;
  await measure('64 MiB of a log that is read', 1, async () => {
    for await (const { records: some } of readEncodedAppends(fileSystem, path)) records += some.length;
  });
  console.log(`(${records} records)`);
  await measure('64 MiB of a log that is sorted', 1, () =>
    sortLog({
      env: { fileSystem, clock: systemClock, codecs },
      log: path,
      part: { from: 0, to: undefined },
      maxBytes: 64 * MIB,
      pathOf: ({ from }) => `sorted/x/${from}`,
    }),
  );
}

/** A plan for half as many servers again. */
function plan(): void {
  const tablet = (key: string) => ({ key, epoch: 1, sizeBytes: 100 * MIB, requestRate: 10 });
  const servers = Array.from({ length: 150 }, (_, i) => ({
    name: `s${i}`,
    tablets: i >= 100 ? [] : Array.from({ length: 1000 }, (_each, j) => tablet(`${i}-${j}`)),
  }));
  const before = process.cpuUsage();
  const moves = chooseMoves(servers);
  const { user, system } = process.cpuUsage(before);
  console.log(`a plan of ${moves.length} moves: ${((user + system) / 1000).toFixed(0)} ms`);
}

await main();
