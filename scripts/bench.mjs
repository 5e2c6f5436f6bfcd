/**
 * npm run bench -- NAME: runs a benchmark of bench/.
 *
 *   npm run bench -- server [--rows=20000,…] [--load=1x1,2x16] [--secs=N] [--warm=N] [--workloads=a,b] [--json=FILE]
 *                           [--only=edubba,threads,node22,emulator,hbase]
 *       our load generator (bench/btbench) against Edubba and, on the same machine in turn, itself on two threads,
 *       Google's Go emulator and HBase (lib/server-bench.mjs)
 *   npm run bench -- compare COMMIT [server|engine] [--rounds=9] [--rows=N] [--secs=4] [--lines=a,b] [--json=FILE]
 *       CPU time of this checkout next to that of another commit, with a verdict (lib/compare.mjs)
 *   npm run bench -- cluster [--only=doors,servers] [--rows=N] [--load=2x16] [--secs=N] [--warm=N] [--json=FILE]
 *       tablet servers in processes of their own: what a front door that passes calls on costs, and one, two and three
 *       servers (lib/cluster-bench.mjs)
 *   npm run bench -- recovery [--mb=1024] [--tablets=200] [--json=FILE]
 *       the death of one of three tablet servers whose log is long: times, bytes read and memory
 *       (lib/recovery-bench.mjs)
 *   npm run bench -- retention [--rounds=9] [--rows=N] [--calls=N] [--json=FILE]
 *       writes to a table whose changes are kept for a change stream, next to those to one without
 *       (lib/retention-bench.mjs)
 *   npm run bench -- NAME [ARGUMENTS]
 *       bench/NAME.ts
 */
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { clusterBench } from './lib/cluster-bench.mjs';
import { compare } from './lib/compare.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { recoveryBench } from './lib/recovery-bench.mjs';
import { filesUnder, ROOT, run } from './lib/repository.mjs';
import { retentionBench } from './lib/retention-bench.mjs';
import { serverBench } from './lib/server-bench.mjs';
import { goMissing } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const [what, ...words] = process.argv.slice(2);

const names = filesUnder('bench', (name) => name.endsWith('.ts')).flatMap(
  (path) => /^bench\/([^/]+)\.ts$/.exec(path)?.[1] ?? [],
);
if (names.includes(what)) {
  buildOrExit();
  process.exit(run(process.execPath, ['--enable-source-maps', join(ROOT, 'dist', 'bench', `${what}.js`), ...words]));
}
if (what === 'compare') {
  buildOrExit();
  process.exit(await compare(words));
}
const others = { server: serverBench, cluster: clusterBench, recovery: recoveryBench, retention: retentionBench };
const bench = others[/** @type {keyof typeof others} */ (what)];
if (bench === undefined) {
  console.log(`usage: npm run bench -- ${[...Object.keys(others), 'compare', ...names].join('|')} [ARGUMENTS]`);
  process.exit(2);
}
const why = await goMissing();
if (why) {
  console.log(`missing: ${why}`);
  process.exit(1);
}
buildOrExit();
process.exit(await bench(words));
