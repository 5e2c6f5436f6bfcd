/** An etcd of one or more members on loopback ports, for tests that kill, stop and configure it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closedAtEnd } from './opened.ts';

/** The path of the program: scripts/etcd.mjs builds it. */
const PROGRAM = process.env['EDUBBA_ETCD'] ?? '';
const START_MS = 30_000;

export interface ClusterOptions {
  readonly members?: number;
  /** More arguments for each member. */
  readonly args?: readonly string[];
  /** Default: http. */
  readonly scheme?: 'http' | 'https';
}

class Member {
  readonly clientPort: number;
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;
  #log = '';

  constructor(clientPort: number, args: readonly string[]) {
    this.clientPort = clientPort;
    this.#args = args;
  }

  /** What it has said so far. */
  get log(): string {
    return this.#log;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.clientPort}`;
  }

  start(): void {
    const child = spawn(PROGRAM, this.#args, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (this.#log += chunk));
    this.#process = child;
  }

  /** Resolves when it serves clients. */
  async ready(): Promise<void> {
    const endMs = performance.now() + START_MS;
    while (!/ready to serve (insecure )?client requests/.test(this.#log)) {
      assert.ok(performance.now() < endMs && this.#process?.exitCode === null, `etcd does not start:\n${this.#log}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /**
   * Resolves when none of its threads runs: a busy machine stops them late, and they answer until then. (Where there is
   * no /proc, when it was told to stop.)
   */
  async stop(): Promise<void> {
    const pid = this.#process?.pid;
    assert.ok(pid !== undefined, 'a member that runs is stopped');
    this.#process?.kill('SIGSTOP');
    while (threadStates(pid).some((state) => state !== 'T')) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  goOn(): void {
    this.#process?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    this.#log = '';
  }
}

export class EtcdCluster {
  readonly members: readonly Member[];
  readonly #folder: string;

  private constructor(members: readonly Member[], folder: string) {
    this.members = members;
    this.#folder = folder;
  }

  static async start({ members: count = 1, args = [], scheme = 'http' }: ClusterOptions = {}): Promise<EtcdCluster> {
    assert.notEqual(PROGRAM, '', 'EDUBBA_ETCD is the path of etcd: npm run test:etcd');
    const folder = mkdtempSync(join(tmpdir(), 'edubba-etcd-'));
    const ports = await freePorts(2 * count);
    const peerOf = (i: number): string => `http://127.0.0.1:${ports[2 * i + 1]}`;
    const names = Array.from({ length: count }, (_, i) => `m${i}`);
    const members = names.map((name, i) => {
      const clientUrl = `${scheme}://127.0.0.1:${ports[2 * i]}`;
      return new Member(ports[2 * i]!, [
        ...['--name', name, '--data-dir', join(folder, name), '--log-level', 'info'],
        ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
        ...['--listen-peer-urls', peerOf(i), '--initial-advertise-peer-urls', peerOf(i)],
        ...['--initial-cluster', names.map((each, j) => `${each}=${peerOf(j)}`).join(',')],
        ...args,
      ]);
    });
    const cluster = closedAtEnd(new EtcdCluster(members, folder));
    for (const member of members) member.start();
    await Promise.all(members.map((member) => member.ready()));
    return cluster;
  }

  get endpoints(): string[] {
    return this.members.map(({ endpoint }) => endpoint);
  }

  /** The member that leads now. */
  async leader(): Promise<Member> {
    for (;;) {
      for (const member of this.members) {
        const url = `http://${member.endpoint}/v3/maintenance/status`;
        const answer = await fetch(url, { method: 'POST', body: '{}' });
        const status = (await answer.json()) as { header: { member_id: string }; leader?: string };
        if (status.leader === status.header.member_id) return member;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The state of each thread of a process (proc(5)), T for a stopped one; none where there is no /proc. */
function threadStates(pid: number): string[] {
  const folder = `/proc/${pid}/task`;
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((thread) => {
    const text = readFileSync(join(folder, thread, 'stat'), 'utf8');
    // the name before it may hold anything
    return text.charAt(text.lastIndexOf(')') + 2);
  });
}

/** Ports that nothing listens on now. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) =>
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
        ),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
