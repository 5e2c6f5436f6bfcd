/**
 * The tables of docs/COMPATIBILITY.md from what was recorded (test/interop/baselines/api*.txt) and the API's
 * definitions. Without an argument it compares, and ends with status 1 where the page has other tables.
 *
 *   node scripts/compatibility.mjs [--write]
 *   node scripts/compatibility.mjs --emulator    records Google's Go emulator anew; needs Go
 *
 * src/grpc/server/compatibility.test.ts records Edubba, and fails where it does something else.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { withTables } from './lib/compatibility-page.mjs';
import { keepPage } from './lib/generated-page.mjs';
import { ROOT } from './lib/repository.mjs';

const PAGE = 'docs/COMPATIBILITY.md';
const EMULATOR = join(ROOT, 'test/interop/baselines/api-emulator.txt');
/** The emulator answers some calls never. */
const CALL_MS = 10_000;
/** The emulator collects garbage every second and a half at most. */
const MAX_LOOKS = 8;
const LOOK_MS = 500;

async function recordEmulator() {
  const { buildOrExit } = await import('./lib/build.mjs');
  buildOrExit();
  const { emulator } = await import('./lib/tools.mjs');
  const { startEmulator } = await import('./lib/server.mjs');
  const { probeCalls, probeFeatures, probeLimits } = await import('../dist/src/grpc/server/compatibility/fixtures.js');
  const { apiClientOf } = await import('../dist/src/grpc/server/fixtures.js');
  const { ByteBudget, requestContext } = await import('../dist/src/env/index.js');
  const path = await emulator();
  const budget = new ByteBudget(2 ** 30);
  const open = async () => {
    const server = await startEmulator(path);
    const api = apiClientOf({
      address: server.address,
      get context() {
        return requestContext({ budget, deadlineMs: Date.now() + CALL_MS });
      },
    });
    const close = async () => {
      api.close();
      await server.kill('SIGKILL');
    };
    return { api, close };
  };
  let looks = 0;
  const settle = async () => {
    await pause(LOOK_MS);
    return ++looks % MAX_LOOKS > 0;
  };
  const lines = [...(await probeCalls(open)), ...(await probeFeatures(open, settle))];
  const server = await open();
  lines.push(...(await probeLimits(server, { section: 'limit', large: true })));
  await server.close();
  for (const { line, detail } of lines) if (detail !== '') console.log(`${line}: ${detail.split('\n', 1)[0]}`);
  writeFileSync(
    EMULATOR,
    `${lines
      .map(({ line }) => line)
      .sort()
      .join('\n')}\n`,
  );
}

if (process.argv.includes('--emulator')) {
  await recordEmulator();
  process.exit();
}
const page = readFileSync(join(ROOT, PAGE), 'utf8');
keepPage({
  page: PAGE,
  text: withTables(page),
  source: 'test/interop/baselines/api.txt or api-emulator.txt',
  script: 'scripts/compatibility.mjs',
});
