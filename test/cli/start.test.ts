/** `npm start` is `edubba serve`: the same entry with the same settings of V8, and the arguments of the caller win. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { userEnvironment } from './user-environment.ts';

const ROOT = fileURLToPath(new URL(import.meta.url.includes('/dist/test/') ? '../../../' : '../../', import.meta.url));
/** Prints at the process's end whether its V8 has the settings of bin/edubba: --expose-gc shows in new contexts. */
const PROBE = `data:text/javascript,import vm from 'node:vm'; process.on('exit', () => console.log('gc is', vm.runInNewContext('typeof gc')));`;

for (const [name, script, words] of [
  ['npm start', 'scripts/start.mjs', []],
  ['bin/edubba', 'bin/edubba', ['serve']],
] as const) {
  test(`${name} serves with the settings of V8 that the engine was tuned with`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-start-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const child = spawn(
      process.execPath,
      ['--import', PROBE, join(ROOT, script), ...words, '--dir', directory, '--address', '127.0.0.1:0'],
      { stdio: ['ignore', 'pipe', 'pipe'], env: userEnvironment() },
    );
    t.after(() => child.kill('SIGKILL'));
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (!out.includes('listening on') && (out + text).includes('listening on')) child.kill('SIGTERM');
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    const [status] = await once(child, 'close');
    assert.equal(status, 0, err);
    assert.match(out, new RegExp(`data in ${directory}`));
    assert.match(out, /gc is function/);
  });
}

test('what npm start and npm test begin with needs no package: it installs them', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-clone-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  await cp(join(ROOT, 'scripts'), join(directory, 'scripts'), { recursive: true });
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
  for (const module of ['build', 'test-report', 'command-line', 'repository']) {
    const url = pathToFileURL(join(directory, `scripts/lib/${module}.mjs`)).href;
    const child = spawn(process.execPath, ['--input-type=module', '-e', `await import(${JSON.stringify(url)})`], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: userEnvironment(),
    });
    let err = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    const [status] = await once(child, 'close');
    assert.equal(status, 0, `${module}: ${err}`);
  }
});
