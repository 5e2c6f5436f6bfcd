/**
 * npm run sim -- [--seeds N | --minutes M] [--from N] [--seed N] [--nodes LIST] [--planted WHICH]: simulated clusters
 * under faults (sim/world). Runs N seeds, default 60, or those that begin within M minutes, from the seed `--from` on,
 * default 1. --seed: one run, whose story is printed. Closes with one line 'N passed, N failed, N skipped', of runs.
 *
 * --nodes 20,22,24: runs the seeds on each of these versions of Node, on the first of them twice. A seed fails whose
 * runs are not the same, event by event.
 *
 * --planted A01,C02 | all | known: plants bugs (sim/planted), one at a time, and looks for a seed that finds each.
 * Seeds with the meeting in which a bug shows go first.
 *
 * --scale [--servers 100] [--tablets 100000] [--deaths 60] [--death-ms 1000]: one run of a large cluster (sim/scale),
 * judged by its times. --costs measures what its steps cost, with the real parts.
 *
 * As many processes as there are cores share the seeds. A seed is one run, the same each time.
 */
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { MAX_SEEDS, plantedBugs, replayPlanted, searchPlanted } from './lib/planted-bugs.mjs';
import { closingLine, ROOT, run, secondsSince } from './lib/repository.mjs';
import { NODE_OPTIONS, runSeeds, traceOf } from './lib/simulated-seeds.mjs';
import { nodeProgram } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

/** Without the costly checks of invariants: 100,000 tablets are many. */
const SCALE_OPTIONS = ['--enable-source-maps', '--max-semi-space-size=64'];

const { values } = argumentsOf({
  options: {
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    from: { type: 'string' },
    seed: { type: 'string' },
    nodes: { type: 'string' },
    planted: { type: 'string' },
    scale: { type: 'boolean' },
    servers: { type: 'string', default: '100' },
    tablets: { type: 'string', default: '100000' },
    deaths: { type: 'string', default: '60' },
    'death-ms': { type: 'string', default: '1000' },
    costs: { type: 'boolean' },
  },
});
const isTimed = values.minutes !== undefined;
const from = Number(values.seed ?? values.from ?? 1);
const end = from + Number(values.seed !== undefined ? 1 : (values.seeds ?? (isTimed ? 1e9 : 60)));
const maxMs = Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
if (!(Number.isSafeInteger(from) && Number.isSafeInteger(end) && end > from && maxMs > 0)) {
  console.log('--seeds, --from and --seed take whole numbers, --minutes a number');
  process.exit(2);
}

buildOrExit();
if (values.planted !== undefined) await findPlantedAndExit(values.planted);
if (values.scale || values.costs) runScaleAndExit();
if (values.nodes !== undefined) await compareNodesAndExit(values.nodes.split(','));
if (values.seed !== undefined) tellStoryAndExit();
const start = performance.now();
const { passed, failed, counts, traces, shortestMs, cpuSeconds, next } = await runSeeds({ from, end, maxMs });
const seeds = next - from;
const minutes = (performance.now() - start) / 60_000;
for (const [name, value] of Object.entries(counts)) console.log(`${name}: ${value}`);
console.log(`trace of all seeds: ${traceOf(traces, from, next)}`);
console.log(`shortest run: ${(shortestMs / 1000).toFixed(1)} simulated seconds`);
const rates = `${(seeds / minutes).toFixed(0)} seeds a minute, ${(cpuSeconds / seeds).toFixed(2)} s of CPU a seed`;
console.log(`${secondsSince(start)}, ${rates}`);
console.log(closingLine({ passed, failed, skipped: 0 }));
if (failed > 0) process.exitCode = 1;

/** Runs the one seed, and prints all that happens. */
function tellStoryAndExit() {
  const main = join(ROOT, 'dist/sim/world/main.js');
  const args = ['--enable-source-maps', ...NODE_OPTIONS, main, `${from}`, 'story'];
  const status = run(process.execPath, args);
  console.log(closingLine({ passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1, skipped: 0 }));
  process.exit(status);
}

/**
 * `which`: names of planted bugs, separated by commas; `all`; or `known`, with the seeds that are known to find them.
 *
 * @param {string} which
 */
async function findPlantedAndExit(which) {
  const all = await plantedBugs();
  const names = which === 'all' || which === 'known' ? all.map(({ name }) => name) : which.split(',');
  const bugs = all.filter(({ name }) => names.includes(name));
  if (bugs.length < new Set(names).size) {
    console.log(`there is no planted bug of one of these names: ${names.join(', ')}`);
    process.exit(2);
  }
  const to = values.seeds === undefined ? from + MAX_SEEDS : end;
  const found =
    which === 'known'
      ? await replayPlanted(bugs, NODE_OPTIONS)
      : await searchPlanted(bugs, { from, to, nodeOptions: NODE_OPTIONS });
  console.log(closingLine({ ...found, skipped: 0 }));
  process.exit(found.failed > 0 ? 1 : 0);
}

/** The scale run in this process's place: its figures are printed as they come. */
function runScaleAndExit() {
  const [name, ...args] = values.costs
    ? ['measure']
    : ['main', values.seed ?? '1', values.servers, values.tablets, values.deaths, values['death-ms']];
  process.exit(run(process.execPath, [...SCALE_OPTIONS, join(ROOT, 'dist/sim/scale', `${name}.js`), ...args]));
}

/** @param {string[]} versions */
async function compareNodesAndExit(versions) {
  /** @type {Record<string, string>[]} */
  const runs = [];
  const failures = new Set();
  for (const version of [versions[0], ...versions]) {
    const run = await runSeeds({ from, end, node: await nodeProgram(version) });
    console.log(`Node ${version}: trace of all seeds ${traceOf(run.traces, from, end)}, ${run.failed} failed`);
    runs.push(run.traces);
  }
  for (let seed = from; seed < end; seed++) {
    const traces = runs.map((run) => run[seed]);
    if (traces[0] !== undefined && traces.every((trace) => trace === traces[0])) continue;
    failures.add(seed);
    console.log(`FAIL seed ${seed}: traces ${traces.join(', ')}`);
  }
  console.log(closingLine({ passed: end - from - failures.size, failed: failures.size, skipped: 0 }));
  process.exit(failures.size > 0 ? 1 : 0);
}
