/**
 * The program of each thread of `ThreadWorkers`: loads the module of a task when it is first requested, runs it, sends
 * the answer.
 */
import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { assert } from '../../base/index.ts';
import { type PlainThrown, type Task, toPlainThrown } from '../../env/index.ts';

export interface ThreadRequest {
  /** URL of the task's module. */
  readonly module: string;
  readonly argument: unknown;
}

export interface ThreadAnswer {
  readonly value?: unknown;
  readonly error?: PlainThrown;
}

/**
 * Tasks yield to the threads that answer calls where there are more threads than cores, but still get part of a core: a
 * quarter next to a thread that is always busy. On Linux alone: elsewhere priorities are the process's.
 */
const NICENESS = 5;

const port = parentPort;
assert(port, 'this module runs in a thread');
if (process.platform === 'linux') setPriority(0, Math.min(constants.priority.PRIORITY_LOW, getPriority(0) + NICENESS));

port.on('message', async ({ module, argument }: ThreadRequest) => {
  try {
    const { run } = (await import(module)) as { readonly run: Task };
    port.postMessage({ value: await run(argument as never) } satisfies ThreadAnswer);
  } catch (thrown) {
    port.postMessage({ error: toPlainThrown(thrown) } satisfies ThreadAnswer);
  }
});
