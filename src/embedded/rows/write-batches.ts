/**
 * Many mutations, in requests that any server takes: at most as many steps as the API allows in one, and bytes within
 * bounds. Only each mutation is atomic, so the ends of requests are not observable.
 */
import { type BigtableError, toBigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { LIMITS, type Mutation, type RowMutations } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import type { BatchFailure } from '../calls/batch-error.ts';
import { CallEndedError } from '../calls/call-end.ts';
import type { RowMutation } from './row-mutation.ts';

export interface Entry extends RowMutations {
  readonly mutations: readonly Mutation[];
}

export function entryOf({ row, mutations, idempotency }: RowMutation): Entry {
  return { row, mutations, idempotency };
}

export interface BatchBounds {
  readonly steps: number;
  /** Bytes of keys and values. One entry may have more. */
  readonly bytes: number;
}

const MIB = 1024 * 1024;
/** Bounds of one request. */
const REQUEST: BatchBounds = { steps: LIMITS.default.mutationsPerRequest, bytes: 32 * MIB };
/** The approximate size of a step without its qualifier and value. */
const STEP_BYTES = 32;

export function bytesOf({ row, mutations }: Entry): number {
  let bytes = row.length;
  for (const mutation of mutations) {
    bytes += STEP_BYTES;
    if (mutation.kind === 'setCell') bytes += mutation.qualifier.length + mutation.value.length;
    else if ('qualifier' in mutation) bytes += mutation.qualifier.length;
    if (mutation.kind === 'mergeToCell') bytes += mutation.state?.length ?? 0;
  }
  return bytes;
}

/** The end, exclusive, of the request that begins with entry `from`. */
function endOfRequest(entries: readonly Entry[], from: number, bounds: BatchBounds): number {
  let [steps, bytes] = [0, 0];
  for (let index = from; index < entries.length; index++) {
    const entry = entries[index]!;
    steps += entry.mutations.length;
    bytes += bytesOf(entry);
    if (index > from && (steps > bounds.steps || bytes > bounds.bytes)) return index;
  }
  return entries.length;
}

/**
 * Applies all entries by sequential requests and returns the failures. If the first request fails as a whole (no such
 * table, no server), the error is thrown; a later one fails every remaining entry.
 */
export async function applyEntries(
  service: Service,
  context: RequestContext,
  table: string,
  entries: readonly Entry[],
  bounds = REQUEST,
): Promise<readonly BatchFailure[]> {
  const failures: BatchFailure[] = [];
  for (let from = 0; from < entries.length; ) {
    const to = endOfRequest(entries, from, bounds);
    const part = from === 0 && to === entries.length ? entries : entries.slice(from, to);
    let answers: readonly (BigtableError | undefined)[];
    try {
      answers = await service.mutateRows(context, table, part);
    } catch (error) {
      if (from === 0 || error instanceof CallEndedError) throw error;
      const failure = toBigtableError(error);
      for (let index = from; index < entries.length; index++) failures.push({ index, error: failure });
      return failures;
    }
    for (let i = 0; i < answers.length; i++) {
      const error = answers[i];
      if (error !== undefined) failures.push({ index: from + i, error });
    }
    from = to;
  }
  return failures;
}
