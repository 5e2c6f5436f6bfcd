/**
 * The behaviour suite against a cluster on a real etcd and a directory that its processes share: a master and two
 * tablet servers, each with adapters and a transport of its own. Through the front door of one of them, which passes on
 * what is not its own, and directly, by the client library over etcd.
 */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Code } from '../../src/base/index.ts';
import { type RoleClusterOptions, startMaster } from '../../src/boot/index.ts';
import { connect, type Database } from '../../src/embedded/index.ts';
import { type Logger, Metrics, silentLogger } from '../../src/env/index.ts';
import { startClusterServer } from '../../src/server/index.ts';
import { behaviourSuite, type Subject } from '../behaviour/suite.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { newPrefix } from './fixtures.ts';

const SECRET = '0123456789abcdef0123456789abcdef';

class RunningCluster {
  readonly options: RoleClusterOptions;
  readonly folder: string;
  readonly #closing: (() => Promise<void>)[] = [];

  private constructor(folder: string, lock: string) {
    this.folder = folder;
    this.options = {
      lock,
      files: join(folder, 'store'),
      clusterAddress: '127.0.0.1:0',
      clusterSecretFile: join(folder, 'secret'),
      environment: {},
      logger: silentLogger,
      metrics: new Metrics(),
    };
  }

  static async start(): Promise<RunningCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'edubba-roles-'));
    await writeFile(join(folder, 'secret'), SECRET, { mode: 0o600 });
    const etcd = await EtcdCluster.start();
    return new RunningCluster(folder, `etcd://${etcd.endpoints.join(',')}/${newPrefix()}`);
  }

  async startServer(): Promise<string> {
    const { address, close } = await startClusterServer({
      address: '127.0.0.1:0',
      cluster: { ...this.options, metrics: new Metrics() },
    });
    this.#closing.unshift(close);
    return address;
  }

  async startMaster(): Promise<void> {
    const { close } = await startMaster({ ...this.options, metrics: new Metrics() });
    this.#closing.push(close);
  }

  connect(): Promise<Database> {
    const { lock, clusterSecretFile: secretFile } = this.options;
    return connect(lock, { project: 'p', instance: 'i', cluster: { secretFile } });
  }

  /** Servers first: the master gives their tablets to others. */
  async close(): Promise<void> {
    for (const close of this.#closing) await close();
    // an append to the second log that was given up may land yet
    await rm(this.folder, { recursive: true, maxRetries: 10, retryDelay: 100 });
  }
}

async function started(how: 'door' | 'directly'): Promise<Subject> {
  const cluster = await RunningCluster.start();
  const [door] = [await cluster.startServer(), await cluster.startServer()];
  await cluster.startMaster();
  const database = how === 'door' ? await connect(door, { project: 'p', instance: 'i' }) : await cluster.connect();
  return {
    database,
    close: async () => {
      await database.close();
      await cluster.close();
    },
  };
}

behaviourSuite({
  name: 'a cluster through a front door',
  lacks: ['drop of any row range'],
  start: () => started('door'),
});

behaviourSuite({ name: 'a cluster, directly', start: () => started('directly') });

describe('the roles of a cluster', () => {
  test('are refused with another secret, another store, and where nothing has started', async (t) => {
    const cluster = await RunningCluster.start();
    t.after(() => cluster.close());
    const { options, folder } = cluster;
    await assert.rejects(cluster.connect(), {
      code: Code.FAILED_PRECONDITION,
      message: /no cluster has started at etcd:/,
    });
    await cluster.startServer();
    await cluster.startMaster();
    const starting = (more: Partial<RoleClusterOptions>) =>
      startClusterServer({ address: '127.0.0.1:0', cluster: { ...options, metrics: new Metrics(), ...more } });
    await assert.rejects(starting({ files: join(folder, 'other') }), {
      code: Code.FAILED_PRECONDITION,
      message: /are of different clusters: the lock service belongs to store \w{32}, and this is store \w{32}/,
    });
    await assert.rejects(starting({ clusterAddress: '0.0.0.0:0' }), {
      code: Code.INVALID_ARGUMENT,
      message: /other processes cannot call 0\.0\.0\.0; say by which HOST:PORT they reach this one/,
    });
    await assert.rejects(starting({ clusterSecretFile: undefined }), {
      code: Code.INVALID_ARGUMENT,
      message: /need a cluster secret, or TLS with certificates/,
    });
    await assert.rejects(starting({ lock: 'etcd://127.0.0.1:1' }), { code: Code.UNAVAILABLE });
    const stranger = join(folder, 'stranger');
    await writeFile(stranger, SECRET.replace('0', '1'), { mode: 0o600 });
    await chmod(stranger, 0o644);
    const warnings: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
    await assert.rejects(starting({ clusterSecretFile: stranger, files: join(folder, 'other'), logger }));
    assert.deepEqual(warnings, ['the cluster’s secret can be read by other users of this machine']);
    // the master works
    const own = await cluster.connect();
    t.after(() => own.close());
    await own.createTable('own', { families: { f: {} } });
    await assert.rejects(starting({ clusterSecretFile: stranger }), {
      code: Code.UNAUTHENTICATED,
      message: /another cluster secret/,
    });
    const database = await connect(options.lock, { cluster: { secretFile: stranger } });
    t.after(() => database.close());
    await assert.rejects(database.createTable('t', { families: { f: {} } }), { code: Code.UNAUTHENTICATED });
  });
});
