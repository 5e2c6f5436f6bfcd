/**
 * A whole cluster on this machine, for trying out: an etcd, masters and tablet servers, each a process of its own, over
 * a directory. What ends itself, or is killed, is started again.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { delimiter, join, resolve } from 'node:path';
import { BigtableError, Code, toBigtableError, unavailable } from '../../base/index.ts';
import { Child, type Program } from './child.ts';

export interface LocalClusterOptions {
  /** The directory of everything: made where there is none. */
  readonly directory: string;
  readonly servers: number;
  readonly masters: number;
  /** HOST and the port of the first front door; the others follow. 0: free ones. */
  readonly host: string;
  readonly port: number;
  /** A path of the program etcd, or etcd://…; undefined: `etcd` of the PATH. */
  readonly etcd: string | undefined;
  /** How this program is started: Node's path, and its arguments before the command. */
  readonly node: { readonly path: string; readonly args: readonly string[] };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly say: (line: string) => Promise<void>;
}

/** Delay before what has ended is started again. */
const RESTART_MS = 1000;
const ETCD_READY = /(ready to serve client requests)/;
const LISTENING = /listening on (\S+)/;

export class LocalCluster {
  readonly #options: LocalClusterOptions;
  readonly #logs: string;
  readonly #children = new Map<string, Child>();
  #common: readonly string[] = [];
  #isClosing = false;

  constructor(options: LocalClusterOptions) {
    this.#options = options;
    this.#logs = join(options.directory, 'logs');
  }

  /**
   * Resolves when every process answers. Fails with the last output of one that does not start; `close` is needed then,
   * too.
   */
  async start(): Promise<void> {
    const { directory, servers, masters, host, port } = this.#options;
    await mkdir(this.#logs, { recursive: true, mode: 0o700 });
    const secret = join(directory, 'cluster.secret');
    if (!existsSync(secret)) await writeFile(secret, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 });
    const lock = await this.#startEtcd();
    this.#common = ['--lock', lock, '--files', join(directory, 'store'), '--cluster-secret-file', secret];
    const starts = [
      ...Array.from({ length: masters }, (_, i) => this.#startRole(`master-${i + 1}`, ['master'])),
      ...Array.from({ length: servers }, (_, i) => {
        const address = `${host}:${port === 0 ? 0 : port + i}`;
        return this.#startRole(`tabletserver-${i + 1}`, ['tabletserver', '--address', address]);
      }),
    ];
    const failed = (await Promise.allSettled(starts)).find((start) => start.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** The address of the lock service. */
  async #startEtcd(): Promise<string> {
    const { directory, etcd, environment } = this.#options;
    if (etcd?.startsWith('etcd://')) return etcd;
    const path = etcd ?? programOf('etcd', environment);
    if (path === undefined || !existsSync(path)) {
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `${etcd === undefined ? 'etcd was not found in the PATH' : `${etcd} was not found`}: install it (Debian and Ubuntu: apt-get install etcd-server; others: github.com/etcd-io/etcd/releases), or say where it is: --etcd PATH, or --etcd etcd://HOST:PORT of one that runs`,
      );
    }
    const [clients, peers] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
    const args = [
      ...['--data-dir', join(directory, 'etcd'), '--listen-client-urls', clients, '--advertise-client-urls', clients],
      ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers, '--initial-cluster', `default=${peers}`],
    ];
    await this.#startChild({ name: 'etcd', path, args, environment, log: join(this.#logs, 'etcd.log') }, ETCD_READY);
    return clients.replace('http', 'etcd');
  }

  async #startRole(name: string, words: readonly string[]): Promise<void> {
    const { node, environment, say } = this.#options;
    const args = [...node.args, ...words, ...this.#common, '--log-level', 'info', '--metrics-address', 'off'];
    const program = { name, path: node.path, args, environment, log: join(this.#logs, `${name}.log`) };
    const { pid, heard } = await this.#startChild(program, LISTENING);
    await say(`${name}: process ${pid}${words[0] === 'tabletserver' ? `, the Cloud Bigtable API on ${heard}` : ''}`);
  }

  async #startChild(program: Program, ready: RegExp): Promise<{ readonly pid: number; readonly heard: string }> {
    if (this.#isClosing) throw unavailable('the cluster is stopping');
    const child = new Child(program);
    this.#children.set(program.name, child);
    const heard = await child.said(ready);
    child.ended.then(
      (how) => void this.#restart(program, ready, how),
      () => {},
    );
    return { pid: child.pid ?? 0, heard };
  }

  /** Again and again while that fails. */
  async #restart(program: Program, ready: RegExp, how: string): Promise<void> {
    const { say } = this.#options;
    if (this.#isClosing) return;
    await say(`${program.name} has ended (${how}) and is started again`);
    for (;;) {
      await new Promise((wake) => setTimeout(wake, RESTART_MS));
      if (this.#isClosing) return;
      try {
        const { pid } = await this.#startChild(program, ready);
        await say(`${program.name}: process ${pid}`);
        return;
      } catch (thrown) {
        await say(`${program.name} could not be started again: ${toBigtableError(thrown).message}`);
      }
    }
  }

  /** Ends tablet servers, then masters, then etcd, each in good order. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const kind of ['tabletserver', 'master', 'etcd']) {
      const some = [...this.#children.values()].filter(({ name }) => name.startsWith(kind));
      for (const child of some) child.kill('SIGTERM');
      await Promise.all(some.map(({ ended }) => ended));
    }
  }
}

/** The path of a program, as a shell finds it. */
function programOf(name: string, environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => resolve(folder, name)).find((path) => existsSync(path));
}

/** A port of loopback that nothing listens on now. */
function freePort(): Promise<number> {
  return new Promise((found, failed) => {
    const server = createServer();
    server.once('error', failed);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => found(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
