/**
 * Memory for the answer of a call that writes, reserved before it writes anything: an answer that waits for its reader
 * holds memory, and a write cannot be taken back when there is none for its answer.
 *
 * Only the row determines the size of the answer: the call goes out with a limit for its answer, and where that is too
 * low nothing is written, the answer's size comes back, space for it is reserved, and the call goes out again.
 */
import { BigtableError, Code } from '../../base/index.ts';
import type { Reservation } from '../../env/index.ts';

/** Enough for counters and names. */
const FIRST_BYTES = 1024;
/** Tries for a row that grows between them. */
const MAX_TRIES = 4;

/**
 * Makes the call with a limit for its answer. RESOURCE_EXHAUSTED, with nothing written, where the budget has no space
 * for the answer.
 */
export function withAnswerSpace<T>(reservation: Reservation, call: (maxAnswerBytes: number) => Promise<T>): Promise<T> {
  if (!reservation.tryGrow(FIRST_BYTES)) return Promise.reject(noSpaceForAnswer(FIRST_BYTES));
  return call(FIRST_BYTES).catch((error: unknown) => withMoreSpace(reservation, call, error));
}

async function withMoreSpace<T>(
  reservation: Reservation,
  call: (maxAnswerBytes: number) => Promise<T>,
  thrown: unknown,
): Promise<T> {
  let error = thrown;
  let spaceBytes = FIRST_BYTES;
  for (let i = 1; i < MAX_TRIES; i++) {
    const bytes = answerBytesOf(error);
    if (bytes === undefined || bytes <= spaceBytes) throw error;
    if (!reservation.tryGrow(bytes - spaceBytes)) throw noSpaceForAnswer(bytes);
    spaceBytes = bytes;
    try {
      return await call(spaceBytes);
    } catch (next) {
      error = next;
    }
  }
  throw error;
}

/** The size of the answer where the limit was too low for it; undefined for other errors. */
function answerBytesOf(error: unknown): number | undefined {
  const bytes = error instanceof BigtableError ? error.details.answerBytes : undefined;
  return typeof bytes === 'number' ? bytes : undefined;
}

export function noSpaceForAnswer(bytes: number): BigtableError {
  return new BigtableError(
    Code.RESOURCE_EXHAUSTED,
    `an answer of ${bytes} bytes exceeds the memory that other requests and their answers leave: nothing was written`,
  );
}
