/**
 * The calls that hold memory and depend on their clients for giving it back: requests that are still coming in, and answers that are
 * still to be read. While somebody waits for memory, those that are too slow are ended, those that hold most first. While
 * nobody waits, a slow client is left alone, however long.
 *
 * Invariant: nobody is ended while there is room for all. Looking costs nothing while nobody waits.
 */
import { assert, type BigtableError, unavailable } from '../../base/index.ts';
import type { ApiEnv } from '../contract/rpc-server.ts';
import type { Owner, Relief, Reservation, Timer } from '../../env/index.ts';

/** How often it is looked for slow calls while somebody waits. */
const CHECK_MS = 250;

export interface SlowCall {
  readonly reservation: Reservation;
  /** Where it stands in the list; -1 outside. */
  listIndex: number;
  isTooSlow(nowMs: number): boolean;
  /** Ends the call, and gives back what it holds as far as nothing runs for it any more. */
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
    assert(this.#calls[call.listIndex] === call, 'a slow call is not where it is listed');
    const last = this.#calls.pop()!;
    if (last !== call) {
      this.#calls[call.listIndex] = last;
      last.listIndex = call.listIndex;
    }
    call.listIndex = -1;
  }

  /** Somebody has found no room. Who waits on is looked after in a while. */
  relieve(isEnough: () => boolean): void {
    const nowMs = this.#env.clock.monotonicMs();
    this.#timer ??= this.#env.clock.timer(CHECK_MS, () => this.#checkAgain());
    // whoever is refused in between has a look's outcome already
    if (nowMs - this.#checkedMs < CHECK_MS / 5) return;
    this.#checkedMs = nowMs;
    const slow = this.#calls.filter((call) => call.reservation.heldBytes > 0 && call.isTooSlow(nowMs));
    for (const call of slow.sort((a, b) => b.reservation.heldBytes - a.reservation.heldBytes)) {
      if (isEnough()) return;
      call.endEarly(unavailable('the call was too slow, and others wait for the memory that it holds: try again'));
    }
  }

  /**
   * Makes room for what arrives of a request that is not admitted, by ending one of the caller who has most of such bytes here: principals are
   * compared first, then the connections of that one. False where that is the asker itself.
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
