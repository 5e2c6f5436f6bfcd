/**
 * npm run test:operations: follows docs/OPERATIONS.md word for word, as a new operator would, in a fresh change root
 * with an etcd and an S3 store (versitygw): a cluster is started, each of its processes is killed and started again,
 * and all are upgraded to another release, one at a time. Rows are written and read after each step.
 *
 * In place of the package of the registry it installs the one that `npm pack` makes of this checkout; the other release
 * differs in its version alone. Needs Linux, root, debootstrap, unshare, nsenter, ip, mount and Go.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { baseRoot, buildEnvironment, lend, must, PATH, placeForRoots, rootsMissing } from './lib/base-root.mjs';
import { buildOrExit } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { capture, closingLine, ROOT } from './lib/repository.mjs';
import { startServer } from './lib/server.mjs';
import { goMissing, goProgram, versitygw } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const PAGE = 'docs/OPERATIONS.md';
const FOLDER = '/srv/cluster';
const READY_MS = 60_000;
/** A lease ends, the log is read, and the next process is ready. */
const SERVED_MS = 60_000;
const STOP_MS = 90_000;
const NEXT_VERSION = '0.1.99';
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'operator', AWS_SECRET_ACCESS_KEY: 'operators-secret' };

const missing = rootsMissing() ?? (await goMissing());
if (missing !== undefined) {
  console.log(`SKIP ${PAGE}: ${missing}`);
  console.log(closingLine({ passed: 0, failed: 0, skipped: 1 }));
  process.exit();
}
buildOrExit();
const { blocksOf, firstLine } = await import('../dist/test/readme/markdown.js');

const report = new Report();
const { scratch, children } = placeForRoots('operations');

/** @typedef {Awaited<ReturnType<typeof startMachine>>} Machine */
/** @typedef {Awaited<ReturnType<Machine['start']>>} Running */

/**
 * The text of the page's block that begins so.
 *
 * @param {string} begins
 */
function block(begins) {
  const found = blocksOf(readFileSync(join(ROOT, PAGE), 'utf8')).find((one) => firstLine(one).startsWith(begins));
  if (found === undefined) throw new Error(`${PAGE} has no block that begins with: ${begins}`);
  return found.text;
}

/** @param {string} text */
const linesOf = (text) => text.trimEnd().split('\n');

/**
 * The package of a folder, as a file in the scratch folder.
 *
 * @param {string} folder
 */
async function packageOf(folder) {
  const packed = await must('npm pack', 'npm', ['pack', '--ignore-scripts', '--pack-destination', scratch], {
    cwd: folder,
  });
  return join(scratch, /** @type {string} */ (packed.trim().split('\n').at(-1)));
}

/**
 * A release that differs in its version alone.
 *
 * @param {string} archive
 */
async function nextRelease(archive) {
  await must('unpacking', 'tar', ['-xzf', archive, '-C', scratch]);
  const folder = join(scratch, 'package');
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const path of readdirSync(folder, { encoding: 'utf8', recursive: true }).map((name) => join(folder, name))) {
    if (!/\.js(on)?$/.test(path)) continue;
    const text = readFileSync(path, 'utf8');
    const next = text.replaceAll(new RegExp(`(["'])${version}\\1`, 'g'), `$1${NEXT_VERSION}$1`);
    if (next !== text) writeFileSync(path, next);
  }
  return packageOf(folder);
}

/**
 * A machine: namespaces for processes, mounts and network, with loopback alone.
 *
 * @param {string} root
 */
async function startMachine(root) {
  const script = `ip link set lo up && mount -t proc proc ${root}/proc && exec chroot ${root} sleep infinity`;
  const init = spawn('unshare', ['--mount', '--pid', '--net', '--fork', '--kill-child', 'sh', '-c', script], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  children.add(init);
  const env = { PATH, HOME: '/root', ...CREDENTIALS };
  /** @param {number | undefined} pid */
  const innerPid = (pid) => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  let pid = 0;
  for (const endMs = performance.now() + READY_MS; ; await sleep(50)) {
    pid = innerPid(init.pid);
    if (pid > 0 && readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'sleep') break;
    if (performance.now() > endMs) throw new Error('the machine does not start');
  }
  /** @param {string} command */
  const entering = (command) => [
    ...['--target', `${pid}`, '--mount', '--pid', '--net', '--root', `--wd=${root}${FOLDER}`],
    ...['sh', '-c', command],
  ];
  return {
    /** Runs a line to its end. @param {string} command */
    run: (command) => capture('nsenter', entering(command), { timeoutMs: SERVED_MS, env }),
    /**
     * Starts a line that goes on, and waits until it says that it is ready.
     *
     * @param {string} command
     * @param {RegExp} ready with a group
     * @param {Record<string, string>} [variables]
     */
    async start(command, ready, variables = {}) {
      const inside = entering(`exec ${command}`);
      const server = await startServer(command, 'nsenter', inside, ready, READY_MS, { ...env, ...variables });
      return {
        command,
        output: server.output,
        /** @param {NodeJS.Signals} signal */
        async end(signal) {
          const timer = setTimeout(() => void server.kill('SIGKILL'), STOP_MS);
          process.kill(innerPid(server.pid), signal);
          const { code, signal: endedBy } = await server.exited;
          clearTimeout(timer);
          return endedBy ?? code;
        },
      };
    },
  };
}

/**
 * Runs a line again and again until it succeeds, as one does who waits for a cluster.
 *
 * @param {Machine} machine
 * @param {string} command
 */
async function patiently(machine, command) {
  for (const endMs = performance.now() + SERVED_MS; ; await sleep(500)) {
    const ended = await machine.run(command);
    if (ended.status === 0 || performance.now() > endMs) return ended;
  }
}

let written = 0;
/**
 * Rows are written at one front door and read at the other.
 *
 * @param {Machine} machine
 * @param {string} when
 */
async function checkServes(machine, when) {
  const start = performance.now();
  const value = `value-${++written}`;
  const doors = written % 2 === 0 ? [8086, 8087] : [8087, 8086];
  const wrote = await patiently(machine, `edubba --address 127.0.0.1:${doors[0]} set t row f:last=${value}`);
  const read = await patiently(machine, `edubba --address 127.0.0.1:${doors[1]} read t`);
  const serves = wrote.status === 0 && read.out.includes(value) && read.out.includes('hello');
  const tookText = `${((performance.now() - start) / 1000).toFixed(1)} s`;
  report.check(serves, `rows are written and read ${when}`, serves ? tookText : `${wrote.err}${read.out}${read.err}`);
}

/** @type {string | undefined} */
let root;
await report.section('a fresh machine', async () => {
  const made = await baseRoot(scratch);
  for (const [name, path] of [
    ['etcd', await goProgram('test/etcd/server', 'etcd')],
    ['versitygw', await versitygw()],
  ])
    copyFileSync(path, join(made, 'usr/local/bin', name));
  mkdirSync(join(made, FOLDER), { recursive: true });
  mkdirSync(join(made, 'srv/s3/edubba'), { recursive: true });
  writeFileSync(join(made, 'etc/hosts'), '127.0.0.1 localhost\n');
  lend(made);
  root = made;
});

/**
 * The page's `npm install --global edubba`, of this package.
 *
 * @param {string} archive
 */
async function install(archive) {
  const command = linesOf(block('npm install --global edubba'))[0] ?? '';
  copyFileSync(archive, `${root}/srv/edubba.tgz`);
  const env = { ...buildEnvironment(), PATH, HOME: '/root', npm_config_fund: 'false', npm_config_audit: 'false' };
  await must(command, 'chroot', [`${root}`, 'sh', '-c', command.replace(/edubba$/, '/srv/edubba.tgz')], { env });
}

if (root !== undefined) {
  const fresh = root;
  await report.section(PAGE, async () => {
    const release = await packageOf(ROOT);
    await install(release);
    const machine = await startMachine(fresh);

    const local = await machine.start(linesOf(block('edubba cluster up'))[0] ?? '', /(everything is in)/);
    report.pass('a whole cluster is started by one command');
    const how = await local.end('SIGTERM');
    report.check(how === 0, 'and ends with status 0', how === 0 ? '' : `${how}: ${local.output()}`);

    await machine.start('etcd --data-dir /srv/etcd', /(ready to serve client requests)/);
    await machine.start('versitygw --port 127.0.0.1:9000 posix /srv/s3', /(9000)/, {
      ROOT_ACCESS_KEY: CREDENTIALS.AWS_ACCESS_KEY_ID,
      ROOT_SECRET_KEY: CREDENTIALS.AWS_SECRET_ACCESS_KEY,
    });
    for (const line of linesOf(block('node -p'))) {
      const { status, err } = await machine.run(line);
      report.check(status === 0, line, err);
    }
    writeFileSync(join(fresh, FOLDER, 'cluster.toml'), block('lock = "etcd://127.0.0.1"'));
    /** @type {Running[]} */
    const cluster = [];
    for (const line of linesOf(block('edubba master --settings')))
      cluster.push(await machine.start(line, /^listening on (\S+)/m));
    report.pass(`${cluster.length} processes are ready`);
    for (const line of linesOf(block('edubba --address 127.0.0.1:8086 createtable'))) {
      const { status, out, err } = await patiently(machine, line);
      report.check(status === 0 && (!line.includes(' read ') || out.includes('hello')), line, err.trim());
    }

    for (const [i, { command }] of cluster.entries()) {
      await cluster[i]?.end('SIGKILL');
      cluster[i] = await machine.start(command, /^listening on (\S+)/m);
      await checkServes(machine, `after kill -9 of: ${command}`);
    }

    for (const line of linesOf(block('edubba --address 127.0.0.1:8086 tablet events'))) {
      const { status, out, err } = await machine.run(line);
      const isRight = status === 0 && (!line.includes('events') || out.includes('assigned'));
      report.check(isRight, line, `${out}${err}`);
    }

    for (const first of ['hottablets', 'usage t', 'backup t'])
      for (const line of linesOf(block(`edubba --address 127.0.0.1:8086 ${first}`))) {
        const { status, out, err } = await machine.run(line);
        report.check(status === 0, line, `${out}${err}`);
      }

    for (const line of linesOf(block('edubba --address 127.0.0.1:8086 deletetable t-then'))) {
      const { status, out, err } = await machine.run(line);
      const isRight = status === 0 && (!line.includes('--deleted') || out.startsWith('t-then'));
      report.check(isRight, line, `${out}${err}`);
    }

    await install(await nextRelease(release));
    for (const [i, { command }] of cluster.entries()) {
      const how = await cluster[i]?.end('SIGTERM');
      report.check(
        how === 0,
        `SIGTERM ends it with status 0: ${command}`,
        how === 0 ? '' : `${how}: ${cluster[i]?.output().slice(-500)}`,
      );
      cluster[i] = await machine.start(command, /^listening on (\S+)/m);
      await checkServes(machine, 'after it was upgraded');
    }
    const version = await machine.run('edubba --version');
    report.check(version.out.includes(NEXT_VERSION), 'all are of the new release', version.out.trim());
    for (const one of cluster.reverse()) report.check((await one.end('SIGTERM')) === 0, `it ends: ${one.command}`);
  });
}
report.close();
process.exit();
