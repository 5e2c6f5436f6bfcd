/**
 * npm run test:upgrade -- COMMIT…: whether this checkout opens what an older commit wrote, and the older one what this one has written there since.
 *
 * For each COMMIT, once closed and once killed: the older build writes 20,000 rows, this one reads them and writes as many, the older one reads both. COMMIT is checked out
 * and built in a folder of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { checkOut } from './lib/compare.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT, run } from './lib/repository.mjs';

const PROGRAM = join(ROOT, 'scripts/lib/upgrade-program.mjs');
const STEP_MS = 300_000;

const commits = process.argv.slice(2);
if (commits.length === 0) {
  console.log('usage: npm run test:upgrade -- COMMIT…');
  process.exit(2);
}
buildOrExit();
const report = new Report();
const scratch = mkdtempSync(join(tmpdir(), 'edubba-upgrade-'));

/** The older build, this one and the older one again on one directory. `end`: how each writer ends, write or kill. */
async function thereAndBack(older, directory, end) {
  const steps = [
    ['the older one writes', older, end, 'older'],
    ['this one reads it', ROOT, 'read', 'older'],
    ['this one writes', ROOT, end, 'newer'],
    ['the older one reads what is newer', older, 'read', 'newer'],
    ['the older one reads what is its own', older, 'read', 'older'],
    ['this one reads it again', ROOT, 'read', 'newer'],
  ];
  for (const [name, build, what, tag] of steps) {
    const { status, err } = await capture(process.execPath, [PROGRAM, build, directory, what, tag], { timeoutMs: STEP_MS });
    // a killed process has no status, which stands for 1 here, and says nothing
    const isGood = what === 'kill' ? status === 1 && err === '' : status === 0;
    report.check(isGood, `${end === 'kill' ? 'killed' : 'closed'}: ${name}`, isGood ? '' : err.slice(-2000));
    if (!isGood) return;
  }
  const { status, out } = await capture(process.execPath, [join(ROOT, 'bin/edubba'), '--dir', directory, 'inspect', 'check']);
  report.check(status === 0, `${end === 'kill' ? 'killed' : 'closed'}: nothing is damaged`, status === 0 ? '' : out.slice(-2000));
}

for (const [i, commit] of commits.entries()) {
  const folder = join(scratch, String(i));
  await report.section(commit, async () => {
    const older = checkOut(commit, folder);
    try {
      for (const end of ['write', 'kill']) await thereAndBack(older, join(folder, `data-${end}`), end);
    } finally {
      run('git', ['worktree', 'remove', '--force', older]);
    }
  });
}
rmSync(scratch, { recursive: true, force: true });
report.close();
