/**
 * npm run interop: Google's own clients and their own test suites against Edubba, compared with Google's Go emulator;
 * our load generator and RPC prober; and kill -9 in the midst of writing. test/interop/README.md says more.
 *
 *   npm run interop                 all of it; needs Go, Python and Java, and says what is missing
 *   npm run interop -- --short      what a CI has time for; skips parts whose tool is missing, and says so
 *   npm run interop -- --only=suites,probe
 *                                   of clients, hello, tls, behaviour, suites, cluster, balancer, grpc, h2spec, load,
 *                                   probe, crash
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { balancerMissing, startBalancer } from './lib/balancer.mjs';
import { btbench, buildBtbench, buildProbe, errorKinds, lookAgain, WORKLOADS, writeUntilGone } from './lib/btbench.mjs';
import { buildOrExit } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { otherBuild } from './lib/other-build.mjs';
import { ProcessCluster } from './lib/process-cluster.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT } from './lib/repository.mjs';
import { edubbaCommand, freePort, startEdubba, startEmulator } from './lib/server.mjs';
import {
  cbtFolder,
  emulator,
  goMissing,
  goProgram,
  javaClient,
  javaMissing,
  nodeClient,
  pythonClient,
  pythonMissing,
} from './lib/tools.mjs';
import { AUTHORITY, grpcCases, h2spec, SERVER_TLS } from './lib/wire-peers.mjs';

helpIfAsked(import.meta.url);

/** @typedef {import('./lib/server.mjs').RunningServer} RunningServer */
/** @typedef {import('./lib/balancer.mjs').Balancer} Balancer */
/** @typedef {Record<string, string | undefined>} Environment */
/** @typedef {Map<string, string>} Verdicts The verdicts of a suite, by the names of its tests. */
/** @typedef {{ command: string, args: string[], cwd: string, env?: Environment }} Command */

const PARTS = [
  'clients',
  'hello',
  'tls',
  'behaviour',
  'suites',
  'cluster',
  'balancer',
  'grpc',
  'h2spec',
  'load',
  'probe',
  'crash',
];
/**
 * `isFull`: the suite believes that it faces the cloud. Google's emulator cannot run it so, and the verdicts to compare
 * with are recorded.
 *
 * @type {{ name: string, floor: number, needs: (keyof typeof missing)[], isFull?: boolean }[]}
 */
const SUITES = [
  { name: 'go-integration', floor: 48, needs: ['go', 'python'] },
  { name: 'python', floor: 165, needs: ['python'] },
  { name: 'cbt', floor: 42, needs: ['go'] },
  { name: 'go-integration', floor: 83, needs: ['go', 'python'], isFull: true },
  { name: 'python', floor: 205, needs: ['python'], isFull: true },
];
/** The calls of this API that have to work; the others may answer UNIMPLEMENTED. */
const CALLS = [
  'MutateRow',
  'MutateRows',
  'ReadRows',
  'SampleRowKeys',
  'CheckAndMutateRow',
  'ReadModifyWriteRow',
  'PingAndWarm',
  'CreateTable',
  'ListTables',
  'GetTable',
  'DeleteTable',
  'ModifyColumnFamilies',
  'DropRowRange',
  'GenerateConsistencyToken',
  'CheckConsistency',
];
/**
 * Where Google's emulator differs from our behaviour suite, and so from the cloud's documents or from what this project
 * promises.
 */
const EMULATOR_LACKS = {
  'negative timestamps': 'refuses timestamps below 0',
  'refusals change nothing': 'applies the steps of a mutation that stand before the refused one',
  'refused increments':
    'never answers an increment of a value that is not 8 bytes, nor any call on that row afterwards',
  'order over families': 'gives the families of an interleave in random order',
  'exact gc on read': 'shows versions that the rules drop until its collector has come by',
  'min and max': 'overwrites where it should merge',
  'value bitmasks': 'takes no notice of value_bitmask',
  'checks of what asks for nothing': 'checks neither names of tables nor filters that no row comes to',
};
const H2SPEC_CASES = 145;
const BEHAVIOUR_MS = 120_000;
const CLIENT_MS = 300_000;
const SUITE_MS = 900_000;
const PROBE_MS = 300_000;
/** Between two restarts of servers behind a balancer. */
const RESTART_EVERY_MS = 500;

const words = process.argv.slice(2);
const short = words.includes('--short');
const only =
  words
    .find((word) => word.startsWith('--only='))
    ?.slice('--only='.length)
    .split(',') ?? PARTS;
const report = new Report();
const scratch = mkdtempSync(join(tmpdir(), 'edubba-interop-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

buildOrExit();
const missing = { go: await goMissing(), python: await pythonMissing(), java: await javaMissing() };
/** @type {(...tools: (keyof typeof missing)[]) => string | undefined} */
const lacks = (...tools) => tools.map((tool) => missing[tool]).find(Boolean);
if (lacks('go', 'python', 'java') && !short) {
  for (const why of Object.values(missing)) if (why) console.log(`missing: ${why}`);
  process.exit(1);
}

/**
 * Runs `body` with Edubba on a directory of its own; what the server printed is shown when it did not outlive that.
 *
 * @template T
 * @param {string} name
 * @param {(server: RunningServer) => Promise<T>} body
 * @param {string[]} [options]
 */
async function withEdubba(name, body, options = []) {
  const server = await startEdubba(join(scratch, name), undefined, options);
  try {
    const result = await body(server);
    /** @type {Promise<undefined>} */
    const outlived = new Promise((resolve) => setTimeout(resolve, 50, undefined));
    const end = await Promise.race([server.exited, outlived]);
    if (end)
      report.fail(
        `the server is alive after ${name}`,
        `it ended with ${end.signal ?? end.code}: ${server.output().slice(-2000)}`,
      );
    return result;
  } finally {
    await server.kill();
  }
}

/**
 * `where`: the environment variables that lead a client to the server.
 *
 * @param {string} name
 * @param {Environment} where
 * @param {string} command
 * @param {string[]} args
 */
async function runClient(name, where, command, args) {
  const { BIGTABLE_EMULATOR_HOST: _, ...environment } = process.env;
  const { status, out, err } = await capture(command, args, {
    timeoutMs: CLIENT_MS,
    env: { ...environment, ...where },
  });
  let seen = 0;
  let failed = 0;
  for (const line of out.split('\n')) {
    const [, verdict, step] = /^(PASS|FAIL) (.*)$/.exec(line) ?? [];
    if (verdict === undefined) continue;
    seen++;
    if (verdict === 'FAIL') failed++;
    report.check(verdict === 'PASS', `${name}: ${step}`);
  }
  if (seen === 0 || (status !== 0 && failed === 0))
    report.fail(`${name}: the scenario runs to its end`, `status ${status}: ${err.slice(-1500)}`);
}

/**
 * @param {Environment} where
 * @param {string[]} [words]
 */
async function runClients(where, words = []) {
  const node = await nodeClient();
  await runClient(`Node ${node.version}`, { ...where, CLIENT_FOLDER: node.folder }, process.execPath, [
    join(ROOT, 'test/interop/clients/node.mjs'),
    ...words,
  ]);
  if (lacks('go')) report.skip('Go client', lacks('go'));
  else await runClient('Go', where, await goProgram('test/interop/clients/go', 'scenario'), words);
  if (lacks('python')) report.skip('Python client', lacks('python'));
  else await runClient('Python', where, await pythonClient(), [join(ROOT, 'test/interop/clients/python.py'), ...words]);
  if (lacks('java')) report.skip('Java client', lacks('java'));
  else await runClient('Java', where, 'java', ['-cp', await javaClient(), 'Scenario']);
}

const clients = () => withEdubba('clients', (server) => runClients({ BIGTABLE_EMULATOR_HOST: server.address }));

/**
 * How a program of docs/clients.md is run, by its language; each returns a command with its arguments.
 *
 * @type {Record<string, (text: string, folder: string) => Promise<Command>>}
 */
const HELLO = {
  async js(text, folder) {
    // the client is found in the folders above a program, and nowhere else
    const path = join((await nodeClient()).folder, `hello-${process.pid}.mjs`);
    writeFileSync(path, text);
    process.on('exit', () => rmSync(path, { force: true }));
    return { command: process.execPath, args: [path], cwd: folder };
  },
  async python(text, folder) {
    writeFileSync(join(folder, 'hello.py'), text);
    return { command: await pythonClient(), args: ['hello.py'], cwd: folder };
  },
  async go(text, folder) {
    for (const name of ['go.mod', 'go.sum']) cpSync(join(ROOT, 'test/interop/clients/go', name), join(folder, name));
    writeFileSync(join(folder, 'main.go'), text);
    return { command: 'go', args: ['run', '.'], cwd: folder };
  },
  async java(text, folder) {
    writeFileSync(join(folder, 'Hello.java'), text);
    return { command: 'java', args: ['-cp', await javaClient(), 'Hello.java'], cwd: folder };
  },
  async sh(text, folder) {
    const env = { PATH: `${await cbtFolder()}${delimiter}${process.env.PATH}` };
    return { command: 'bash', args: ['-euo', 'pipefail', '-c', text], cwd: folder, env };
  },
};
/** @type {Record<string, keyof typeof missing | undefined>} */
const HELLO_NEEDS = { python: 'python', go: 'go', java: 'java', sh: 'go' };

/** The first programs of docs/clients.md as they stand there, twice each: what they say hello with comes back. */
async function hello() {
  const { blocksOf } = await import('../dist/test/readme/markdown.js');
  // the first block is the variable that all of them need, and that is given to them here
  const programs = blocksOf(readFileSync(join(ROOT, 'docs/clients.md'), 'utf8')).filter(
    ({ text }) => !text.startsWith('export '),
  );
  const languages = programs.map(({ language }) => language);
  report.check(
    Object.keys(HELLO).every((language) => languages.includes(language)) &&
      languages.length === Object.keys(HELLO).length,
    'docs/clients.md has one program a language',
    languages.join(' '),
  );
  await withEdubba('hello', async (server) => {
    for (const { language, text, line } of programs) {
      const tool = HELLO_NEEDS[language];
      const why = tool && lacks(tool);
      if (why) {
        report.skip(`docs/clients.md, line ${line}: ${language}`, why);
        continue;
      }
      const folder = join(scratch, `hello-${language}`);
      mkdirSync(folder, { recursive: true });
      const { command, args, cwd, env = {} } = await HELLO[language](text, folder);
      const greeting = /Hello from \w+/.exec(text)?.[0] ?? 'Hello from';
      for (const time of ['first', 'second']) {
        const { status, out, err } = await capture(command, args, {
          timeoutMs: CLIENT_MS,
          cwd,
          env: { ...process.env, ...env, BIGTABLE_EMULATOR_HOST: server.address },
        });
        report.check(
          status === 0 && out.includes(greeting),
          `docs/clients.md, line ${line}: ${language}, the ${time} time`,
          status === 0 ? out.trim().slice(-100) : err.slice(-1500),
        );
      }
    }
  });
}

/** The same clients with TLS and a bearer token; and that no client gets in without. */
async function tls() {
  const tokens = join(scratch, 'tokens.txt');
  const made = await capture(process.execPath, [join(ROOT, 'bin', 'edubba'), 'token', 'add', tokens, 'scenario']);
  if (made.status !== 0) throw new Error(made.err);
  const token = made.out.trim();
  const words = ['--tls-key', SERVER_TLS.key, '--tls-cert', SERVER_TLS.cert, '--tokens', tokens];
  /** @param {RunningServer} server */
  const body = async (server) => {
    const address = server.address.replace('127.0.0.1', 'localhost');
    const trust = { EDUBBA_TLS_CA: AUTHORITY, SSL_CERT_FILE: AUTHORITY, GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: AUTHORITY };
    await runClients({ ...trust, EDUBBA_TLS_HOST: address, EDUBBA_TOKEN: token }, ['20']);
    const stranger = await capture(
      process.execPath,
      [join(ROOT, 'bin', 'edubba'), '--address', address, '--tls-ca', AUTHORITY, 'ls'],
      { env: { ...process.env, EDUBBA_TOKEN: `${token.slice(0, -2)}__` } },
    );
    report.check(
      stranger.status === 1 && stranger.err.includes('UNAUTHENTICATED'),
      'a wrong token is refused',
      stranger.err.trim(),
    );
  };
  await withEdubba('tls', body, words);
}

/** grpc's own interop client. */
async function grpc() {
  if (lacks('go')) return report.skip('grpc interop cases', lacks('go'));
  for (const secure of [false, true])
    await grpcCases({ tls: secure }, (name, passed, text) =>
      report.check(passed, `grpc ${secure ? 'over TLS' : 'plain'}: ${name}`, text),
    );
}

async function specification() {
  if (lacks('go')) return report.skip('h2spec', lacks('go'));
  for (const secure of [false, true]) {
    const words = secure ? ['--tls-key', SERVER_TLS.key, '--tls-cert', SERVER_TLS.cert] : [];
    await withEdubba(
      `h2spec-${secure ? 'tls' : 'plain'}`,
      async (server) => {
        const { total, passed, skipped, failed, text } = await h2spec(server.address, { tls: secure });
        report.passMany(passed);
        if (skipped + failed > 0) console.log(text);
        report.check(
          passed === H2SPEC_CASES && total === H2SPEC_CASES,
          `h2spec ${secure ? 'over TLS' : 'plain'}`,
          `${total} tests, ${passed} passed, ${skipped} skipped, ${failed} failed`,
        );
      },
      words,
    );
  }
}

/** Our own behaviour suite against Google's emulator: what it shows is that the suite asks for what others do too. */
async function behaviour() {
  if (lacks('go')) return report.skip('behaviour suite on the emulator', lacks('go'));
  const google = await startEmulator(await emulator());
  try {
    const env = {
      ...process.env,
      EDUBBA_BEHAVIOUR_ADDRESS: google.address,
      EDUBBA_BEHAVIOUR_LACKS: Object.keys(EMULATOR_LACKS).join(','),
    };
    const { out, err } = await capture(
      process.execPath,
      ['--test', '--test-reporter=tap', join(ROOT, 'dist/test/behaviour/server.test.js')],
      { timeoutMs: BEHAVIOUR_MS, env },
    );
    const tests = [...out.matchAll(/^ +(not ok|ok) \d+ - (.*?)( # SKIP.*)?$/gm)];
    if (tests.length === 0) throw new Error(`the behaviour suite reported no test: ${err.slice(-1000)}`);
    for (const [, verdict, name, skipped] of tests) {
      if (skipped) report.skip(`behaviour on the emulator: ${name}`, skipped.trim());
      else report.check(verdict === 'ok', `behaviour on the emulator: ${name}`);
    }
    for (const [feature, difference] of Object.entries(EMULATOR_LACKS))
      console.log(`difference: ${feature}: the emulator ${difference}`);
  } finally {
    await google.kill();
  }
}

/**
 * @param {string} text
 * @returns {Verdicts}
 */
const verdictsOf = (text) =>
  new Map([...text.matchAll(/^(PASS|FAIL|SKIP) (.+)$/gm)].map(([, verdict, name]) => [name, verdict]));

/**
 * @param {string} name
 * @param {RunningServer} server
 * @param {boolean} [isFull]
 */
async function runSuite(name, server, isFull = false) {
  const env = { ...process.env, BT_MODE: isFull ? 'full' : 'emulator' };
  const { out, err } = await capture('bash', [join(ROOT, `test/interop/suites/run-${name}.sh`), server.address], {
    timeoutMs: SUITE_MS,
    env,
  });
  const verdicts = verdictsOf(out);
  if (verdicts.size === 0) throw new Error(`the suite ${name} reported no test on ${server.name}: ${err.slice(-2000)}`);
  return { verdicts, err };
}

/**
 * The verdicts to compare with: of an emulator that runs next to it, or in the short form those recorded.
 *
 * @param {(typeof SUITES)[number]} suite
 * @param {RunningServer | undefined} google
 */
async function baseline({ name, isFull }, google) {
  if (google && !isFull) return (await runSuite(name, google)).verdicts;
  const file = isFull ? `${name}-full.txt` : `${name}.txt`;
  return verdictsOf(readFileSync(join(ROOT, `test/interop/baselines/${file}`), 'utf8'));
}

/**
 * @param {(typeof SUITES)[number]} suite
 * @param {{ verdicts: Verdicts, err: string }} result
 * @param {Verdicts} expected
 */
function compare({ name: suite, floor, isFull }, { verdicts, err }, expected) {
  const name = isFull ? `${suite}, full` : suite;
  const others = isFull ? 'the recorded run' : 'the emulator';
  /** @param {string} verdict */
  const count = (verdict) => [...verdicts.values()].filter((one) => one === verdict).length;
  /** @type {string[]} */
  const ours = [];
  /** @type {string[]} */
  const both = [];
  for (const [test, verdict] of verdicts) {
    if (verdict === 'FAIL') (expected.get(test) === 'FAIL' ? both : ours).push(test);
  }
  for (const [test, verdict] of expected) {
    if (verdict === 'PASS' && verdicts.get(test) !== 'PASS' && verdicts.get(test) !== 'FAIL')
      ours.push(`${test} (${verdicts.get(test) ?? 'absent'} here)`);
  }
  report.passMany(count('PASS'));
  report.skipMany(count('SKIP') + both.length);
  console.log(
    `${name}: ${count('PASS')} passed, ${count('FAIL')} failed, ${count('SKIP')} skipped here; ${others} passes ${[...expected.values()].filter((one) => one === 'PASS').length}`,
  );
  for (const test of both) console.log(`fails here and there: ${name} ${test}`);
  for (const test of ours) report.fail(`${name} ${test}`, `${others} passes it`);
  if (ours.length > 0) console.log(err.slice(-3000));
  report.check(count('PASS') >= floor, `${name}: at least ${floor} tests pass`);
}

async function suites() {
  const google = short ? undefined : await startEmulator(await emulator());
  try {
    for (const suite of SUITES) {
      const why = lacks(...suite.needs);
      if (why) report.skip(`suite ${suite.name}`, why);
      else
        await withEdubba(
          `suite-${suite.name}`,
          async (server) =>
            compare(suite, await runSuite(suite.name, server, suite.isFull), await baseline(suite, google)),
          // in the cloud who runs the suites owns the project, whatever policies they set
          ['--owners', 'allUsers'],
        );
    }
  } finally {
    await google?.kill();
  }
}

/**
 * The clients and the suites at the front doors of a cluster, whose tablets are those of three servers: each at another
 * door. The short form has the clients at one door.
 */
async function cluster() {
  if (lacks('go')) return report.skip('a cluster', lacks('go'));
  const google = short ? undefined : await startEmulator(await emulator());
  const cluster = new ProcessCluster();
  try {
    await cluster.start(await goProgram('test/etcd/server', 'etcd'));
    // as those of one server (`suites`)
    for (let i = 0; i < 3; i++) await cluster.startTabletServer(['--owners', 'allUsers']);
    const doors = cluster.servers;
    for (const { address } of short ? doors.slice(1, 2) : doors) await runClients({ BIGTABLE_EMULATOR_HOST: address });
    for (const [i, suite] of short ? [] : SUITES.entries()) {
      const why = lacks(...suite.needs);
      const door = /** @type {RunningServer} */ (doors[i % doors.length]);
      if (why) report.skip(`suite ${suite.name}`, why);
      else compare(suite, await runSuite(suite.name, door, suite.isFull), await baseline(suite, google));
    }
    for (const [i, door] of doors.entries()) {
      const { code } = await door.kill();
      report.check(code === 0, `server ${i + 1} ends with status 0`, code === 0 ? '' : door.output().slice(-1000));
    }
  } finally {
    await cluster.end();
    await google?.kill();
  }
}

/**
 * Two releases after this one: the first sends a field that this one does not know, and knows a feature; the second
 * requires that feature.
 *
 * @param {string} folder
 */
function laterReleases(folder) {
  const field = /** @type {const} */ ([
    ['brief: optional(3, flag) }', 'brief: optional(3, flag), later: optional(15, flag) }'],
    ['brief ? { brief } : {}', '{ later: true, ...(brief && { brief }) }'],
  ]);
  /** @param {number} requires */
  const release = (requires) =>
    otherBuild(join(folder, `${requires}`), [
      ...field,
      ['version: 1, requires: 0, knows: 0', `version: 1, requires: ${requires}, knows: 1`],
    ]);
  return { 'knows a feature': release(0), 'requires it': release(1) };
}

/**
 * The clients through a TCP balancer, while the servers of the cluster behind it are restarted and upgraded, one after
 * another and all again: each is drained, ended by SIGTERM, and started anew at its address. Nothing fails after the
 * clients' own retries. The master is restarted after them, without clients: a table that is being created then may
 * fail.
 */
async function balancer() {
  const why = lacks('go') ?? balancerMissing() ?? (short ? 'the long form has it' : undefined);
  if (why !== undefined) return report.skip('a balancer', why);
  const cluster = new ProcessCluster();
  /** @type {Balancer | undefined} */
  let before;
  try {
    await cluster.start(await goProgram('test/etcd/server', 'etcd'));
    for (let i = 0; i < 3; i++) await cluster.startTabletServer();
    before = await startBalancer(cluster.servers.map(({ address }) => address));
    const doors = before;
    const restartAll = async () => {
      for (let i = 0; i < 3; i++) {
        await doors.drain(i);
        const { code } = await cluster.restart(i);
        await doors.undrain(i);
        if (code !== 0) report.fail('a server that is restarted ends with status 0', `${code}`);
        await pause(RESTART_EVERY_MS);
      }
    };
    for (const [name, program] of Object.entries(laterReleases(join(scratch, 'releases')))) {
      let isOver = false;
      let rounds = 0;
      const restarting = async () => {
        // the first time as they are, then upgraded
        for (; !isOver || rounds < 2; rounds++) {
          if (rounds === 1) cluster.program = program;
          await restartAll();
        }
      };
      const clients = runClients({ BIGTABLE_EMULATOR_HOST: doors.address }).finally(() => (isOver = true));
      await Promise.all([clients, restarting()]);
      report.pass(`all servers are upgraded to a release that ${name}`, `${3 * rounds} restarts`);
      const { code } = await cluster.restartMaster();
      const words = [
        join(ROOT, 'bin', 'edubba'),
        '--address',
        doors.address,
        'createtable',
        name.replaceAll(' ', '-'),
        'families=f',
      ];
      const created = await capture(process.execPath, words, { timeoutMs: CLIENT_MS });
      report.check(code === 0 && created.status === 0, 'and so is the master', created.err.trim());
    }
  } finally {
    await before?.end();
    await cluster.end();
  }
}

async function load() {
  if (lacks('go')) return report.skip('load', lacks('go'));
  const path = await buildBtbench();
  const size = short ? ['-rows', 5000, '-secs', 1] : ['-rows', 50_000, '-secs', 3];
  await withEdubba('load', async (server) => {
    const { results, err } = await btbench(path, server.address, [
      ...size,
      '-pid',
      server.pid,
      '-workloads',
      WORKLOADS.join(','),
    ]);
    for (const workload of WORKLOADS) {
      const result = results.find((one) => one.workload === workload);
      if (!result) report.fail(`load: ${workload}`, `no result: ${err.slice(-500)}`);
      else
        report.check(
          result.errors === 0 && result.rows > 0,
          `load: ${workload}`,
          `${result.rows} rows, ${Math.round(result.rows_per_s)}/s, ${result.errors} errors ${errorKinds(result)}`.trim(),
        );
    }
  });
}

async function probe() {
  if (lacks('go')) return report.skip('probe', lacks('go'));
  const path = await buildProbe();
  const address = `127.0.0.1:${await freePort()}`;
  const start = edubbaCommand(join(scratch, 'probe'), address)
    .map((part) => `'${part}'`)
    .join(' ');
  const { out, err } = await capture(
    path,
    ['-addr', address, '-features', '-json', '-start', `${start} >'${join(scratch, 'probe.log')}' 2>&1`],
    { timeoutMs: PROBE_MS },
  );
  const answers = Object.entries(JSON.parse(out.split('\n').find((line) => line.startsWith('{')) ?? '{}'));
  if (answers.length === 0) throw new Error(`the prober gave no answer: ${err.slice(-1000)}`);
  for (const [name, answer] of answers) {
    const call = name.split('/').at(-1) ?? name;
    if (/^CRASH/.test(answer)) report.fail(`probe: ${name}`, answer);
    else if (/^feature: (filter|mutation|aggregate|gc rule)/.test(name) || CALLS.includes(call))
      report.check(answer === 'OK', `probe: ${name}`, answer);
    else if (/^feature: read/.test(name)) report.check(!/^WRONG/.test(answer), `probe: ${name}`, answer);
    else report.passMany(1);
  }
}

async function crash() {
  if (lacks('go')) return report.skip('crash', lacks('go'));
  const path = await buildBtbench();
  const dir = join(scratch, 'crash');
  const rounds = Array.from({ length: short ? 3 : 20 }, (_, i) => ({
    table: `crash-${i + 1}`,
    ackFile: join(scratch, `acks-${i + 1}`),
  }));
  let acknowledged = 0;
  let server = await startEdubba(dir);
  for (const [i, round] of rounds.entries()) {
    const delayMs = Math.round(Math.random() * 1800);
    const rows = await writeUntilGone(path, server, { ...round, delayMs, stopServer: () => server.kill('SIGKILL') });
    acknowledged += rows;
    const start = performance.now();
    server = await startEdubba(dir);
    const startMs = Math.round(performance.now() - start);
    const { errors, text } = await lookAgain(path, server.address, round);
    report.check(
      errors === 0 && rows > 0,
      `crash: round ${i + 1}`,
      `killed after ${delayMs} ms, ${rows} rows acknowledged, started again in ${startMs} ms${text && `; ${text}`}`,
    );
  }
  let lost = 0;
  for (const round of rounds) lost += (await lookAgain(path, server.address, round)).errors;
  report.check(
    lost === 0,
    'crash: every row of every round at the end',
    `${acknowledged} acknowledged, ${lost} lost or wrong`,
  );
  await server.kill();
}

/** @type {Record<string, () => Promise<unknown>>} */
const run = {
  clients,
  hello,
  tls,
  behaviour,
  suites,
  cluster,
  balancer,
  grpc,
  h2spec: specification,
  load,
  probe,
  crash,
};
for (const part of PARTS) if (only.includes(part)) await report.section(part, run[part]);
report.close();
process.exit();
