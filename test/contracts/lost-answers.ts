/** A lock service whose calls are applied, and whose answers get lost. */
import { unavailable } from '../../src/base/index.ts';
import type { LockService } from '../../src/env/index.ts';

export interface LosingAnswers {
  readonly service: LockService;
  /** Number of answers lost so far. */
  readonly lost: number;
}

/**
 * Loses the answer to the first sending of each call for which `loses` is true, with the number of the call; that to
 * its repetition arrives. Calls come one after another.
 */
export function losingAnswers(
  inner: LockService,
  loses: (call: number, method: keyof LockService, args: readonly unknown[]) => boolean,
): LosingAnswers {
  let calls = 0;
  let lost = 0;
  let before: string | undefined;
  const service = new Proxy(inner, {
    get: (target, method: keyof LockService) => {
      const value = target[method] as unknown;
      if (typeof value !== 'function') return value;
      if (method === 'watch' || method === 'leaseHolds') return value.bind(target);
      return async (...args: unknown[]) => {
        const answer = (await value.apply(target, args)) as unknown;
        const call = JSON.stringify([method, args]);
        const isRepetition = call === before;
        before = undefined;
        if (isRepetition || !loses(++calls, method, args)) return answer;
        before = call;
        lost++;
        throw unavailable('the answer was lost');
      };
    },
  });
  return {
    service,
    get lost() {
      return lost;
    },
  };
}
