/**
 * npm run backup-load -- [--minutes M] [--seed S]: backups of a table under load (test/backup-load). Every second one
 * is taken of a table that is written all the time, whose tablets are compacted, split and merged, on a server that
 * is killed with SIGKILL and started again. Others are copied, deleted, or expire; any of them is restored and judged.
 * Closes with one line 'N passed, N failed, N skipped'.
 *
 * Checked: each restored row is as it was at one instant between the call that took the backup and its answer, also
 * after files that it shares were replaced; backups that have expired are gone; `inspect check` finds nothing in the
 * end. Default: 1 minute. The long form: --minutes 10.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { freePort, startEdubba } from './lib/server.mjs';

helpIfAsked(import.meta.url);

const { values } = argumentsOf({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const minutes = Number(values.minutes ?? 1);
const seed = Number(values.seed ?? 1 + Math.floor(Math.random() * 1e6));
if (!(minutes > 0 && Number.isSafeInteger(seed))) {
  console.log('--minutes and --seed take numbers');
  process.exit(2);
}

buildOrExit();
const { BackupLoad, SERVER_SETTINGS } = await import('../dist/test/backup-load/run.js');
const report = new Report();
const directory = mkdtempSync(join(tmpdir(), 'edubba-backup-load-'));
const address = `127.0.0.1:${await freePort()}`;
/** @type {import('./lib/server.mjs').RunningServer | undefined} */
let running;

/** @type {import('../dist/test/backup-load/run.js').LoadedServer} */
const server = {
  address,
  directory,
  async start() {
    running = await startEdubba(directory, address, SERVER_SETTINGS);
  },
  async kill(signal) {
    await running?.kill(signal);
  },
};

/** @param {readonly number[]} times */
function shown(times) {
  const sorted = [...times].sort((a, b) => a - b);
  /** @param {number} part */
  const at = (part) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0);
  return `${sorted.length} answered, in ${at(0.5)} ms in the middle, ${at(0.99)} ms of 99 %, ${at(1)} ms at most`;
}

await report.section(`backups under load, ${minutes} minutes, seed ${seed}`, async () => {
  const startMs = performance.now();
  /** @param {string} line */
  const say = (line) => console.log(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)}  ${line}`);
  const { findings, counts, times } = await new BackupLoad({ server, minutes, seed, say }).run();
  console.log(
    Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  );
  for (const [name, all] of Object.entries(times)) console.log(`${name}: ${shown(all)}`);
  const again = `the directory is ${directory}\nagain: npm run backup-load -- --minutes ${minutes} --seed ${seed}`;
  report.check(findings.length === 0, 'backups are as their tables were', `${counts['rows judged']} rows judged`);
  if (findings.length > 0) console.log(`${running?.output()}\n${again}`);
  else rmSync(directory, { recursive: true, force: true });
});
report.close();
process.exit();
