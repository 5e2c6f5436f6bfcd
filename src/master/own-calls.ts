/** The calls of a master about itself: they need neither METADATA nor its lock. */
import type { Env } from '../env/index.ts';
import type { Handlers, MasterCalls } from '../protocol/index.ts';

export function ownCalls({ metrics, random, clock }: Env): Pick<Handlers<MasterCalls>, 'counters' | 'clock'> {
  return {
    counters: async () => ({ name: metrics.name(random), counters: metrics.snapshot() }),
    clock: async () => ({ nowMicros: clock.nowMicros() }),
  };
}
