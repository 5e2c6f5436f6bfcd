/**
 * A process that creates files and slots in a shared directory until it is killed; a message after each round. The name
 * of a file ends with its size, a slot has 50,000 bytes.
 */
import { openSharedDirectory, systemClock, systemRandom } from '../../src/platform/index.ts';

const [directory = '', name = ''] = process.argv.slice(2);
const { fileSystem, slots } = await openSharedDirectory(directory, { clock: systemClock, random: systemRandom });
for (let round = 0; ; round++) {
  const size = 1 + ((round * 7919) % 300_000);
  const writer = await fileSystem.create(`w/${name}.${round}.${size}`);
  for (let at = 0; at < size; at += 10_000) await writer.append(Buffer.alloc(Math.min(10_000, size - at), 7));
  await writer.close();
  await slots.create(`s/${name}`, round, [Buffer.alloc(20_000, 7), Buffer.alloc(30_000, 7)]);
  process.send?.(round);
}
