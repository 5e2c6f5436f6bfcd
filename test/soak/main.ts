/**
 * One soak as a process of its own: node --expose-gc main.js PLACE MINUTES SEED, where PLACE is memory or directory.
 * Prints what it did and a line of JSON with what it found.
 */
import { Soak } from './soak.ts';
import { directoryWorld, memoryWorld } from './worlds.ts';

const [place, minutes, seed] = process.argv.slice(2) as [string, string, string];
const world = place === 'memory' ? memoryWorld(Number(seed)) : await directoryWorld();
try {
  const { failure, counts, memory, maxFiles } = await new Soak(world, Number(seed), Number(minutes)).run();
  if (failure !== undefined) console.log(`${place}, seed ${seed}: ${failure}`);
  console.log(
    JSON.stringify({
      failed: failure !== undefined,
      counts,
      maxFiles,
      used: memory.trend('usedMib'),
      resident: memory.trend('residentMib'),
    }),
  );
} finally {
  await world.end();
}
process.exit();
