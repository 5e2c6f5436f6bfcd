/**
 * The calls that hold memory until their clients act: requests that are still coming in, and answers that are still to
 * be read. While a call waits for memory, those that are too slow are ended, the ones that hold most first. Otherwise a
 * slow client may take as long as it likes.
 *
 * Invariant: no call is ended while there is memory for all. Without waiting calls this costs nothing.
 */
import { assert, type BigtableError, unavailable } from '../../base/index.ts';
import type { ApiEnv } from '../contract/rpc-server.ts';
import type { Owner, Relief, Reservation, Timer } from '../../env/index.ts';

/** Time between two searches for slow calls, while a call waits. */
const CHECK_MS = 250;

export interface SlowCall {
  readonly reservation: Reservation;
  /** Its index in the list; -1 outside. */
  listIndex: number;
  isTooSlow(nowMs: number): boolean;
  /** Ends the call, and releases what it holds, except for work that still runs. */
  endEarly(error: BigtableError): void;
}

export class SlowCalls implements Relief {
  readonly #env: Pick<ApiEnv, 'clock' | 'requestBudget'>;
  readonly #calls: SlowCall[] = [];
  #timer: Timer | undefined;
  #checkedMs = Number.NEGATIVE_INFINITY;

  constructor(env: Pick<ApiEnv, 'clock' | 'requestBudget'>) {
    this.#env = env;
    env.requestBudget.addRelief(this);
  }

  close(): void {
    this.#env.requestBudget.removeRelief(this);
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  add(call: SlowCall): void {
    if (call.listIndex >= 0) return;
    call.listIndex = this.#calls.length;
    this.#calls.push(call);
  }

  remove(call: SlowCall): void {
    if (call.listIndex < 0) return;
    assert(this.#calls[call.listIndex] === call, 'a slow call is where it is listed');
    const last = this.#calls.pop()!;
    if (last !== call) {
      this.#calls[call.listIndex] = last;
      last.listIndex = call.listIndex;
    }
    call.listIndex = -1;
  }

  /** A call has found no memory. Later searches serve those that still wait. */
  relieve(isEnough: () => boolean): void {
    const nowMs = this.#env.clock.monotonicMs();
    this.#timer ??= this.#env.clock.timer(CHECK_MS, () => this.#checkAgain());
    // the outcome of a search so recent still holds
    if (nowMs - this.#checkedMs < CHECK_MS / 5) return;
    this.#checkedMs = nowMs;
    const slow = this.#calls.filter((call) => call.reservation.heldBytes > 0 && call.isTooSlow(nowMs));
    for (const call of slow.sort((a, b) => b.reservation.heldBytes - a.reservation.heldBytes)) {
      if (isEnough()) return;
      call.endEarly(unavailable('the call was too slow, and others wait for the memory that it holds: try again'));
    }
  }

  /**
   * Frees memory for the bytes of a request that is not admitted, by ending a request of the caller that holds most of
   * such bytes: principals are compared first, then the connections of that one. False where that caller is `owner`
   * itself.
   */
  makeSpace(owner: Owner | undefined): boolean {
    const [principals, owners] = [new Map<Owner, number>(), new Map<Owner, number>()];
    for (const { reservation } of this.#calls) {
      const { owner: whose, arrivingBytes } = reservation;
      if (whose === undefined || arrivingBytes === 0) continue;
      const principal = whose.principal ?? whose;
      principals.set(principal, (principals.get(principal) ?? 0) + arrivingBytes);
      owners.set(whose, (owners.get(whose) ?? 0) + arrivingBytes);
    }
    const most = greatest(principals, () => true);
    const greedy = most && greatest(owners, (whose) => (whose.principal ?? whose) === most);
    if (greedy === undefined || greedy === owner) return false;
    const victim = this.#calls.findLast(
      ({ reservation }) => reservation.owner === greedy && reservation.arrivingBytes > 0,
    );
    victim?.endEarly(unavailable('others wait for the memory that the requests of this connection take: try again'));
    return victim !== undefined;
  }

  #checkAgain(): void {
    this.#timer = undefined;
    const { requestBudget } = this.#env;
    if (requestBudget.waiting > 0) this.relieve(() => requestBudget.waiting === 0);
  }
}

function greatest(bytes: ReadonlyMap<Owner, number>, may: (owner: Owner) => boolean): Owner | undefined {
  let best: Owner | undefined;
  for (const [owner, held] of bytes) if (may(owner) && (best === undefined || held > bytes.get(best)!)) best = owner;
  return best;
}
