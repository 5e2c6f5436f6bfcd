/** A program of the cluster on its machine: started, killed, stopped and started again at the same address. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Machine } from './network.ts';

export interface ProgramOptions {
  readonly machine: Machine;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The line that it prints when it is ready. Default: it is not waited for. */
  readonly ready?: RegExp;
  /** All that it prints goes there, also of later starts. */
  readonly logFile: string;
  /** It takes messages of `tell`. */
  readonly takesMessages?: boolean;
  readonly onLine?: (program: Program, line: string) => void;
  /** It has ended, with that status or signal. `wasMeant`: by `end`. */
  readonly onEnd?: (program: Program, end: number | string, wasMeant: boolean) => void;
}

const START_MS = 60_000;
const LAST_LINES = 30;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export class Program {
  readonly machine: Machine;
  readonly #options: ProgramOptions;
  readonly #log: WriteStream;
  readonly #lastLines: string[] = [];
  #child: ChildProcess | undefined;
  #ended: Promise<number | string> = Promise.resolve('not started');
  #isReady = false;
  #isStopped = false;
  #isMeantToEnd = false;

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.machine = options.machine;
    this.#log = createWriteStream(options.logFile, { flags: 'a' });
  }

  get name(): string {
    return this.machine.name;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** It runs, has said that it is ready, and is not stopped. */
  get isReady(): boolean {
    return this.isRunning && this.#isReady && !this.#isStopped;
  }

  /** Resolves when it is ready. Rejects if it ends before. */
  async start(): Promise<void> {
    const { machine, command, env, ready, takesMessages = false, onLine, onEnd } = this.#options;
    const [file, ...args] = machine.command(command);
    this.#log.write(`--- ${new Date().toISOString()} ${command.join(' ')}\n`);
    const child = spawn(file!, args, {
      stdio: ['ignore', 'pipe', 'pipe', ...(takesMessages ? ['ipc' as const] : [])],
      env,
    });
    running.add(child);
    this.#child = child;
    this.#isReady = ready === undefined;
    this.#isMeantToEnd = false;
    const becameReady = new Promise<void>((resolve) => {
      for (const stream of [child.stdout!, child.stderr!])
        createInterface({ input: stream }).on('line', (line) => {
          this.#log.write(`${line}\n`);
          this.#lastLines.push(line);
          if (this.#lastLines.length > LAST_LINES) this.#lastLines.shift();
          if (ready?.test(line)) {
            this.#isReady = true;
            resolve();
          }
          onLine?.(this, line);
        });
    });
    this.#ended = new Promise<number | string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code, signal) => resolve(code ?? signal ?? 'ended'));
    }).then((end) => {
      running.delete(child);
      if (this.#child === child) this.#child = undefined;
      this.#isStopped = false;
      this.#log.write(`--- ${new Date().toISOString()} ended: ${end}\n`);
      onEnd?.(this, end, this.#isMeantToEnd);
      return end;
    });
    if (ready === undefined) return;
    const timeout = AbortSignal.timeout(START_MS);
    const late = new Promise<string>((resolve) => timeout.addEventListener('abort', () => resolve('not ready')));
    const end = await Promise.race([becameReady, this.#ended, late]);
    if (end !== undefined)
      throw new Error(`${this.name} did not start: ${end}\n${command.join(' ')}\n${this.#lastLines.join('\n')}`);
  }

  /** Ends it; returns its status, or the signal that ended it. Undefined if it does not run. */
  async end(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<number | string | undefined> {
    if (this.#child === undefined) return undefined;
    this.#isMeantToEnd = true;
    this.#child.kill(signal);
    return this.#ended;
  }

  stop(): void {
    this.#isStopped = true;
    this.#child?.kill('SIGSTOP');
  }

  continue(): void {
    this.#isStopped = false;
    this.#child?.kill('SIGCONT');
  }

  tell(message: object): void {
    this.#child?.send(message);
  }
}
