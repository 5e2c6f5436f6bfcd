/**
 * The fifth seam: work off the main thread. A task is a named module (registered where the adapter is made) that
 * exports `run(argument)`; argument and answer are cloneable. Threads in a server, in line under the simulator and in
 * unit tests.
 */

export interface Workers {
  /** Runs the task and returns its result; an error of the task arrives as BigtableError. */
  run(task: string, argument: unknown): Promise<unknown>;
  close(): Promise<void>;
}

/** A task's implementation, as the in-line adapter takes it and a worker thread calls it. */
export type Task = (argument: never) => unknown;
