/**
 * npm run bench -- compare COMMIT [server|engine] [--rounds=9] [--rows=N] [--secs=4] [--lines=a,b] [--json=FILE]: CPU
 * time per operation of this checkout next to that of COMMIT, line by line, with a verdict (bench/compare/verdict.ts).
 *
 * COMMIT is checked out and built in a folder of its own. Both builds start on empty folders. They run each line right
 * after one another, in alternating order, while the other one rests; the load generator is this checkout's for both.
 * Status 0: passes. 1: it does not. 2: it could not be measured.
 *
 * Each round has new processes: two processes of one build differ by a tenth in one line, all their lives. Servers are
 * judged warm: in the first seconds of a line V8's compilers take up to half of the CPU, and the verdict would be
 * theirs. So a pair of servers runs all lines once before, which is printed as "cold" and not judged. Lines of 2 s
 * were too short: the first one after the load had ratios from 1.00 to 1.16 from run to run. The engine has a process a
 * line, which does the same by itself.
 */
import { fork } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { btbench, buildBtbench, errorKinds, TIMED_WORKLOADS } from './btbench.mjs';
import { installIn } from './build.mjs';
import { argumentsOf } from './command-line.mjs';
import { ROOT, run } from './repository.mjs';
import { edubbaCommand, startServer } from './server.mjs';
import { goMissing } from './tools.mjs';

/**
 * Each round begins with tables of its own, and reads come before single writes: how many files a row lies in, which
 * is the largest part of a read, would else depend on how much the faster build has written.
 *
 * The rows of a table take 29 MB of a memtable. A flush is due at 32 MiB, so the second table that batchwrite loads
 * brings the first one, which all other lines use, into one file. In a table that is loaded across the limit it
 * depends on the disk's speed how many rows are left in the memtable.
 */
const TABLES = ['judged', 'filler'];
const SERVER_ROWS = 25_000;
const SERVER_WRITES = ['seqwrite', 'randwrite', 'rmw', 'cam'];
const SERVER_LINES = [...TIMED_WORKLOADS.filter((line) => !SERVER_WRITES.includes(line)), ...SERVER_WRITES];
const ENGINE_WRITES = ['seq-write', 'random-write', 'batch-write'];
const ENGINE_LINES = [
  ...ENGINE_WRITES,
  'seq-read',
  'random-read',
  'random-read-32',
  'random-read-large',
  'scan',
  'scan-reverse',
];
/** @type {(keyof Round)[]} */
const BUILDS = ['before', 'now'];
const CONNECTIONS = 2;
const STREAMS = 16;
const REST_SECONDS = 30;
const ENGINE_ROW_BYTES = 1015;

/** @typedef {import('../../dist/bench/compare/verdict.js').Round} Round */
/** @typedef {import('../../dist/bench/compare/verdict.js').Verdict} Verdict */
/** @typedef {import('../../dist/bench/engine/job.js').Job} Job */
/** @typedef {import('../../dist/bench/engine/job.js').Outcome} Outcome */
/** @typedef {{ lines: string[], rows: number, secs: number, rounds: number }} Settings */
/** @typedef {{ run(line: string): Promise<number>, end(): Promise<void> }} Contestant */

/**
 * Checks COMMIT out below `scratch` and builds it. Its dependencies are ours where the lock files are equal,
 * and its own where they are not.
 *
 * @param {string} commit
 * @param {string} scratch
 */
export function checkOut(commit, scratch) {
  const root = join(scratch, 'before');
  if (run('git', ['worktree', 'add', '--quiet', '--detach', root, commit]) !== 0)
    throw new Error(`git has no commit ${commit}`);
  /** @param {string} folder */
  const lock = (folder) => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  if (lock(root) === lock(ROOT)) symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  else installIn(root);
  if (run(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root }) !== 0)
    throw new Error(`${commit} cannot be built`);
  return root;
}

/**
 * A server with the build in `root` on an empty folder. `run(line)`: CPU microseconds a row.
 *
 * @param {string} root
 * @param {string} scratch
 * @param {string} generator
 * @param {Settings} settings
 * @returns {Promise<Contestant>}
 */
async function startContestant(root, scratch, generator, { rows, secs }) {
  const dir = mkdtempSync(join(scratch, 'data-'));
  const [command, , ...words] = edubbaCommand(dir);
  const server = await startServer(
    'edubba',
    command,
    [join(root, 'bin', 'edubba'), ...words],
    /listening on (\S+:\d+)/,
  );
  const size = ['-rows', rows, '-secs', secs, '-conns', CONNECTIONS, '-streams', STREAMS, '-rest', REST_SECONDS];
  /** @type {(line: string, table: string, flags: string[]) => Promise<number>} */
  const run = async (line, table, flags) => {
    const { results, err } = await btbench(generator, server.address, [
      ...flags,
      ...size,
      '-workloads',
      line,
      '-table',
      table,
      '-pid',
      server.pid,
      '-datadir',
      dir,
    ]);
    const [result] = results;
    if (result === undefined) throw new Error(`the load generator ended early: ${err}`);
    if (result.errors > 0) throw new Error(`${line}: ${errorKinds(result)}`);
    return result.server_cpu_us_per_row;
  };
  const load = async () => {
    const micros = [];
    for (const table of TABLES) micros.push(await run('batchwrite', table, []));
    return micros.reduce((sum, each) => sum + each, 0) / micros.length;
  };
  let isLoaded = false;
  return {
    async run(line) {
      if (line === 'batchwrite' || !isLoaded) {
        const micros = await load();
        isLoaded = true;
        if (line === 'batchwrite') return micros;
      }
      return run(line, TABLES[0], ['-keep']);
    },
    async end() {
      await server.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * @param {string} root
 * @param {Job} job
 * @returns {Promise<Outcome>}
 */
function inChild(root, job) {
  return new Promise((resolve, reject) => {
    const child = fork(join(root, 'dist/bench/engine/child.js'), [JSON.stringify(job)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    /** @type {Outcome | undefined} */
    let outcome;
    child.on('message', (message) => (outcome = /** @type {Outcome} */ (message)));
    child.on('error', reject);
    child.on('exit', (code) =>
      outcome ? resolve(outcome) : reject(new Error(`${job.line} ended with status ${code}`)),
    );
  });
}

/**
 * The embedded engine with the build in `root`, a process a line. `run(line)`: CPU microseconds an operation.
 *
 * @param {string} root
 * @param {string} scratch
 * @param {string | undefined} _generator
 * @param {Settings} settings
 * @returns {Promise<Contestant>}
 */
async function loadContestant(root, scratch, _generator, { lines, rows }) {
  const dir = mkdtempSync(join(scratch, 'data-'));
  const bytes = rows * ENGINE_ROW_BYTES;
  /** @type {(line: string, name: string, cacheBytes: number) => Promise<number>} */
  const run = async (line, name, cacheBytes) => {
    const directory = join(dir, name);
    /** @type {Job} */
    const job = { system: 'edubba', line, shape: 'value', rows, directory, cacheBytes };
    return (await inChild(root, job)).cpuMicrosPerOperation;
  };
  if (lines.some((line) => !ENGINE_WRITES.includes(line))) await run('load', 'loaded', bytes);
  return {
    run: (line) =>
      ENGINE_WRITES.includes(line)
        ? run(line, 'written', 64 * 1024 * 1024)
        : run(line, 'loaded', line.endsWith('-large') ? Math.ceil(bytes / 8) : 2 * bytes),
    async end() {
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * @typedef {object} Kind
 * @property {(root: string, scratch: string, generator: string, settings: Settings) => Promise<Contestant>} begin
 * @property {readonly string[]} lines
 * @property {readonly string[]} summed Lines that are judged by their sum.
 * @property {number} rows
 * @property {boolean} warmsUp Each round is preceded by one that is not judged.
 * @property {() => Promise<string>} prepare Returns the load generator; the engine has none.
 * @property {() => Promise<string | undefined>} missing
 */

/** @type {Record<string, Kind>} */
const KINDS = {
  server: {
    begin: startContestant,
    lines: SERVER_LINES,
    summed: SERVER_WRITES,
    rows: SERVER_ROWS,
    warmsUp: true,
    prepare: buildBtbench,
    missing: goMissing,
  },
  engine: {
    begin: loadContestant,
    lines: ENGINE_LINES,
    summed: [],
    rows: 100_000,
    warmsUp: false,
    prepare: async () => '',
    missing: async () => undefined,
  },
};

/**
 * @param {Verdict} verdict
 * @param {typeof import('../../dist/bench/compare/verdict.js')} limits
 */
function printVerdict({ lines, meanRatio, passes }, { MAX_MEAN_RATIO, MAX_LINE_RATIO, MIN_ROUNDS }) {
  /** @type {(value: number, count: number) => number} */
  const digits = (value, count) => Number(value.toFixed(count));
  console.table(
    lines.map(({ line, before, now, ratio, spread, rounds, passes: passed }) => ({
      line,
      'before us': digits(before, 2),
      'now us': digits(now, 2),
      ratio: digits(ratio, 3),
      spread: digits(spread, 3),
      rounds,
      passes: passed ? 'yes' : 'NO',
    })),
  );
  console.log(
    `geometric mean of the ratios: ${meanRatio.toFixed(3)} (at most ${MAX_MEAN_RATIO}; a line less its spread at most ${MAX_LINE_RATIO}; at least ${MIN_ROUNDS} rounds)`,
  );
  console.log(passes ? 'passes' : 'does not pass');
}

/**
 * Measures the rounds; returns line -> [{ before, now }], of the judged rounds and of the cold ones. Both builds run
 * each line right after one another, in alternating order: the speed of a machine drifts within a minute.
 *
 * @param {Kind} kind
 * @param {{ before: string, now: string }} roots
 * @param {string} scratch
 * @param {Settings} settings
 */
async function measure(kind, roots, scratch, settings) {
  const generator = await kind.prepare();
  const noRounds = () => new Map(settings.lines.map((line) => [line, /** @type {Round[]} */ ([])]));
  const [judged, cold] = [noRounds(), noRounds()];
  /** @type {(contestants: Record<string, Contestant>, round: number, rounds: Map<string, Round[]>) => Promise<void>} */
  const runLines = async (contestants, round, rounds) => {
    for (const [i, line] of settings.lines.entries()) {
      const found = { before: 0, now: 0 };
      const order = (round + i) % 2 === 0 ? BUILDS : BUILDS.toReversed();
      for (const which of order) found[which] = await contestants[which].run(line);
      rounds.get(line)?.push(found);
    }
  };
  for (let round = 0; round < settings.rounds; round++) {
    /** @type {Record<string, Contestant>} */
    const contestants = {};
    try {
      for (const which of BUILDS) contestants[which] = await kind.begin(roots[which], scratch, generator, settings);
      if (kind.warmsUp) await runLines(contestants, round, cold);
      await runLines(contestants, round, judged);
      console.error(`round ${round + 1} of ${settings.rounds}`);
    } finally {
      for (const contestant of Object.values(contestants)) await contestant.end();
    }
  }
  return { judged, cold };
}

/**
 * `words`: what stands after `compare`. This checkout must be built. Returns the exit status.
 *
 * @param {string[]} words
 */
export async function compare(words) {
  const { values, positionals } = argumentsOf({
    args: words,
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      rows: { type: 'string' },
      secs: { type: 'string', default: '4' },
      lines: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const [commit, name = 'server'] = positionals;
  const kind = KINDS[name];
  if (commit === undefined || kind === undefined) {
    console.log(
      'usage: npm run bench -- compare COMMIT [server|engine] [--rounds=9] [--rows=N] [--secs=4] [--lines=a,b] [--json=FILE]',
    );
    return 2;
  }
  const lines = (values.lines ?? kind.lines.join(',')).split(',');
  const unknown = lines.find((line) => !kind.lines.includes(line));
  const missing =
    unknown === undefined ? await kind.missing() : `line '${unknown}'; there are ${kind.lines.join(', ')}`;
  if (missing !== undefined) {
    console.log(`missing: ${missing}`);
    return 2;
  }
  const judging = await import('../../dist/bench/compare/verdict.js');
  const settings = {
    lines,
    rows: Number(values.rows ?? kind.rows),
    secs: Number(values.secs),
    rounds: Number(values.rounds ?? judging.MIN_ROUNDS),
  };
  const scratch = mkdtempSync(join(tmpdir(), 'edubba-compare-'));
  try {
    const { judged, cold } = await measure(kind, { before: checkOut(commit, scratch), now: ROOT }, scratch, settings);
    const verdict = judging.judge(judging.summed(judged, 'the single writes', kind.summed));
    printVerdict(verdict, judging);
    const parts = judging.judge(judged).lines.filter(({ line }) => !verdict.lines.some((each) => each.line === line));
    if (parts.length > 0)
      console.log(`judged together: ${parts.map(({ line, ratio }) => `${line} ${ratio.toFixed(3)}`).join(', ')}`);
    const first = kind.warmsUp ? judging.judge(cold) : undefined;
    if (first !== undefined) {
      const ratios = first.lines.map(({ line, ratio }) => `${line} ${ratio.toFixed(3)}`).join(', ');
      console.log(`cold, not judged: mean ${first.meanRatio.toFixed(3)}; ${ratios}`);
    }
    if (values.json !== undefined)
      writeFileSync(
        values.json,
        `${JSON.stringify({ commit, kind: name, ...settings, ...verdict, parts, cold: first?.lines })}\n`,
      );
    return verdict.passes ? 0 : 1;
  } catch (error) {
    console.log(`not measured: ${error.message}`);
    return 2;
  } finally {
    if (existsSync(join(scratch, 'before'))) run('git', ['worktree', 'remove', '--force', join(scratch, 'before')]);
    rmSync(scratch, { recursive: true, force: true });
  }
}
