/** A process that runs the bundle as users do, with the probe loaded before it. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as library from '../../src/embedded/index.ts';
import { userEnvironment } from '../cli/user-environment.ts';
import { BUNDLE, ROOT } from './bundled-classes.ts';
import type { ClassCount, Message } from './messages.ts';
import { type WorkloadName, Workloads } from './workloads.ts';

const HERE = fileURLToPath(import.meta.url);

export class JudgedProcess {
  readonly #process: ChildProcess;
  #out = '';
  #err = '';
  /** Rejects when the process ends. */
  readonly #ended: Promise<never>;
  #run: (workload: WorkloadName, calls: number) => Promise<unknown> = (name, calls) =>
    this.ask({ kind: 'workload', name, calls });

  private constructor(t: TestContext, program: string, words: readonly string[]) {
    const probe = pathToFileURL(join(dirname(HERE), `probe${extname(HERE)}`)).href;
    const loader = process.execArgv.filter((word) => !word.startsWith('--test'));
    this.#process = fork(program, [...words], {
      execArgv: [...loader, '--import', probe],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // it would load the costly asserts of tests
      env: { ...userEnvironment(), NODE_OPTIONS: '' },
    });
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#out += text));
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#err += text));
    this.#ended = once(this.#process, 'close').then(() => assert.fail(this.#err));
    this.#ended.catch(() => undefined);
    t.after(() => {
      this.#process.kill('SIGKILL');
      return this.#ended.catch(() => undefined);
    });
  }

  /** `edubba serve` on a directory. */
  static async server(t: TestContext): Promise<JudgedProcess> {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-shapes-'));
    const settings = ['--memtable-bytes', '1MiB', '--metrics-address', 'off', '--slow-ms', '0'];
    const words = ['serve', '--dir', directory, '--address', '127.0.0.1:0', ...settings];
    const judged = new JudgedProcess(t, join(ROOT, 'bin/edubba'), words);
    t.after(() => rm(directory, { recursive: true, force: true }));
    const database = await library.connect(await judged.#address());
    t.after(() => database.close());
    const workloads = await Workloads.begin(library, database);
    judged.#run = (name, calls) => workloads.run(name, calls);
    return judged;
  }

  /** A program with the library. */
  static async library(t: TestContext): Promise<JudgedProcess> {
    const program = join(dirname(HERE), `library${extname(HERE)}`);
    const judged = new JudgedProcess(t, program, [pathToFileURL(join(BUNDLE, 'index.js')).href]);
    await judged.#answer();
    return judged;
  }

  /** Runs workloads in that order, each with that number of small calls. */
  async run(order: readonly WorkloadName[], calls: number): Promise<void> {
    for (const name of order) await this.#run(name, calls);
  }

  /** Sends the message; returns the counts when it is done. */
  ask(message: Message): Promise<readonly ClassCount[]> {
    const answer = this.#answer();
    this.#process.send(message);
    return answer;
  }

  async #answer(): Promise<readonly ClassCount[]> {
    const [answer] = (await Promise.race([once(this.#process, 'message'), this.#ended])) as [readonly ClassCount[]];
    return answer;
  }

  async #address(): Promise<string> {
    for (;;) {
      const address = /^listening on (\S+)$/m.exec(this.#out)?.[1];
      if (address !== undefined) return address;
      await Promise.race([once(this.#process.stdout as NodeJS.ReadableStream, 'data'), this.#ended]);
    }
  }
}
