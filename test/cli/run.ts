/** Runs the command: in this process with its output caught, or as a child. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { main, type Terminal } from '../../src/cli/index.ts';
import { edubbaScript } from './edubba-script.ts';
import { userEnvironment } from './user-environment.ts';

export interface Outcome {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command in this process. */
export async function edubba(words: readonly string[], environment: Record<string, string> = {}): Promise<Outcome> {
  let out = '';
  let err = '';
  const terminal: Terminal = {
    environment,
    print: async (text) => void (out += text),
    complain: (text) => void (err += text),
    log: async (text) => void (err += text),
  };
  const status = await main(words, terminal);
  return { status, out, err };
}

/** The output of the command, which must succeed. */
export async function output(words: readonly string[], environment: Record<string, string> = {}): Promise<string> {
  const { status, out, err } = await edubba(words, environment);
  assert.equal(status, 0, err);
  return out;
}

/** One document a line. */
export function documents(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

export async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-cli-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** On a machine that is busy with tests calls may be slow: that is no complaint. */
export const CALM = { EDUBBA_SLOW_MS: '0' };

/** The command as a process of its own. */
export class Child {
  readonly process: ChildProcess;
  out = '';
  err = '';
  readonly #ended: Promise<unknown[]>;

  /** `preload`: a CommonJS module that is loaded before the command, in its threads too. */
  constructor(
    t: TestContext,
    words: readonly string[],
    more: { readonly preload?: string; readonly environment?: Readonly<Record<string, string>> } = {},
  ) {
    const preload = more.preload === undefined ? [] : ['--require', more.preload];
    this.process = spawn(process.execPath, [...process.execArgv, ...preload, edubbaScript(), ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...userEnvironment(), ...CALM, ...more.environment },
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.#ended = once(this.process, 'close');
    t.after(() => this.process.kill('SIGKILL'));
  }

  /** The address of a server, once it listens. */
  async address(): Promise<string> {
    for (;;) {
      const address = /^listening on (\S+)$/m.exec(this.out)?.[1];
      if (address !== undefined) return address;
      assert.equal(this.process.exitCode, null, this.err);
      await Promise.race([once(this.process.stdout as NodeJS.ReadableStream, 'data'), this.#ended]);
    }
  }

  /** Exit status, or the signal that ended it. */
  async ended(): Promise<number | string> {
    const [code, signal] = await this.#ended;
    return (code ?? signal) as number | string;
  }
}
