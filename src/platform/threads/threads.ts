/**
 * Workers on threads: a pool that starts a thread when a task finds none idle, up to its size. A thread runs one task
 * at a time; later tasks wait their turn. A thread that dies fails only its own task.
 *
 * Idle threads do not keep the process alive, and end after a while: each holds tens of MiB, its heap and compiled
 * code.
 */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { assert, BigtableError, Code, notFound, toBigtableError, unavailable } from '../../base/index.ts';
import { type Clock, fromPlainThrown, type Logger, silentLogger, type Timer, type Workers } from '../../env/index.ts';
import { isSource, mustThreadModule } from './packages.ts';
import { stackOf } from '../machine/stray-errors.ts';
import type { ThreadAnswer, ThreadRequest } from './thread-main.ts';

/** A thread that was idle for this time ends. Starting a new one is slow: it compiles its code anew. */
const IDLE_MS = 30_000;

export interface ThreadWorkersOptions {
  /** Most concurrent threads, at least 1. */
  readonly size: number;
  /** Modules by task name, each exporting `run(argument)`; `moduleUrl` and `threadModule` make the URLs. */
  readonly tasks: Readonly<Record<string, URL>>;
  /** Measures the idle time of threads. */
  readonly clock: Clock;
  /** Logs threads that die. Default: silent. */
  readonly logger?: Logger | undefined;
}

interface Job {
  readonly task: string;
  readonly request: ThreadRequest;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: BigtableError) => void;
}

interface IdleThread {
  readonly thread: Worker;
  /** Ends the thread. */
  readonly timer: Timer;
}

export class ThreadWorkers implements Workers {
  readonly #size: number;
  readonly #tasks: ReadonlyMap<string, URL>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** The one that worked last is taken first, so that the others reach their idle time. */
  readonly #idle: IdleThread[] = [];
  readonly #busy = new Map<Worker, Job>();
  readonly #waiting: Job[] = [];
  #closed = false;

  constructor(options: ThreadWorkersOptions) {
    assert(Number.isInteger(options.size) && options.size >= 1, `a pool of ${options.size} threads`);
    this.#size = options.size;
    this.#clock = options.clock;
    this.#logger = options.logger ?? silentLogger;
    this.#tasks = new Map(Object.entries(options.tasks));
  }

  async run(task: string, argument: unknown): Promise<unknown> {
    const module = this.#tasks.get(task);
    if (!module) throw notFound(`task ${JSON.stringify(task)} not found`);
    if (this.#closed) throw unavailable('the workers are closed');
    return new Promise((resolve, reject) => {
      this.#waiting.push({ task, request: { module: module.href, argument }, resolve, reject });
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of [...this.#waiting.splice(0), ...this.#busy.values()])
      job.reject(unavailable('the workers were closed while the task ran'));
    for (const { timer } of this.#idle) timer.cancel();
    const threads = [...this.#idle.splice(0).map(({ thread }) => thread), ...this.#busy.keys()];
    this.#busy.clear();
    await Promise.all(threads.map((thread) => thread.terminate()));
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#takeIdle() ?? (this.#busy.size < this.#size ? this.#start() : undefined);
      if (!thread) return;
      this.#assign(thread, this.#waiting.shift()!);
    }
  }

  #takeIdle(): Worker | undefined {
    const idle = this.#idle.pop();
    idle?.timer.cancel();
    return idle?.thread;
  }

  #keepIdle(thread: Worker): void {
    const idle: IdleThread = {
      thread,
      timer: this.#clock.timer(IDLE_MS, () => {
        this.#idle.splice(this.#idle.indexOf(idle), 1);
        void thread.terminate();
      }),
    };
    this.#idle.push(idle);
  }

  #assign(thread: Worker, job: Job): void {
    try {
      thread.postMessage(job.request);
    } catch (thrown) {
      // the argument cannot be cloned
      this.#keepIdle(thread);
      return job.reject(toBigtableError(thrown));
    }
    this.#busy.set(thread, job);
    thread.ref();
  }

  #start(): Worker {
    const thread = startThread(mustThreadModule('./thread-main.ts', import.meta.url));
    let failure: unknown;
    thread.unref();
    thread.on('message', (answer: ThreadAnswer) => this.#finished(thread, answer));
    thread.on('error', (thrown) => {
      failure = thrown;
    });
    // follows 'error' too
    thread.on('exit', (exitCode) => this.#died(thread, exitCode, failure));
    return thread;
  }

  #finished(thread: Worker, answer: ThreadAnswer): void {
    const job = this.#busy.get(thread);
    if (!job) return;
    this.#busy.delete(thread);
    this.#keepIdle(thread);
    thread.unref();
    if (answer.error) job.reject(fromPlainThrown(answer.error));
    else job.resolve(answer.value);
    this.#dispatch();
  }

  #died(thread: Worker, exitCode: number, failure: unknown): void {
    if (failure !== undefined) this.#logger.error('a worker thread has failed', { stack: stackOf(failure) });
    const index = this.#idle.findIndex((idle) => idle.thread === thread);
    if (index >= 0) this.#idle.splice(index, 1)[0]?.timer.cancel();
    const job = this.#busy.get(thread);
    if (!job) return;
    this.#busy.delete(thread);
    const why = failure instanceof Error ? failure.message : `exit code ${exitCode}`;
    job.reject(
      new BigtableError(Code.INTERNAL, `task ${JSON.stringify(job.task)}: its thread died: ${why}`, { cause: failure }),
    );
    this.#dispatch();
  }
}

/** A thread that runs the module. */
export function startThread(module: URL, options: WorkerOptions = {}): Worker {
  // a bundle in CommonJS has no URL, and is not a source
  if (!isSource(import.meta.url ?? '')) return new Worker(module, options);
  // a thread does not inherit the loader of TypeScript, so a run from the sources starts it there first
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return new Worker(
    `import(${loader}).then(({ register }) => { register(); return import(${JSON.stringify(module.href)}); });`,
    { ...options, eval: true },
  );
}
