/**
 * A process that `edubba cluster up` has started. Its output goes to a file, and what it says there is awaited.
 *
 * Invariant: it does not outlive this process, except a SIGKILL of this one.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { unavailable } from '../../base/index.ts';

export interface Program {
  readonly name: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The file of its output, to which it is added. */
  readonly log: string;
}

/** Characters of its last output that are kept for an error. */
const LAST_CHARS = 4000;

export class Child {
  readonly name: string;
  /** Resolves when it has ended, with its status or signal in words. */
  readonly ended: Promise<string>;
  readonly #process: ChildProcess;
  readonly #log: string;
  #last = '';
  readonly #listeners = new Set<() => void>();

  constructor({ name, path, args, environment, log }: Program) {
    this.name = name;
    this.#log = log;
    // of its own group: Ctrl-C is for this process, which ends the others in order
    this.#process = spawn(path, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: environment });
    const file = createWriteStream(log, { flags: 'a' });
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (data: Buffer) => {
        file.write(data);
        this.#last += data.toString('utf8');
        for (const listener of this.#listeners) listener();
        this.#last = this.#last.slice(-LAST_CHARS);
      });
    const kill = (): void => this.kill('SIGKILL');
    process.on('exit', kill);
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        process.off('exit', kill);
        file.end();
        resolve(how);
      };
      this.#process.on('error', (error) => end(error.message));
      this.#process.on('exit', (status, signal) => end(signal ?? `status ${status}`));
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** The first group of the expression, once the output has it. UNAVAILABLE, with the last output, if it ends first. */
  async said(what: RegExp): Promise<string> {
    let found: string | undefined;
    const said = new Promise<void>((resolve) => {
      const look = (): void => {
        found ??= what.exec(this.#last)?.[1];
        if (found !== undefined) resolve();
      };
      this.#listeners.add(look);
      look();
    });
    const how = await Promise.race([said, this.ended]);
    this.#listeners.clear();
    if (found !== undefined) return found;
    throw unavailable(`${this.name} has ended (${how}), see ${this.#log}: ${this.#last.trim()}`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }
}
