/** A slot store that many machines share and reach badly: its calls fail, lose their answers, and land late. */
import { unavailable } from '../../src/base/index.ts';
import type { SlotStore } from '../../src/env/index.ts';

/**
 * What a call comes to: `unanswered`: it takes effect and fails; `failed`: it fails without effect; `late`: it fails,
 * and takes effect after later calls.
 */
export type Fate = 'answered' | 'unanswered' | 'failed' | 'late';

export interface UnreliableSlots {
  readonly store: SlotStore;
  readonly counts: Readonly<Record<Fate, number>>;
  /** All that is under way takes effect. */
  landAll(): Promise<void>;
}

/** `fate` is drawn for each call; `lateBy`: after how many calls a late one lands. */
export function unreliableSlots(
  inner: SlotStore,
  fate: (method: keyof SlotStore, args: readonly unknown[]) => Fate,
  lateBy: () => number = () => 2,
): UnreliableSlots {
  const counts = { answered: 0, unanswered: 0, failed: 0, late: 0 };
  let underWay: { calls: number; readonly land: () => Promise<unknown> }[] = [];
  const landDue = async (): Promise<void> => {
    for (const call of underWay) call.calls--;
    const due = underWay.filter(({ calls }) => calls <= 0);
    underWay = underWay.filter(({ calls }) => calls > 0);
    for (const { land } of due) await land();
  };
  const store = new Proxy(inner, {
    get: (target, method: keyof SlotStore) => {
      const call = target[method] as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        await landDue();
        const drawn = fate(method, args);
        counts[drawn]++;
        if (drawn === 'late') {
          const copied = args.map((arg) => structuredClone(arg));
          underWay.push({ calls: lateBy(), land: () => call.apply(target, copied).catch(() => undefined) });
          throw unavailable(`${method} has timed out`);
        }
        if (drawn === 'failed') throw unavailable(`${method} did not reach the store`);
        const answer = await call.apply(target, args);
        if (drawn === 'unanswered') throw unavailable(`the answer to ${method} was lost`);
        return answer;
      };
    },
  });
  return {
    store,
    counts,
    landAll: async () => {
      while (underWay.length > 0) await landDue();
    },
  };
}

/** The fate of the first sending of each call; its repetition is answered. */
export function eachCallOnce(fate: Fate): (method: keyof SlotStore, args: readonly unknown[]) => Fate {
  const sent = new Map<string, number>();
  return (method, args) => {
    const key = `${method} ${args.filter((arg) => typeof arg !== 'object').join(' ')}`;
    const times = sent.get(key) ?? 0;
    sent.set(key, times + 1);
    return times % 2 === 0 ? fate : 'answered';
  };
}
