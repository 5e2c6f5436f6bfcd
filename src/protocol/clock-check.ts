/**
 * The rule for the clocks of a cluster's machines: a process whose wall clock is more than a second off that of the
 * master does not start (docs/decisions/0073-clocks-at-the-start.md).
 *
 * Invariant: a process is refused only if its clock surely is off. The master read its clock at some instant within the
 * call, so the difference is known to within the duration of the call.
 */
import { BigtableError, Code, toBigtableError } from '../base/index.ts';
import type { Clock, LockService, RequestContext, Transport } from '../env/index.ts';
import { callMaster } from './calls.ts';
import { decodeCallablePeer, MASTER_PATH, type PeerFile } from './version.ts';

const MAX_OFFSET_MS = 1000;
/** A master that takes longer does not answer. */
const CALL_MS = 1000;
/** Calls that were too slow to decide are repeated. */
const ATTEMPTS = 3;

export interface ClockCheckParts {
  readonly lockService: LockService;
  readonly transport: Transport;
  readonly clock: Clock;
}

/**
 * FAILED_PRECONDITION if the wall clock surely is more than a second ahead of that of the master, or behind it.
 * UNAUTHENTICATED if the master and this process do not know each other: they have different secrets, say. Returns
 * false if there is nothing to compare with: no master is known, or it does not answer, or cannot be called.
 */
export async function checkClock(parts: ClockCheckParts, context: RequestContext): Promise<boolean> {
  const { lockService, transport, clock } = parts;
  const file = await lockService.read(MASTER_PATH);
  const master = file && callable(file.contents);
  if (master === undefined) return false;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const sentMs = clock.nowMicros() / 1000;
    const startMs = clock.monotonicMs();
    const call = callMaster(transport, master.address, 'clock', {}, { ...context, deadlineMs: startMs + CALL_MS });
    const answer = await call.catch(refusal);
    if (answer === undefined) return false;
    const leastMs = sentMs - answer.nowMicros / 1000;
    const mostMs = leastMs + clock.monotonicMs() - startMs;
    if (leastMs > MAX_OFFSET_MS) throw clockIsOff(leastMs, 'ahead of', `${master.name} at ${master.address}`);
    if (mostMs < -MAX_OFFSET_MS) throw clockIsOff(-mostMs, 'behind', `${master.name} at ${master.address}`);
    if (leastMs >= -MAX_OFFSET_MS && mostMs <= MAX_OFFSET_MS) break;
  }
  return true;
}

/** Undefined where the master does not answer. */
function refusal(thrown: unknown): undefined {
  if (toBigtableError(thrown).code === Code.UNAUTHENTICATED) throw thrown;
  return undefined;
}

function callable(contents: Uint8Array): PeerFile | undefined {
  try {
    return decodeCallablePeer(MASTER_PATH, contents);
  } catch {
    // a caller that needs the master says why
    return undefined;
  }
}

function clockIsOff(offsetMs: number, where: 'ahead of' | 'behind', master: string): BigtableError {
  const seconds = (offsetMs / 1000).toFixed(1);
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `the wall clock is ${seconds} s ${where} that of the master ${master}: more than ${MAX_OFFSET_MS / 1000} s is not allowed. Set the clocks of both machines (NTP does), and start again`,
    { details: { clockOffsetMs: Math.round(where === 'behind' ? -offsetMs : offsetMs) } },
  );
}
