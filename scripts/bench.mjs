/**
 * npm run bench -- NAME: runs a benchmark of bench/.
 *
 *   npm run bench -- server [--rows=N] [--secs=N] [--conns=N] [--streams=N] [--workloads=a,b] [--only=edubba|emulator] [--json]
 *       our load generator (bench/btbench) against Edubba and, on the same machine in turn, Google's Go emulator; a table, or JSON lines
 *   npm run bench -- NAME [ARGUMENTS]
 *       bench/NAME.ts
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { btbench, buildBtbench, WORKLOADS } from './lib/btbench.mjs';
import { buildOrExit } from './lib/build.mjs';
import { filesUnder, ROOT, run } from './lib/repository.mjs';
import { startEdubba, startEmulator } from './lib/server.mjs';
import { emulator, goMissing } from './lib/tools.mjs';

const MIB = 1024 * 1024;
const [what, ...words] = process.argv.slice(2);
const option = (name, fallback) => words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback;

const names = filesUnder('bench', (name) => name.endsWith('.ts')).map((path) => path.slice('bench/'.length, -'.ts'.length));
if (names.includes(what)) {
  buildOrExit();
  process.exit(run(process.execPath, ['--enable-source-maps', join(ROOT, 'dist', 'bench', `${what}.js`), ...words]));
}
if (what !== 'server') {
  console.log(`usage: npm run bench -- ${['server', ...names].join('|')} [ARGUMENTS]`);
  process.exit(2);
}
const why = await goMissing();
if (why) {
  console.log(`missing: ${why}`);
  process.exit(1);
}
buildOrExit();
const path = await buildBtbench();
const scratch = mkdtempSync(join(tmpdir(), 'edubba-bench-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const servers = {
  edubba: () => startEdubba(scratch),
  emulator: async () => startEmulator(await emulator()),
};
const args = ['-rows', option('rows', 20_000), '-secs', option('secs', 3), '-conns', option('conns', 2), '-streams', option('streams', 16), '-workloads', option('workloads', WORKLOADS.join(','))];

const all = [];
for (const name of option('only', Object.keys(servers).join(',')).split(',')) {
  const server = await servers[name]();
  const start = performance.now();
  const { results, err } = await btbench(path, server.address, [...args, '-pid', server.pid, ...(name === 'edubba' ? ['-datadir', scratch] : [])]);
  if (results.length === 0) throw new Error(`${name}: ${err}`);
  console.error(`${name}: ${((performance.now() - start) / 1000).toFixed(0)} s`);
  for (const result of results) all.push({ server: name, ...result });
  await server.kill();
}
if (words.includes('--json')) for (const result of all) console.log(JSON.stringify(result));
else {
  console.table(
    all.map((r) => ({
      server: r.server,
      workload: r.workload,
      'rows/s': Math.round(r.rows_per_s),
      'p50 ms': Number(r.p50_ms.toFixed(3)),
      'p99 ms': Number(r.p99_ms.toFixed(3)),
      errors: r.errors,
      'server us/row': Number(r.server_cpu_us_per_row.toFixed(1)),
      'rss MiB': Math.round(r.server_rss_bytes / MIB),
      'disk MiB': Math.round(r.data_bytes / MIB),
    })),
  );
}
process.exit(all.some(({ errors }) => errors > 0) ? 2 : 0);
