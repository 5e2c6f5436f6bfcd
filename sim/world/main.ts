/**
 * Runs the simulated clusters of some seeds. Prints what failed, with as few faults as it takes.
 *
 *   node main.js                     seeds come in, one a line; after each a line of JSON goes out
 *   node main.js SEEDS [story|first] those seeds, as 3,17,4; the last line is JSON with sums. `story`: each line of the
 *                                    logs is printed. `first`: ends at the first seed that fails, which the JSON names
 */
import { createInterface } from 'node:readline';
import { describeFault } from './faults.ts';
import { run, type RunResult } from './run.ts';
import { shrink } from './shrink.ts';
import type { Judge } from './verdicts.ts';

/** Lines that the report of a failure has: of the logs, of faults and of changes of tablets. */
const MAX_SHOWN = 60;

interface Sums {
  passed: number;
  failed: number;
  readonly counts: Record<string, number>;
  /** By seed. */
  readonly traces: Record<string, string>;
  /** Simulated time of the shortest run that passed. */
  shortestMs: number;
  cpuSeconds: number;
  found?: { readonly seed: number; readonly judge: Judge; readonly message: string };
}

const [seeds, how] = process.argv.slice(2);
if (seeds === undefined) {
  for await (const line of createInterface({ input: process.stdin })) {
    const sums = newSums();
    await report(await runOne(Number(line), sums));
    console.log(JSON.stringify(sums));
  }
} else {
  const sums = newSums();
  for (const seed of seeds.split(',').map(Number)) {
    const result = await runOne(seed, sums);
    const { violation } = result;
    if (how === 'first' && violation !== undefined) {
      sums.found = { seed, judge: violation.judge, message: violation.message.split('\n', 1)[0]! };
      break;
    }
    await report(result);
  }
  console.log(JSON.stringify(sums));
  if (how === 'story' && sums.failed > 0) process.exitCode = 1;
}

function newSums(): Sums {
  return { passed: 0, failed: 0, counts: {}, traces: {}, shortestMs: 1e9, cpuSeconds: 0 };
}

async function runOne(seed: number, sums: Sums): Promise<RunResult> {
  const isStory = how === 'story';
  const before = process.cpuUsage();
  const onLine = (line: string): void => console.log(line);
  const result = await run({ seed, ...(isStory && { onLine, withEvents: true }) });
  const { user, system } = process.cpuUsage(before);
  const { trace, counts, undecidedRows, events, simulatedMs } = result;
  if (isStory) console.log(`trace ${trace}`);
  sums.traces[seed] = trace;
  sums.cpuSeconds += (user + system) / 1e6;
  const all = { ...counts, undecidedRows, events, simulatedSeconds: Math.round(simulatedMs / 1000) };
  for (const [name, value] of Object.entries(all)) sums.counts[name] = (sums.counts[name] ?? 0) + value;
  if (result.violation !== undefined) sums.failed++;
  else {
    sums.passed++;
    sums.shortestMs = Math.min(sums.shortestMs, simulatedMs);
  }
  return result;
}

/** Says what failed, if anything did. */
async function report(result: RunResult): Promise<void> {
  const { seed, trace, violation, faults } = result;
  if (violation === undefined) return;
  console.log(`FAIL seed ${seed}, trace ${trace}; again: npm run sim -- --seed ${seed}`);
  console.log(`${violation.judge}: ${violation.message}`);
  const story = await shrink(result);
  console.log(`${faults.length} faults, of which ${story.faults.length} are enough:`);
  for (const fault of story.faults) console.log(`  ${describeFault(fault)}`);
  const working = story.clients.filter((name) => !story.idle.has(name));
  console.log(`clients that work: ${working.join(', ') || 'none'}`);
  const lines = story.lastLines.filter((line) => !line.includes(' debug: '));
  for (const line of lines.slice(-MAX_SHOWN)) console.log(`  ${line}`);
  console.log(`${story.violation?.judge}: ${story.violation?.message}`);
}
