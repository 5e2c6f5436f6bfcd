/**
 * npm run test:package: the package as users get it, on several versions of Node. It is packed, installed from the
 * registry's packages into an empty project, and README's program runs there twice: as ES module, CommonJS, strict
 * TypeScript, and bundled (test/package). Needs the registry: Node itself comes from there too.
 *
 *   npm run test:package                         on the oldest and the newest of each line that is supported
 *   npm run test:package -- --nodes=22.12.0,24   on these alone
 */
import { buildOrExit } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { capture, closingLine, filesUnder } from './lib/repository.mjs';
import { nodeProgram } from './lib/tools.mjs';

helpIfAsked(import.meta.url);

const NODES = '20.19.0,20,22.12.0,22,24';
const MAX_MS = 900_000;

buildOrExit();
const words = process.argv.slice(2);
const nodes = (words.find((word) => word.startsWith('--nodes='))?.slice('--nodes='.length) ?? NODES).split(',');
const files = filesUnder('dist/test/package', (name) => name.endsWith('.test.js'));
const tally = { passed: 0, failed: 0, skipped: 0 };
for (const version of nodes) {
  const node = await nodeProgram(version);
  const { out: running } = await capture(node, ['--version']);
  console.log(`\nNode ${running.trim()}`);
  const { status, out, err } = await capture(node, ['--test', '--test-reporter=tap', ...files], {
    timeoutMs: MAX_MS,
    env: { ...process.env, EDUBBA_PACKAGE_REGISTRY: '1' },
  });
  /** @param {string} what */
  const count = (what) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(out)?.[1] ?? 0);
  const [passed, failed, skipped] = [count('pass'), count('fail') + count('cancelled'), count('skipped')];
  console.log(closingLine({ passed, failed, skipped }).replace(/^/, '  '));
  if (status !== 0) console.log(`${out}${err}`.replace(/^/gm, '  '));
  tally.passed += passed;
  tally.failed += failed || (status === 0 && passed > 0 ? 0 : 1);
  tally.skipped += skipped;
}
console.log(`\n${closingLine(tally)}`);
process.exitCode = tally.failed > 0 ? 1 : 0;
