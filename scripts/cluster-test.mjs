/**
 * npm run cluster-test -- [--servers 3|5] [--store directory|s3] [--minutes M] [--seed S] [--fault NAME] [--short]: a
 * cluster of real processes under faults (test/cluster): 3 or 5 tablet servers, 2 masters and 3 members of etcd, on a
 * shared directory or on S3 (versitygw), each process on a machine of its own: a network namespace. Clients contend on
 * a few rows and write many others through the front doors while processes are killed and stopped, machines are cut off
 * from one another in one direction, and etcd and the store are slow.
 *
 * Checked: rows are linearizable, no acknowledged write is lost, no read is stale; all tablets are served again within
 * 10 s of a death's detection; data calls do not notice that the master is lost, and admin calls are answered within
 * 5 s of its lock being free; no process ends that no fault explains, and no log tells of a broken invariant. Counts of
 * faults and times of recovery are printed. Closes with one line 'N passed, N failed, N skipped'.
 *
 * Default: 3 and 5 servers on both stores, 10 minutes each. --short: 3 servers on a directory, and the four faults that
 * matter most. The faults are drawn by the seed; --fault NAME: of those whose names contain it, which are in
 * test/cluster/faults.ts. Needs Go for etcd and versitygw, and Linux with `ip`, `unshare` and `nsenter` for the
 * network; without them nothing is cut.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { clusterMissing, endWithUs, runCluster, SERVERS, STORES, unsharing } from './lib/cluster-process.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { capture } from './lib/repository.mjs';
import { goProgram } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const { values } = argumentsOf({
  options: {
    servers: { type: 'string' },
    store: { type: 'string' },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 1e6)) },
    fault: { type: 'string', default: '' },
    short: { type: 'boolean', default: false },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
if (
  !(minutes > 0 && Number.isSafeInteger(seed)) ||
  (values.servers !== undefined && !SERVERS.includes(Number(values.servers))) ||
  (values.store !== undefined && !STORES.includes(values.store))
) {
  console.log(`--minutes and --seed take numbers, --servers 3 or 5, --store one of ${STORES.join(', ')}`);
  process.exit(2);
}
const stores = values.store !== undefined ? [values.store] : values.short ? ['directory'] : STORES;
const sizes = values.servers !== undefined ? [Number(values.servers)] : values.short ? [3] : SERVERS;

/** @typedef {import('../dist/test/cluster/run.js').RunResult} RunResult */

buildOrExit();
const { JUDGED } = await import('../dist/test/cluster/findings.js');
const report = new Report();
endWithUs();

/**
 * @param {string} store
 * @param {number} servers
 * @param {string[] | undefined} namespaces
 */
async function runOn(store, servers, namespaces) {
  const options = { store, servers, minutes, seed, isShort: values.short, only: values.fault };
  const { found, scratch, logs } = await runCluster('dist/test/cluster/main.js', options, namespaces);
  const again = `again: npm run cluster-test -- --servers ${servers} --store ${store} --minutes ${minutes} --seed ${seed}${values.short ? ' --short' : ''}${values.fault && ` --fault '${values.fault}'`}`;
  if (found === undefined) return report.fail('it ran to its end', `the logs are in ${logs}\n${again}`);
  /** @type {RunResult} */
  const result = JSON.parse(found);
  tell(result);
  await askPorcupine(join(scratch, 'histories'));
  const { findings } = result;
  for (const [judged, title] of Object.entries(JUDGED)) {
    const bad = findings.filter(({ kind }) => kind === judged).map(({ what }) => what);
    report.check(bad.length === 0, title, bad.length === 0 ? '' : `\n${bad.join('\n')}`);
  }
  if (namespaces === undefined)
    report.skip(
      'cuts of the network',
      'namespaces are not permitted, or ip and nsenter (iproute2, util-linux) are missing',
    );
  if (result.contention.undecided > 0)
    report.skip('some rows', `the checker has no verdict on ${result.contention.undecided} histories`);
  if (findings.length === 0) rmSync(scratch, { recursive: true, force: true });
  else console.log(`the logs are in ${logs}\n${again}`);
}

/**
 * Our checker has found no violation in them: so does Porcupine.
 *
 * @param {string} histories
 */
async function askPorcupine(histories) {
  const porcupine = await goProgram('test/linearizability/porcupine', 'porcupine');
  const { status, out, err } = await capture(porcupine, ['rows'], { input: readFileSync(histories, 'utf8') });
  if (status !== 0) return report.fail('Porcupine', err.slice(-2000));
  const verdicts = out.trimEnd().split('\n');
  /** @param {string} verdict */
  const count = (verdict) => verdicts.filter((each) => each === verdict).length;
  const text = `${count('true')} histories, ${count('unknown')} more without a verdict in time`;
  report.check(
    count('false') === 0,
    'Porcupine',
    count('false') === 0 ? text : `${count('false')} are not linearizable`,
  );
}

/** @param {RunResult} result */
function tell({ faults, contention, ledger, failures, recoveries, failOversMs }) {
  console.log(
    `faults: ${Object.entries(faults)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}`,
  );
  console.log(
    `contention: ${contention.operations} operations on rows in ${contention.calls} calls, ${contention.answered} answered, ${contention.failed} failed for certain, ${contention.unknown} of unknown outcome`,
  );
  console.log(
    `spread rows: ${ledger.acknowledged} writes acknowledged, ${ledger.unknown} of unknown outcome, ${ledger.reads} read under way, ${ledger.compared} compared in the end; ${failures} failed calls in all`,
  );
  const detected = recoveries.map(({ detectedMs }) => detectedMs);
  const served = recoveries.map(({ servedMs }) => servedMs);
  const inAll = recoveries.map(({ detectedMs, servedMs }) => detectedMs + servedMs);
  console.log(
    `deaths: detected after ${spread(detected)}, all served ${spread(served)} after that, ${spread(inAll)} after the death`,
  );
  console.log(`masters: an admin call answered ${spread(failOversMs)} after the lock was free`);
}

/**
 * The smallest, the middle and the largest, in seconds.
 *
 * @param {readonly number[]} timesMs
 */
function spread(timesMs) {
  if (timesMs.length === 0) return '(none)';
  const sorted = [...timesMs].sort((a, b) => a - b);
  return [sorted[0], sorted[sorted.length >> 1], sorted[sorted.length - 1]]
    .map((ms) => (ms / 1000).toFixed(1))
    .join(' / ')
    .concat(` s (least, median, most of ${sorted.length})`);
}

const missing = await clusterMissing();
if (missing !== undefined) report.skip('a cluster of real processes', missing);
else {
  const namespaces = unsharing();
  for (const store of stores)
    for (const servers of sizes)
      await report.section(`${servers} servers on ${store}, seed ${seed}`, () => runOn(store, servers, namespaces));
}
if (missing !== undefined) console.log('0 passed, 0 failed, 1 skipped');
else report.close();
process.exit();
