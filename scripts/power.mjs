/**
 * npm run test:power: power loss for real. Edubba writes on a loop-mounted ext4; the file system is shut down under it
 * without flushing its journal, so that all that was not synced is gone; after remounting every acknowledged write must
 * be there.
 *
 * In each round two writers run side by side: the embedded library (test/crash/writer.ts) and, where Go is there, a
 * server under our load generator. Both go on for a moment after the loss, so that an acknowledgement without a sync
 * would show.
 *
 *   npm run test:power [-- --short]       needs root, loop devices, mkfs.ext4, mount and xfs_io (Debian: xfsprogs)
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildBtbench, lookAgain, writeUntilGone } from './lib/btbench.mjs';
import { buildOrExit } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT, which } from './lib/repository.mjs';
import { startEdubba } from './lib/server.mjs';
import { goMissing } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const IMAGE_BYTES = 3 * 1024 ** 3;
const AFTER_LOSS_MS = 150;
const CHECK_MS = 120_000;
const CRASH = join(ROOT, 'dist/test/crash');
const short = process.argv.includes('--short');
const ROUNDS = short ? 2 : 10;

const missing = [];
if (process.platform !== 'linux') missing.push('Linux');
if (process.getuid?.() !== 0) missing.push('root');
for (const program of ['mkfs.ext4', 'mount', 'umount', 'truncate']) if (!which(program)) missing.push(program);
if (!which('xfs_io')) missing.push('xfs_io (Debian package xfsprogs)');
if (!existsSync('/dev/loop-control')) missing.push('loop devices');
if (missing.length > 0) {
  console.log(`missing: ${missing.join(', ')}`);
  process.exit(1);
}
buildOrExit();
const { acknowledged, WRITERS } = await import('../dist/test/crash/ledger.js');

const report = new Report();
const scratch = mkdtempSync(join(tmpdir(), 'edubba-power-'));
const image = join(scratch, 'disk');
const disk = join(scratch, 'mounted');
let mounted = false;
// also where a signal ends this process in the middle
process.on('exit', () => {
  if (mounted) spawnSync('umount', ['-l', disk]);
  rmSync(scratch, { recursive: true, force: true });
});

/**
 * @param {string} command
 * @param {...string} args
 */
async function must(command, ...args) {
  const { status, out, err } = await capture(command, args);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed with ${status}: ${err || out}`);
}

async function mount() {
  await must('mount', '-o', 'loop', image, disk);
  mounted = true;
}

/** Processes that were just killed may hold the mount for a moment. */
async function unmount() {
  for (let tries = 1; ; tries++) {
    try {
      await must('umount', disk);
      mounted = false;
      return;
    } catch (error) {
      if (tries === 50) throw error;
      await pause(100);
    }
  }
}

/** @param {number} delayMs */
const pause = (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs));
const losePower = () => must('xfs_io', '-x', '-c', 'shutdown', disk);

/** @param {string} directory */
function startWriter(directory) {
  const child = spawn(process.execPath, [join(CRASH, 'writer.js'), directory], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  let tellFirst = () => {};
  /** @type {Promise<void>} */
  const first = new Promise((resolve) => (tellFirst = resolve));
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    tellFirst();
  });
  /** @type {Promise<void>} */
  const closed = new Promise((resolve) => child.once('close', () => resolve()));
  closed.then(tellFirst);
  return {
    first,
    errors: () => errors,
    async kill() {
      child.kill('SIGKILL');
      await closed;
      return output;
    },
  };
}

/** @type {number[]} */
let last = new Array(WRITERS).fill(0);
let serverRows = 0;

/**
 * @param {number} number
 * @param {string | undefined} btbench The path of the load generator.
 */
async function round(number, btbench) {
  const delayMs = Math.round(Math.random() * 1500);
  const table = `power-${number}`;
  const ackFile = join(scratch, `acks-${number}`);
  const server = btbench ? await startEdubba(join(disk, 'server')) : undefined;
  const writer = startWriter(join(disk, 'embedded'));
  let output = '';
  const stopAll = async () => {
    await losePower();
    await pause(AFTER_LOSS_MS);
    output = await writer.kill();
    await server?.kill('SIGKILL');
  };
  await writer.first;
  let rows = 0;
  if (btbench && server) rows = await writeUntilGone(btbench, server, { table, ackFile, delayMs, stopServer: stopAll });
  else {
    await pause(delayMs);
    await stopAll();
  }
  await unmount();
  await mount();

  const before = last.reduce((a, b) => a + b, 0);
  const seen = acknowledged(output);
  last = last.map((iteration, i) => Math.max(iteration, seen[i]));
  const wrote = last.reduce((a, b) => a + b, 0) - before;
  report.check(
    wrote > 0,
    `round ${number}: the embedded library wrote`,
    `${wrote} acknowledged iterations in about ${delayMs} ms${wrote > 0 ? '' : `; ${writer.errors()}`}`,
  );
  const checked = await capture(
    process.execPath,
    [join(CRASH, 'checker.js'), join(disk, 'embedded'), JSON.stringify(last)],
    { timeoutMs: CHECK_MS },
  );
  report.check(
    checked.status === 0,
    `round ${number}: nothing acknowledged is lost (embedded)`,
    checked.status === 0 ? '' : checked.err.slice(-2000),
  );
  if (checked.status === 0) last = JSON.parse(checked.out);
  if (!btbench) return;
  serverRows += rows;
  const again = await startEdubba(join(disk, 'server'));
  const { errors, text } = await lookAgain(btbench, again.address, { table, ackFile });
  report.check(
    errors === 0 && rows > 0,
    `round ${number}: nothing acknowledged is lost (server)`,
    `${rows} rows acknowledged${text && `; ${text}`}`,
  );
  await again.kill();
}

try {
  mkdirSync(disk);
  await must('truncate', '-s', String(IMAGE_BYTES), image);
  await must('mkfs.ext4', '-q', image);
  await mount();
  const why = await goMissing();
  const btbench = why ? undefined : await buildBtbench();
  if (why) report.skip('the server under load', why);
  await report.section('power loss', async () => {
    for (let number = 1; number <= ROUNDS; number++) await round(number, btbench);
  });
  console.log(
    `${ROUNDS} power losses: ${last.reduce((a, b) => a + b, 0)} acknowledged iterations of the embedded library, ${serverRows} acknowledged rows of the server`,
  );
} catch (error) {
  report.fail('set up', error.stack);
}
report.close();
process.exit();
