/** The machine's randomness, from its cryptographic source: names and tokens of Edubba cannot be guessed. */
import { randomBytes, randomFillSync } from 'node:crypto';
import type { Random } from '../../env/index.ts';

/** Drawn in advance, since a call of the source is slow. */
const pool = Buffer.allocUnsafeSlow(4096);
let used = pool.length;

function float(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  // 53 bits, as many as the fraction of a double holds
  const high = pool.readUInt32LE(used) >>> 5;
  const low = pool.readUInt32LE(used + 4) >>> 6;
  used += 8;
  return (high * 0x400_0000 + low) / 0x20_0000_0000_0000;
}

export const systemRandom: Random = {
  float,
  uniqueName: () => randomBytes(16).toString('hex'),
};
