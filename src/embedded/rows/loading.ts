/**
 * `Table.load`: any number of mutations out of a source, in batches, in the source's order. While a batch is on its way
 * the source fills the next one, and then waits; so no more is held than two batches.
 *
 * Invariant: when it ends, well or not, nothing of it is on its way any more and the source was closed; but for a
 * source that the caller's signal found waiting, which is closed when it answers.
 */
import { checkOptions, describeValue, invalidArgument, type OptionTable, toBigtableError } from '../../base/index.ts';
import { CallContext, type RequestContext } from '../../env/index.ts';
import type { Service } from '../../service/index.ts';
import { BatchError, type BatchFailure } from '../calls/batch-error.ts';
import { CALL_OPTIONS, type CallOptions } from '../calls/call-options.ts';
import { isRowMutation, type RowMutation } from './row-mutation.ts';
import { applyEntries, bytesOf, type Entry, entryOf } from './write-batches.ts';

export type MutationSource = Iterable<RowMutation> | AsyncIterable<RowMutation>;

export interface LoadProgress {
  /** Mutations that are on disk. */
  readonly applied: number;
}

export interface LoadOptions extends CallOptions {
  /** Told after every batch. What it throws ends the load, and the load fails with it. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

const LOAD = { onProgress: 'free', ...CALL_OPTIONS } satisfies OptionTable<LoadOptions>;

/** Some mutations of a load failed, and it was ended. Their indexes count from the source's first, which is 0. */
export class LoadError extends BatchError {
  override readonly name: string = 'LoadError';
  /** Mutations that are on disk, before and after those that failed. */
  readonly applied: number;

  constructor(failures: readonly BatchFailure[], applied: number) {
    super(failures, `, with ${applied} applied`);
    this.applied = applied;
  }
}

const BATCH = { mutations: 1000, steps: 20_000, bytes: 1024 * 1024 } as const;

export function checkLoad(source: MutationSource, options: LoadOptions): void {
  checkOptions(options, LOAD, 'load');
  const { onProgress } = options;
  const iterable: unknown = source;
  if (
    typeof iterable !== 'object' ||
    iterable === null ||
    !(Symbol.iterator in iterable || Symbol.asyncIterator in iterable)
  ) {
    throw invalidArgument(`load takes mutations out of an iterable or an async iterable, not ${describeValue(source)}`);
  }
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw invalidArgument(`onProgress must be a function, not ${describeValue(onProgress)}`);
}

export interface LoadOutcome {
  /** Mutations that are on disk. */
  readonly applied: number;
  /** Sorted by index. */
  readonly failures: readonly BatchFailure[];
  /** The error that the source, or `onProgress`, threw. */
  readonly thrown: { readonly error: unknown } | undefined;
}

export async function load(
  service: Service,
  context: RequestContext,
  table: string,
  source: MutationSource,
  onProgress: LoadOptions['onProgress'],
): Promise<LoadOutcome> {
  const loading = new Loading(service, context, table, onProgress);
  try {
    // leaving the loop closes the source
    for await (const mutation of source) {
      const full = loading.add(mutation);
      if (full !== undefined) await full;
      if (loading.isOver) break;
    }
  } catch (error) {
    return loading.end({ error });
  }
  return loading.end();
}

class Loading {
  readonly #service: Service;
  readonly #context: RequestContext;
  readonly #table: string;
  readonly #onProgress: LoadOptions['onProgress'];
  #batch: Entry[] = [];
  #steps = 0;
  #bytes = 0;
  /** Mutations that the source has given. */
  #taken = 0;
  #applied = 0;
  readonly #failures: BatchFailure[] = [];
  /** The error that ended the load, other than failures of mutations. */
  #thrown: { readonly error: unknown } | undefined;
  /** The batch in flight; rejects only if it is empty. */
  #sending: Promise<void> | undefined;

  constructor(service: Service, context: RequestContext, table: string, onProgress: LoadOptions['onProgress']) {
    this.#service = service;
    this.#context = context;
    this.#table = table;
    this.#onProgress = onProgress;
  }

  get isOver(): boolean {
    return this.#failures.length > 0 || this.#thrown !== undefined || this.#interruption !== undefined;
  }

  /** A promise where the source must wait. */
  add(mutation: RowMutation): Promise<void> | undefined {
    const index = this.#taken++;
    if (!isRowMutation(mutation)) {
      this.#failures.push({
        index,
        error: invalidArgument(`a mutation to load must be a RowMutation, not ${describeValue(mutation)}`),
      });
      return undefined;
    }
    const entry = entryOf(mutation);
    this.#batch.push(entry);
    this.#steps += entry.mutations.length;
    this.#bytes += bytesOf(entry);
    const isFull = this.#batch.length >= BATCH.mutations || this.#steps >= BATCH.steps || this.#bytes >= BATCH.bytes;
    return isFull ? this.#send() : undefined;
  }

  /** Sends what is left, unless it is over, and waits for all that is on its way. `thrown`: by the source. */
  async end(thrown?: { readonly error: unknown }): Promise<LoadOutcome> {
    if (!this.isOver && (this.#batch.length > 0 || this.#taken === 0)) await this.#send();
    await this.#sending;
    if (this.#interruption !== undefined) throw this.#interruption;
    return {
      applied: this.#applied,
      failures: this.#failures.sort((a, b) => a.index - b.index),
      thrown: thrown ?? this.#thrown,
    };
  }

  get #interruption(): unknown {
    return this.#context instanceof CallContext ? this.#context.interruption : undefined;
  }

  /** Resolves when the batch is on its way: when the one before has arrived. */
  async #send(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#steps = 0;
    this.#bytes = 0;
    await this.#sending;
    if (!this.isOver) this.#sending = this.#apply(batch, this.#taken - batch.length);
  }

  /** `first`: the index of the batch's first mutation. */
  async #apply(batch: readonly Entry[], first: number): Promise<void> {
    const failures = await this.#failuresOf(batch);
    for (const { index, error } of failures) this.#failures.push({ index: first + index, error });
    this.#applied += batch.length - failures.length;
    if (this.isOver) return;
    try {
      this.#onProgress?.({ applied: this.#applied });
    } catch (error) {
      this.#thrown = { error };
    }
  }

  async #failuresOf(batch: readonly Entry[]): Promise<readonly BatchFailure[]> {
    try {
      // nothing to do, but the table must be there
      if (batch.length === 0) await this.#service.getTable(this.#context, this.#table);
      else return await applyEntries(this.#service, this.#context, this.#table, batch);
    } catch (thrown) {
      if (batch.length === 0) throw thrown;
      const error = toBigtableError(thrown);
      return batch.map((_, index) => ({ index, error }));
    }
    return [];
  }
}
