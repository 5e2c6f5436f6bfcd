/** Where a cluster under test keeps its files: a directory, or versitygw behind a proxy that can refuse and be slow. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from './network.ts';
import { Program } from './program.ts';
import { nodeProgram, type Tools } from './tools.ts';

export type StoreKind = 'directory' | 's3';

export interface Store {
  readonly kind: StoreKind;
  /** As `--files` takes it. */
  readonly address: string;
  readonly env: Readonly<Record<string, string>>;
  /** Undefined for a directory. */
  readonly machine: Machine | undefined;
  start(): Promise<void>;
  /** A share of the requests is answered 503, and others come so late at most. */
  trouble(refusedShare: number, slowestMs: number): void;
}

const PORT = 7070;
const PORT_BEHIND = 7071;
const START_MS = 10_000;
const CREDENTIALS = ['testkey', 'testsecret'] as const;

export function directoryStore({ scratch }: Tools): Store {
  const path = join(scratch, 'files');
  return {
    kind: 'directory',
    address: path,
    env: {},
    machine: undefined,
    start: async () => void mkdirSync(path),
    trouble: () => {},
  };
}

export function s3Store(machine: Machine, tools: Tools): Store {
  const { address } = machine;
  const data = join(tools.scratch, 'versitygw');
  const behind = `${address}:${PORT_BEHIND}`;
  const gateway = new Program({
    machine,
    command: [tools.versitygw, '--port', behind, '--quiet', 'posix', data],
    env: { ...process.env, ROOT_ACCESS_KEY: CREDENTIALS[0], ROOT_SECRET_KEY: CREDENTIALS[1] },
    logFile: join(tools.logs, 'versitygw.log'),
  });
  const args = [`${address}:${PORT}`, behind];
  const proxy = nodeProgram(tools, { machine, module: 'store-proxy', args, name: 'store-proxy' });
  return {
    kind: 's3',
    address: `s3://bucket/db?endpoint=http://${address}:${PORT}`,
    env: { AWS_ACCESS_KEY_ID: CREDENTIALS[0], AWS_SECRET_ACCESS_KEY: CREDENTIALS[1] },
    machine,
    start: async () => {
      mkdirSync(join(data, 'bucket'), { recursive: true });
      await proxy.start();
      await gateway.start();
      await answers(`http://${behind}`);
    },
    trouble: (refusedShare, slowestMs) => proxy.tell({ refusedShare, slowestMs }),
  };
}

async function answers(url: string): Promise<void> {
  for (const endMs = performance.now() + START_MS; performance.now() < endMs; ) {
    const isThere = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`versitygw does not answer at ${url}`);
}
