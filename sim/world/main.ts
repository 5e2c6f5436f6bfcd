/**
 * Runs the simulated clusters of some seeds: node main.js FROM TO [story | first]. Prints what failed, with as few
 * faults as it takes, and as its last line a JSON object of sums. With `story`: each line of the logs. With `first`:
 * ends at the first seed that fails, which the last line names.
 */
import { describeFault } from './faults.ts';
import { run } from './run.ts';
import { shrink } from './shrink.ts';
import type { Judge } from './verdicts.ts';

/** Lines of the logs that the report of a failure has. */
const MAX_SHOWN = 60;

const [from, to, how] = process.argv.slice(2);
const counts: Record<string, number> = {};
/** By seed. */
const traces: Record<string, string> = {};
let passed = 0;
let failed = 0;
let found: { readonly seed: number; readonly judge: Judge; readonly message: string } | undefined;
for (let seed = Number(from); seed < Number(to); seed++) {
  const result = await run({
    seed,
    ...(how === 'story' && { onLine: (line: string) => console.log(line), withEvents: true }),
  });
  const { undecidedRows } = result;
  traces[seed] = result.trace;
  const sums = {
    ...result.counts,
    undecidedRows,
    events: result.events,
    simulatedSeconds: Math.round(result.simulatedMs / 1000),
  };
  for (const [name, value] of Object.entries(sums)) counts[name] = (counts[name] ?? 0) + value;
  if (how === 'story') console.log(`trace ${result.trace}`);
  if (result.violation === undefined) {
    passed++;
    continue;
  }
  failed++;
  if (how === 'first') {
    const { judge, message } = result.violation;
    found = { seed, judge, message: message.split('\n', 1)[0]! };
    break;
  }
  console.log(`FAIL seed ${seed}, trace ${result.trace}; again: npm run sim -- --seed ${seed}`);
  const story = await shrink(result);
  console.log(`${result.faults.length} faults, of which ${story.faults.length} are enough:`);
  for (const fault of story.faults) console.log(`  ${describeFault(fault)}`);
  for (const line of story.lastLines.slice(-MAX_SHOWN)) console.log(`  ${line}`);
  console.log(`${story.violation?.judge}: ${story.violation?.message}`);
}
console.log(JSON.stringify({ passed, failed, counts, traces, found }));
