/**
 * The etcd of a cluster test: members on machines of their own. Each listens to clients behind a proxy that can make it
 * slow. What the test itself asks goes past the proxies.
 */
import { join } from 'node:path';
import type { Machine } from './network.ts';
import { Program } from './program.ts';
import { nodeProgram, type Tools } from './tools.ts';

const CLIENT_PORT = 2379;
const PORT_BEHIND = 2378;
const PEER_PORT = 2380;
const ASK_MS = 1000;

interface Member {
  readonly member: Program;
  readonly proxy: Program;
}

export class Etcd {
  readonly #members: readonly Member[];
  /** The member that is asked first. */
  #asked = 0;

  constructor(machines: readonly Machine[], tools: Tools) {
    const peerOf = ({ address }: Machine): string => `http://${address}:${PEER_PORT}`;
    const cluster = machines.map((machine) => `${machine.name}=${peerOf(machine)}`).join(',');
    this.#members = machines.map((machine) => {
      const { name, address } = machine;
      const member = new Program({
        machine,
        command: [
          tools.etcd,
          ...['--name', name, '--data-dir', join(tools.scratch, name), '--log-level', 'warn'],
          ...['--listen-client-urls', urlBehind(machine), '--advertise-client-urls', urlBehind(machine)],
          ...['--listen-peer-urls', peerOf(machine), '--initial-advertise-peer-urls', peerOf(machine)],
          ...['--initial-cluster', cluster, '--log-outputs', 'stdout'],
        ],
        env: process.env,
        logFile: join(tools.logs, `${name}.log`),
      });
      const addresses = [`${address}:${CLIENT_PORT}`, `${address}:${PORT_BEHIND}`];
      const proxy = nodeProgram(tools, { machine, module: 'slow-proxy', args: addresses, name: `${name}-proxy` });
      return { member, proxy };
    });
  }

  get members(): readonly Program[] {
    return this.#members.map(({ member }) => member);
  }

  get endpoints(): readonly string[] {
    return this.members.map(({ machine }) => `${machine.address}:${CLIENT_PORT}`);
  }

  /** Resolves when all members answer. */
  async start(): Promise<void> {
    await Promise.all(this.#members.map(({ proxy }) => proxy.start()));
    await Promise.all(this.members.map((member) => this.startMember(member)));
  }

  async startMember(member: Program): Promise<void> {
    await member.start();
    const endMs = performance.now() + 30_000;
    while ((await statusOf(member)) === undefined) {
      if (performance.now() > endMs) throw new Error(`${member.name} does not answer`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** The member that leads now, if any does. */
  async leader(): Promise<Program | undefined> {
    for (const member of this.members) if (member.isRunning && (await statusOf(member)) === 'leader') return member;
    return undefined;
  }

  /** Answers of each member come so late. */
  delay(delayMs: number): void {
    for (const { proxy } of this.#members) proxy.tell({ delayMs });
  }

  /** By path: the session that holds each lock of the cluster with that prefix. Undefined while no member answers. */
  async locks(prefix: string): Promise<ReadonlyMap<string, string> | undefined> {
    const begin = `${prefix}/locks/`;
    const range = { key: base64(begin), range_end: base64(`${prefix}/locks0`) };
    for (let i = 0; i < this.#members.length; i++) {
      const answer = await ask(this.members[this.#asked]!, 'kv/range', range);
      const { kvs = [] } = (answer ?? {}) as { kvs?: { key: string; value: string }[] };
      if (answer !== undefined)
        return new Map(kvs.map(({ key, value }) => [text(key).slice(begin.length), text(value)]));
      this.#asked = (this.#asked + 1) % this.#members.length;
    }
    return undefined;
  }
}

const base64 = (words: string): string => Buffer.from(words).toString('base64');
const text = (encoded: string): string => Buffer.from(encoded, 'base64').toString();
const urlBehind = ({ address }: Machine): string => `http://${address}:${PORT_BEHIND}`;

async function statusOf(member: Program): Promise<'leader' | 'follower' | undefined> {
  const answer = await ask(member, 'maintenance/status', {});
  const { header, leader } = (answer ?? {}) as { header?: { member_id: string }; leader?: string };
  if (header === undefined || leader === undefined || leader === '0') return undefined;
  return leader === header.member_id ? 'leader' : 'follower';
}

async function ask({ machine }: Program, path: string, question: object): Promise<object | undefined> {
  try {
    const answer = await fetch(`${urlBehind(machine)}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(question),
      signal: AbortSignal.timeout(ASK_MS),
    });
    const body = (await answer.json()) as object;
    return answer.ok ? body : undefined;
  } catch {
    return undefined;
  }
}
