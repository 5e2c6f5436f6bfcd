/**
 * npm run test:etcd [-- FILTER…]: the lock service on a real etcd (test/etcd): its contract, and what it does when
 * answers are lost, members die, are stopped or compacted, and leases lapse. etcd is built from its Go module, so that
 * this needs Go; it prints 'N passed, N failed, N skipped'.
 *
 * FILTER: part of a path; files that match any of them run.
 */
import { join } from 'node:path';
import { run } from 'node:test';
import { buildOrExit } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { closingLine, filesUnder, ROOT } from './lib/repository.mjs';
import TestReport from './lib/test-report.mjs';
import { goMissing, goProgram } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const MAX_FILE_SECONDS = 300;

buildOrExit();
process.chdir(ROOT);
const why = await goMissing();
if (why !== undefined) {
  console.log(`SKIP the lock service on etcd: ${why}`);
  console.log(closingLine({ passed: 0, failed: 0, skipped: 1 }));
  process.exit();
}
process.env.EDUBBA_ETCD = await goProgram('test/etcd/server', 'etcd');

const filters = process.argv.slice(2);
const files = filesUnder('dist/test/etcd', (name) => name.endsWith('.test.js'))
  .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)))
  .map((path) => join(ROOT, path));
const report = new TestReport({ files: files.length });
report.pipe(process.stdout);
const setUp = new URL('lib/check-invariants.mjs', import.meta.url).href;
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --enable-source-maps --import=${setUp}`.trim();
// most of their time is waiting; with more, a member that waits for its processor would look dead
run({ files, concurrency: 2, timeout: MAX_FILE_SECONDS * 1000 }).pipe(report);
