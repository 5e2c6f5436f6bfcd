/** Races of a writer and its fencers on slots in memory, in simulated time. */
import { test } from 'node:test';
import { assertRaced, type RaceCounts, raceFence } from '../../../test/contracts/fence-race.ts';
import { inSimulatedTime } from '../../../test/simulated-time.ts';
import { ManualClock } from '../memory/manual-clock.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';

const RACES = 1000;

test(`${RACES} races of a writer and its fencers, by seed`, async () => {
  const counts: RaceCounts[] = [];
  for (let seed = 1; seed <= RACES; seed++) {
    const clock = new ManualClock();
    const machines = [new MemorySlotStore({ pageSize: 3 })];
    counts.push(await inSimulatedTime(clock, raceFence({ seed, clock, machines, log: 'logs/server' })));
  }
  assertRaced(counts);
});
