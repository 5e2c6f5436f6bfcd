/**
 * npm run linked-list -- [--nodes N] [--servers 3|5] [--store directory|s3] [--clients N] [--seed S]: clients write
 * nodes of linked lists to a cluster of real processes (test/cluster), in bulk, spread over a table that is split as it
 * grows. Each node refers to one that was acknowledged before it. Meanwhile tablet servers, masters and members of etcd
 * are killed with SIGKILL, and start again. In the end the whole table is read (test/linked-list).
 *
 * Checked: no acknowledged node is missing (a hole), each node is as it was written, and no others are there; clients
 * write again after each fault; no process ends by itself, and no log tells of a broken invariant. Closes with one line
 * 'N passed, N failed, N skipped'.
 *
 * Default: 100,000 nodes, 3 servers, a directory, 4 clients: a minute and a half. The long form: --nodes 10000000, an
 * hour or so. The faults are drawn by the seed. Needs Linux, Go for etcd and versitygw, and about 500 bytes of disk a
 * node.
 */
import { rmSync } from 'node:fs';
import { buildOrExit } from './lib/build.mjs';
import { clusterMissing, endWithUs, runCluster, SERVERS, STORES, unsharing } from './lib/cluster-process.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';

helpIfAsked(import.meta.url);

const { values } = argumentsOf({
  options: {
    nodes: { type: 'string', default: '100000' },
    servers: { type: 'string', default: '3' },
    store: { type: 'string', default: 'directory' },
    clients: { type: 'string', default: '4' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 1e6)) },
  },
});
const { store } = values;
const [nodes, servers, clients, seed] = [values.nodes, values.servers, values.clients, values.seed].map(Number);
const areCounts = [nodes, clients].every((count) => Number.isSafeInteger(count) && count > 0);
if (!areCounts || !Number.isSafeInteger(seed) || !SERVERS.includes(servers) || !STORES.includes(store)) {
  console.log(
    `--nodes, --clients and --seed take numbers, --servers ${SERVERS.join(' or ')}, --store one of ${STORES.join(', ')}`,
  );
  process.exit(2);
}

/** What is judged when the table has been read. */
const READ = new Set(['holes', 'nodes', 'splits']);

/** @typedef {import('../dist/test/linked-list/run.js').RunResult} RunResult */

buildOrExit();
const { JUDGED } = await import('../dist/test/linked-list/findings.js');
const report = new Report();
endWithUs();

async function run() {
  const options = { nodes, store, servers, clients, seed };
  const { found, scratch, logs } = await runCluster('dist/test/linked-list/main.js', options, unsharing());
  const args = Object.entries(options).map(([name, value]) => `--${name} ${value}`);
  const again = `the logs are in ${logs}\nagain: npm run linked-list -- ${args.join(' ')}`;
  if (found === undefined) return report.fail('it ran to its end', again);
  /** @type {RunResult} */
  const result = JSON.parse(found);
  tell(result);
  const { findings } = result;
  for (const [judged, title] of Object.entries(JUDGED)) {
    const bad = findings.filter(({ kind }) => kind === judged).map(({ what }) => what);
    if (bad.length > 0) report.fail(title, `\n${bad.join('\n')}`);
    else if (result.verification === undefined && READ.has(judged)) report.skip(title, 'the table was not read');
    else report.pass(title);
  }
  if (findings.length === 0) rmSync(scratch, { recursive: true, force: true });
  else console.log(again);
}

/** @param {RunResult} result */
function tell({ acknowledged, unknown, faults, failures, splits, writtenMs, readMs, verification, memoryBytes }) {
  const found =
    verification === undefined
      ? 'the table was not read'
      : `of which ${verification.unknownFound} are there; ${verification.rows} rows`;
  console.log(`nodes: ${acknowledged} acknowledged, ${unknown} of unknown outcome, ${found}`);
  const kills = Object.entries(faults).map(([name, count]) => `${count} ${name}`);
  console.log(`faults: ${kills.join(', ') || 'none'}; ${failures} failed calls; ${splits} splits`);
  const rate = Math.round((1000 * acknowledged) / writtenMs);
  const memory = Math.round(memoryBytes / 1024 ** 2);
  console.log(
    `written in ${seconds(writtenMs)} with recoveries (${rate} nodes a second), read in ${seconds(readMs)}; ${memory} MiB of memory`,
  );
}

/** @param {number} ms */
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

const missing = await clusterMissing();
if (missing !== undefined) {
  report.skip('a linked list on a cluster of real processes', missing);
  console.log('0 passed, 0 failed, 1 skipped');
} else {
  await report.section(`${nodes} nodes, ${servers} servers on ${store}, seed ${seed}`, run);
  report.close();
}
process.exit();
