/**
 * npm run linearizability -- [--operations N] [--form server|threads|embedded] [--clients N] [--rows N]
 * [--operations-per-kill N] [--seed S]: clients contend on a few rows with every call of the data API, and the process
 * of the database is killed with SIGKILL again and again. The history of each row must be linearizable
 * (test/linearizability). Default: 10,000 operations in each form, 12 clients, 12 rows. Closes with one line 'N passed,
 * N failed, N skipped'.
 *
 * Forms: the server of `npm start`, the same with two tablet servers, and a program with the embedded library. A seed
 * repeats what the clients call and when the process is killed, as far as the answers come in the same order.
 *
 * The checker is compared with Porcupine first, on random histories; that needs Go.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT, secondsSince } from './lib/repository.mjs';
import { edubbaCommand } from './lib/server.mjs';
import { goMissing, goProgram } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const HISTORIES = 5000;
/** Porcupine searches without a limit of states, so it may run out of time on a history of many unknown outcomes. */
const MAX_WITHOUT_VERDICT = 10;
const FORMS = ['server', 'threads', 'embedded'];
const MAX_ROWS = 16;
const MIN_CLIENTS = 8;

const { values } = argumentsOf({
  options: {
    operations: { type: 'string', default: '10000' },
    form: { type: 'string' },
    clients: { type: 'string', default: '12' },
    rows: { type: 'string', default: '12' },
    'operations-per-kill': { type: 'string', default: '1500' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 1e6)) },
  },
});
const [operations, clients, rows, operationsPerKill, seed] = [
  values.operations,
  values.clients,
  values.rows,
  values['operations-per-kill'],
  values.seed,
].map(Number);
if (
  ![operations, clients, rows, operationsPerKill].every((number) => Number.isSafeInteger(number) && number > 0) ||
  !Number.isSafeInteger(seed) ||
  clients < MIN_CLIENTS ||
  rows < 2 ||
  rows > MAX_ROWS ||
  (values.form !== undefined && !FORMS.includes(values.form))
) {
  console.log(
    `invalid options: expected numbers, ${MIN_CLIENTS} clients or more, 2 to ${MAX_ROWS} rows, and a form of ${FORMS.join(', ')}`,
  );
  process.exit(2);
}

buildOrExit();
const { Checker } = await import('../dist/test/linearizability/checker.js');
const { KillRun } = await import('../dist/test/linearizability/kill-run.js');
const { randomHistory } = await import('../dist/test/linearizability/random-history.js');
const { SeededRandom } = await import('../dist/src/env/index.js');
const { userEnvironment } = await import('../dist/test/cli/user-environment.js');
const report = new Report();

async function compareWithPorcupine() {
  const why = await goMissing();
  if (why !== undefined) return report.skip('the verdicts of Porcupine', why);
  const porcupine = await goProgram('test/linearizability/porcupine', 'porcupine');
  const random = new SeededRandom(seed);
  const histories = Array.from({ length: HISTORIES }, () => {
    const [clients, events, hasLie] = [
      2 + Math.floor(random.float() * 4),
      20 + Math.floor(random.float() * 60),
      random.float() < 0.7,
    ];
    return randomHistory({ random, clients, events, hasLie });
  });
  // an infinite number is null in JSON
  const { status, out, err } = await capture(porcupine, [], {
    input: histories.map((history) => `${JSON.stringify(history)}\n`).join(''),
  });
  if (status !== 0) return report.fail('Porcupine', err.slice(-2000));
  const theirs = out.trimEnd().split('\n');
  const ours = histories.map((history) => String(new Checker('').take(history) === undefined));
  const withoutVerdict = theirs.filter((verdict) => verdict === 'unknown').length;
  const different = ours.findIndex((verdict, i) => verdict !== theirs[i] && theirs[i] !== 'unknown');
  const bad = ours.filter((verdict) => verdict === 'false').length;
  report.check(
    different < 0 &&
      theirs.length === HISTORIES &&
      withoutVerdict <= MAX_WITHOUT_VERDICT &&
      bad > HISTORIES / 10 &&
      bad < HISTORIES,
    'the verdicts of Porcupine',
    different < 0
      ? `${HISTORIES} histories, ${bad} of them not linearizable, ${withoutVerdict} without a verdict of Porcupine in time`
      : `ours ${ours[different]}, theirs ${theirs[different]}, seed ${seed}:\n${histories[different].join('\n')}`,
  );
}

/**
 * @param {string} form
 * @param {string} directory
 * @returns {import('../dist/test/linearizability/database-process.js').Program}
 */
function programOf(form, directory) {
  const env = userEnvironment();
  if (form === 'embedded') {
    const program = join(ROOT, 'dist/test/linearizability/embedded-program.js');
    return { kind: 'embedded', command: [process.execPath, program, directory], env };
  }
  const [file, ...args] = edubbaCommand(directory);
  return { kind: 'server', command: [file, ...args, ...(form === 'threads' ? ['--tablet-servers', '2'] : [])], env };
}

/** @param {string} form */
async function killAgainAndAgain(form) {
  const directory = mkdtempSync(join(tmpdir(), 'edubba-linearizability-'));
  const again = `again: npm run linearizability -- --form ${form} --operations ${operations} --clients ${clients} --rows ${rows} --operations-per-kill ${operationsPerKill} --seed ${seed}`;
  const start = performance.now();
  const program = programOf(form, directory);
  const run = new KillRun({ program, directory, seed, clients, rows, operations, operationsPerKill });
  const { failure, unexpected, ...counts } = await run.run();
  console.log(
    `${counts.operations} operations on ${rows} rows in ${counts.calls} calls of ${clients} clients: ${counts.answered} answered, ${counts.failed} failed for certain, ${counts.unknown} of unknown outcome; ${counts.kills} kills, ${counts.killsAtStart} of them of a start; ${secondsSince(start)}, ${(counts.checkMs / 1000).toFixed(2)} s of CPU time for the check, at most ${counts.maxConfigurations} configurations`,
  );
  report.check(failure === undefined, `${form}: every row is linearizable`, failure && `${failure}\n${again}`);
  report.check(unexpected.length === 0, `${form}: only kills end calls`, unexpected.join('\n'));
  if (failure === undefined) rmSync(directory, { recursive: true });
  else console.log(`the database is kept in ${directory}`);
}

await report.section('the checker', compareWithPorcupine);
for (const form of values.form === undefined ? FORMS : [values.form])
  await report.section(`${form}, ${operations} operations, seed ${seed}`, () => killAgainAndAgain(form));
report.close();
process.exit();
