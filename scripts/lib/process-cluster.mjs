/**
 * Clusters of processes for benchmarks and clients: one etcd, a directory as the shared store, a master and tablet
 * servers.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ROOT } from './repository.mjs';
import { freePort, startServer } from './server.mjs';

const READY_MS = 60_000;
/** Servers are at rest when they took less than this of CPU time in a while. */
const REST_LOOK_MS = 500;
const REST_MS = 20;
const MAX_REST_LOOKS = 60;
/** The unit of times in /proc. */
const TICK_MS = 10;

/** @typedef {import('./server.mjs').RunningServer} RunningServer */

/** A cluster on an empty folder. It is ended with this process at latest. */
export class ProcessCluster {
  #folder = mkdtempSync(join(tmpdir(), 'edubba-processes-'));
  /** @type {RunningServer[]} */
  servers = [];
  /** Other processes, in the order of their start. @type {RunningServer[]} */
  #others = [];
  /** @type {RunningServer | undefined} */
  #master;
  /** @type {Map<RunningServer, string>} */
  #metrics = new Map();
  #access = /** @type {string[]} */ ([]);
  /** Other options of the master. */
  #masterWords = /** @type {string[]} */ ([]);
  /** The program that starts from now on. */
  program = join(ROOT, 'bin', 'edubba');

  /**
   * @param {string} etcd
   * @param {string[]} [more] other options of the master
   */
  async start(etcd, more = []) {
    const [clientPort, peerPort] = [await freePort(), await freePort()];
    const [clients, peers] = [clientPort, peerPort].map((port) => `http://127.0.0.1:${port}`);
    const words = [
      ...['--data-dir', join(this.#folder, 'etcd')],
      ...['--listen-client-urls', clients, '--advertise-client-urls', clients],
      ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers, '--initial-cluster', `default=${peers}`],
    ];
    const ready = /serving client traffic insecurely.*"address":"([^"]+)"/;
    this.#others.push(await startServer('etcd', etcd, words, ready, READY_MS));
    const secret = join(this.#folder, 'secret');
    writeFileSync(secret, 'a secret of a test cluster, of no use', { mode: 0o600 });
    this.#access = ['--lock', `etcd://127.0.0.1:${clientPort}`, '--files', this.store];
    this.#access.push('--cluster-secret-file', secret);
    this.#masterWords = more;
    this.#master = await this.#startRole('master', more);
  }

  /** @param {string[]} [more] other options of it */
  async startTabletServer(more = []) {
    this.servers.push(await this.#startTabletServer('127.0.0.1:0', more));
  }

  /**
   * Ends the tablet server of that number by SIGTERM, and starts it anew at its address. Returns how it ended.
   *
   * @param {number} i
   */
  async restart(i) {
    const server = /** @type {RunningServer} */ (this.servers[i]);
    const ended = await server.kill();
    this.servers[i] = await this.#startTabletServer(server.address);
    return ended;
  }

  /** Ends the master by SIGTERM, and starts another one. Returns how it ended. */
  async restartMaster() {
    const master = /** @type {RunningServer} */ (this.#master);
    const ended = await master.kill();
    this.#master = await this.#startRole('master', this.#masterWords);
    return ended;
  }

  /**
   * @param {string} address
   * @param {string[]} [more]
   */
  async #startTabletServer(address, more = []) {
    const metrics = `127.0.0.1:${await freePort()}`;
    const words = ['--address', address, '--metrics-address', metrics, ...more];
    const server = await this.#startRole('tabletserver', words);
    this.#metrics.set(server, metrics);
    return server;
  }

  /**
   * @param {string} role
   * @param {string[]} more
   */
  #startRole(role, more) {
    const words = [this.program, role, ...this.#access, ...more];
    return startServer(role, process.execPath, words, /listening on (\S+)/, READY_MS);
  }

  /**
   * The values of metrics of a tablet server without labels, by their names on the page of metrics, at one time.
   *
   * @param {RunningServer} server
   * @param {readonly string[]} names
   * @returns {Promise<number[]>}
   */
  async metrics(server, names) {
    const page = await (await fetch(`http://${this.#metrics.get(server)}/metrics`)).text();
    return names.map((name) => {
      const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1];
      if (value === undefined) throw new Error(`there is no metric ${name}`);
      return Number(value);
    });
  }

  /** Ends a tablet server without notice. @param {RunningServer} server */
  async kill(server) {
    this.servers = this.servers.filter((one) => one !== server);
    await server.kill('SIGKILL');
  }

  /** The last of what the master has logged. */
  get masterLog() {
    return this.#master?.output() ?? '';
  }

  /** The folder of the shared store. */
  get store() {
    return join(this.#folder, 'store');
  }

  /** CPU time that the tablet servers have taken so far. */
  cpuMs() {
    return this.servers.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
  }

  async atRest() {
    for (let i = 0, before = this.cpuMs(); i < MAX_REST_LOOKS; i++) {
      await pause(REST_LOOK_MS);
      const now = this.cpuMs();
      if (now - before <= REST_MS) return;
      before = now;
    }
  }

  async end() {
    for (const server of this.servers) await server.kill();
    await this.#master?.kill();
    for (const server of this.#others.reverse()) await server.kill();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** @param {number} pid */
function cpuMsOf(pid) {
  // the name of the program, in parentheses, may hold spaces
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
