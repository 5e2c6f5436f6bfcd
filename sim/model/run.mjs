/**
 * npm run model [-- --seconds N] [--only WORD] [--traces] [--walks]: searches the model of the protocols. A planted bug
 * that is not found fails, and so does a violation in the protocol as it is.
 *
 * --seconds: limit of each run of the protocol as it is (default 14); a run that meets it proves nothing beyond.
 * --only: runs whose title or model contains the word. --traces prints the shortest trace of each violation.
 * --walks adds random walks over the runs that are too large to search.
 */
import { configuration, PLANTED, SOUND } from './runs.mjs';
import { bfs, walk } from './search.mjs';

const MAX_STATES = 250_000;
const MAX_PLANTED_SECONDS = 60;
const WALK_STEPS = 60;

const words = process.argv.slice(2);
const valueOf = (name, fallback) => (words.includes(name) ? words[words.indexOf(name) + 1] : fallback);
const seconds = Number(valueOf('--seconds', '14'));
const only = valueOf('--only', '');
const tally = { passed: 0, failed: 0 };

function report(ok, outcome, title, { bad, states, trace, ms }) {
  tally[ok ? 'passed' : 'failed']++;
  console.log(
    `${ok ? 'ok  ' : 'FAIL'} ${outcome.padEnd(8)} ${title}${bad ? `: ${bad}` : ''} (${states} states, ${ms} ms)`,
  );
  if (trace !== undefined && (words.includes('--traces') || !ok)) console.log(`       ${trace.join('\n       ')}`);
}

for (const [title, name, bugs, allowed, options] of PLANTED) {
  if (!`${name} ${title}`.includes(only)) continue;
  const { model, cfg } = configuration(name, bugs, allowed, options);
  const found = bfs(model, cfg, { max: MAX_STATES, ms: MAX_PLANTED_SECONDS * 1000, wedge: options.wedge });
  report((found.bad === null) === (options.harmless ?? false), found.bad ? 'found' : 'harmless', title, found);
}
for (const [name, model, allowed, options] of SOUND) {
  const title = `${model} ${name} (${allowed})`;
  if (!title.includes(only)) continue;
  const run = configuration(model, '', allowed, options);
  const found = bfs(run.model, run.cfg, { max: MAX_STATES, ms: seconds * 1000, wedge: options.wedge });
  report(found.bad === null, found.bad ? 'broken' : found.complete ? 'clean' : 'so far', title, found);
  if (words.includes('--walks') && !found.complete) {
    const walked = walk(run.model, run.cfg, { ms: seconds * 1000, len: WALK_STEPS, seed: 7 });
    report(walked.bad === null, 'walked', `${title}, ${walked.runs} walks`, walked);
  }
}
console.log(`${tally.passed} passed, ${tally.failed} failed, 0 skipped`);
process.exitCode = tally.failed > 0 || tally.passed === 0 ? 1 : 0;
