/** What `npm pack` ships, in a project of a user's: it loads as ES module, by require, and in TypeScript, and holds all that it runs. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL(import.meta.url.includes('/dist/test/') ? '../../../' : '../../', import.meta.url));

const PROGRAM = `
  const database = await open(process.argv[2]);
  const table = (await database.hasTable('t')) ? database.table('t') : await database.createTable('t', { families: { f: {} } });
  await table.apply(new RowMutation('r').set('f:q', 'value'));
  await database.flush();
  await database.compact('t', { major: true });
  console.log((await table.get('r')).get('f:q').text);
  await database.close();
`;

interface Manifest {
  readonly files: readonly { readonly path: string }[];
}

describe('the package', () => {
  let project: string;
  let files: readonly string[];

  before(async () => {
    project = await mkdtemp(join(tmpdir(), 'edubba-package-'));
    // the build is there: npm test made it, and `prepack` would only look whether it is
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, shell: process.platform === 'win32' });
    const [{ files: listed }] = JSON.parse(stdout) as [Manifest];
    files = listed.map(({ path }) => path);
    for (const path of files) {
      const target = join(project, 'node_modules/edubba', path);
      await mkdir(dirname(target), { recursive: true });
      await cp(join(ROOT, path), target);
    }
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
    for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
      await mkdir(dirname(join(project, 'node_modules', name)), { recursive: true });
      await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name));
    }
    await writeFile(join(project, 'package.json'), '{ "name": "a-user", "private": true }');
  });

  after(() => rm(project, { recursive: true, force: true }));

  async function runTwice(script: string): Promise<void> {
    const data = join(project, `data-of-${script}`);
    for (let time = 0; time < 2; time++) {
      const { stdout, stderr } = await run(process.execPath, [join(project, script), data], { cwd: project });
      assert.deepEqual({ stdout, stderr }, { stdout: 'value\n', stderr: '' });
    }
  }

  test('holds code, types, command and changelog, and neither tests nor sources a second time', () => {
    for (const path of ['dist/bundle/index.js', 'dist/bundle/server.js', 'dist/bundle/edubba.js', 'dist/bundle/thread-main.js', 'dist/src/embedded/index.d.ts', 'bin/edubba', 'CHANGELOG.md', 'LICENSE']) {
      assert.ok(files.includes(path), `${path} is missing`);
    }
    const unwanted = files.filter((path) => /\.test\.|fixtures|^dist\/test|^dist\/bundle\/cache/.test(path) || (path.startsWith('dist/src/') && !path.endsWith('.d.ts')));
    assert.deepEqual(unwanted, []);
  });

  test('source maps hold the sources that they name', async () => {
    const maps = files.filter((path) => path.endsWith('.js.map'));
    assert.ok(maps.length > 0);
    for (const path of maps) {
      const { sources, sourcesContent } = JSON.parse(await readFile(join(ROOT, path), 'utf8')) as { sources: string[]; sourcesContent?: (string | null)[] };
      assert.equal(sourcesContent?.filter((text) => text !== null).length ?? 0, sources.length, path);
    }
  });

  test('an ES module writes, compacts in a thread, reads, and finds its data again', async () => {
    await writeFile(join(project, 'program.mjs'), `import { open, RowMutation } from 'edubba';\n${PROGRAM}`);
    await runTwice('program.mjs');
  });

  test('so does a CommonJS module', async () => {
    await writeFile(join(project, 'program.cjs'), `const { open, RowMutation } = require('edubba');\n(async () => {${PROGRAM}})();`);
    await runTwice('program.cjs');
  });

  test('the server door and package.json can be loaded', async () => {
    await writeFile(join(project, 'server.mjs'), `import * as server from 'edubba/server';\nimport manifest from 'edubba/package.json' with { type: 'json' };\nconsole.log(typeof server.startServer, manifest.name);`);
    const { stdout } = await run(process.execPath, ['--no-warnings', join(project, 'server.mjs')], { cwd: project });
    assert.equal(stdout, 'function edubba\n');
  });

  test('its types hold in strict TypeScript', async () => {
    await writeFile(join(project, 'program.mts'), `import { open, RowMutation, type Row } from 'edubba';\nconst database = await open(':memory:');\nconst row: Row | undefined = await database.table('t').get('r');\nvoid new RowMutation('r').set('f:q', row?.get('f:q')?.text ?? 'value');\n`);
    const tsc = join(ROOT, 'node_modules/typescript-native/bin/tsc');
    const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--skipLibCheck', 'false'];
    await run(process.execPath, [tsc, ...options, join(project, 'program.mts')], { cwd: project });
  });
});
