/**
 * Workers without threads: a task runs on the caller's thread, a turn later. Argument and answer are cloned as between
 * threads, so that data that cannot be sent to a thread fails here too.
 */
import { notFound, toBigtableError, unavailable } from '../../base/index.ts';
import type { Task, Workers } from '../seams/workers.ts';

export class InlineWorkers implements Workers {
  readonly #tasks: ReadonlyMap<string, Task>;
  /** Functions that fail the running tasks. */
  readonly #running = new Set<(error: Error) => void>();
  #closed = false;

  constructor(tasks: Readonly<Record<string, Task>>) {
    this.#tasks = new Map(Object.entries(tasks));
  }

  async run(task: string, argument: unknown): Promise<unknown> {
    const implementation = this.#tasks.get(task);
    if (!implementation) throw notFound(`task ${JSON.stringify(task)} not found`);
    if (this.#closed) throw unavailable('the workers are closed');
    return new Promise((resolve, reject) => {
      const finish = (end: () => void): void => {
        this.#running.delete(reject);
        end();
      };
      this.#running.add(reject);
      perform(implementation, argument).then(
        (answer) => finish(() => resolve(answer)),
        (thrown: unknown) => finish(() => reject(toBigtableError(thrown))),
      );
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const fail of this.#running) fail(unavailable('the workers were closed while the task ran'));
    this.#running.clear();
  }
}

async function perform(task: Task, argument: unknown): Promise<unknown> {
  const cloned = structuredClone(argument);
  await undefined;
  return structuredClone(await task(cloned as never));
}
