/**
 * npm run fuzz -- [--seconds N | --inputs N] [--seed S] [--target NAME]: damaged bytes for everything that reads a
 * peer's bytes (scripts/lib/fuzz-targets.mjs). Default: 60 seconds. Closes with one line 'N passed, N failed, N
 * skipped', of inputs.
 *
 * An input fails when it is answered by anything but the errors that are meant for it, or takes longer than
 * MAX_INPUT_MS; it is printed in hexadecimal. The run fails as a whole when memory grows beyond MAX_HEAP_BYTES. One
 * seed makes one run, as far as the number of inputs is the same.
 */
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { closingLine, secondsSince } from './lib/repository.mjs';

helpIfAsked(import.meta.url);

const MAX_INPUT_MS = 1000;
const MAX_HEAP_BYTES = 512 * 1024 * 1024;
const MAX_INPUT_BYTES = 4096;
const MAX_FAILURES = 10;
/** Inputs between two looks at the clock. */
const ROUND = 512;

const { values } = argumentsOf({
  options: {
    seconds: { type: 'string' },
    inputs: { type: 'string' },
    seed: { type: 'string' },
    target: { type: 'string' },
  },
});
const maxInputs = values.inputs === undefined ? Number.POSITIVE_INFINITY : Number(values.inputs);
const maxMs = Number(values.seconds ?? (values.inputs === undefined ? 60 : Number.POSITIVE_INFINITY)) * 1000;
const seed = Number(values.seed ?? 1);
if (!(maxInputs > 0 && maxMs > 0 && Number.isSafeInteger(seed))) {
  console.log('--seconds, --inputs and --seed take numbers');
  process.exit(2);
}

buildOrExit();
const { TARGETS } = await import('./lib/fuzz-targets.mjs');

/**
 * Numbers below `limit`, the same for one seed (xorshift).
 *
 * @param {number} start
 */
function randomOf(start) {
  let state = (start * 2654435761 + 1) >>> 0 || 1;
  return (/** @type {number} */ limit) => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % limit;
  };
}

const random = randomOf(seed);
const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x20, 0x3f, 0x40, 0x0f];

/**
 * One damage: a byte changed, bytes taken out, doubled, put in, another good input's piece, or the end cut off.
 *
 * @param {Buffer} bytes
 * @param {Buffer[]} others
 */
function damaged(bytes, others) {
  const at = random(bytes.length + 1);
  const length = 1 + random(16);
  switch (random(7)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] ^= 1 << random(8);
      return copy;
    }
    case 1: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = EDGES[random(EDGES.length)];
      return copy;
    }
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    case 4:
      return Buffer.concat([
        bytes.subarray(0, at),
        Buffer.from(Array.from({ length }, () => random(256))),
        bytes.subarray(at),
      ]);
    case 5: {
      const other = others[random(others.length)];
      return Buffer.concat([bytes.subarray(0, at), other.subarray(random(other.length + 1))]);
    }
    default:
      return bytes.subarray(0, at);
  }
}

/** @param {Buffer[]} seeds */
function makeInput(seeds) {
  let bytes = seeds[random(seeds.length)];
  for (let left = 1 + random(6); left > 0; left--) bytes = damaged(bytes, seeds);
  return Buffer.from(bytes.subarray(0, MAX_INPUT_BYTES));
}

const tally = { passed: 0, failed: 0, skipped: 0 };
const start = performance.now();
const targets = TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
if (targets.length === 0) {
  console.log(`no target is called ${values.target}: there are ${TARGETS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

/**
 * @param {import('./lib/fuzz-targets.mjs').Target} target
 * @param {Buffer} bytes
 */
async function tryInput(target, bytes) {
  // CPU time: what else runs on the machine makes no input slow
  const began = process.cpuUsage();
  let why;
  try {
    await target.run(bytes);
    const { user, system } = process.cpuUsage(began);
    const tookMs = (user + system) / 1000;
    if (tookMs > MAX_INPUT_MS) why = `it took ${Math.round(tookMs)} ms of CPU time`;
  } catch (error) {
    why = error?.stack ?? String(error);
  }
  if (why === undefined) return void tally.passed++;
  tally.failed++;
  console.log(`FAIL ${target.name} (seed ${seed}): ${why}\n    input: ${bytes.toString('hex')}`);
}

let count = 0;
const isOver = () => count >= maxInputs || tally.failed >= MAX_FAILURES || performance.now() - start >= maxMs;
while (!isOver()) {
  for (let i = 0; i < ROUND && count < maxInputs && tally.failed < MAX_FAILURES; i++) {
    const target = targets[count++ % targets.length];
    await tryInput(target, makeInput(target.seeds));
  }
  const { heapUsed, external } = process.memoryUsage();
  if (heapUsed + external > MAX_HEAP_BYTES) {
    tally.failed++;
    console.log(`FAIL memory (seed ${seed}): ${Math.round((heapUsed + external) / 2 ** 20)} MiB after ${count} inputs`);
    break;
  }
}

console.log(`${count} inputs to ${targets.length} targets in ${secondsSince(start)}, seed ${seed}`);
console.log(closingLine(tally));
process.exitCode = tally.failed > 0 ? 1 : 0;
