/**
 * The package of `npm pack`, in a user's project: it loads as ES module and by require, its types hold, and it is
 * whole.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { copyPackage, FROM_REGISTRY, link, ROOT, UserProject } from './project.ts';
import { asCommonJs, readmeProgram } from './readme-program.ts';

interface PackageJson {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly [field: string]: unknown;
}

const readManifest = async (folder: string): Promise<PackageJson> =>
  JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8')) as PackageJson;

/** They make the bundle and are no part of it. */
const BUILD_TOOLS = ['acorn', 'esbuild'];

describe('the package', () => {
  let project: UserProject;
  before(async () => {
    project = await UserProject.make();
  });
  after(() => project.remove());

  test('holds code, types, command, licences and changelog, and neither tests nor sources a second time', () => {
    const { files } = project;
    for (const path of [
      'dist/bundle/index.js',
      'dist/bundle/server.js',
      'dist/bundle/edubba.js',
      'dist/bundle/thread-main.js',
      'dist/bundle/THIRD-PARTY.txt',
      'dist/types/embedded/index.d.ts',
      'bin/edubba',
      'CHANGELOG.md',
      'LICENSE',
    ]) {
      assert.ok(files.includes(path), `${path} is missing`);
    }
    const unwanted = files.filter(
      (path) =>
        /\.test\.|fixtures|^dist\/(src|test|examples|bench)|^dist\/bundle\/cache|^scripts/.test(path) ||
        (path.startsWith('dist/types/') && !path.endsWith('.d.ts')),
    );
    assert.deepEqual(unwanted, []);
  });

  test('says what it is, where it comes from, and for which Node', async () => {
    const manifest = await readManifest('.');
    for (const field of [
      'description',
      'keywords',
      'homepage',
      'repository',
      'bugs',
      'license',
      'author',
      'engines',
      'bin',
      'main',
      'types',
      'exports',
      'files',
      'publishConfig',
    ]) {
      assert.ok(manifest[field], `package.json has no ${field}`);
    }
    assert.equal(manifest.engines.node, '^20.19.0 || >=22.12.0');
  });

  test('each source is in it once, and source maps hold the sources that they name', async () => {
    const maps = project.files.filter((path) => path.endsWith('.js.map'));
    assert.ok(maps.length > 0);
    const placeOf = new Map<string, string>();
    for (const path of maps) {
      const { sources, sourcesContent } = JSON.parse(await readFile(join(ROOT, path), 'utf8')) as {
        sources: string[];
        sourcesContent?: (string | null)[];
      };
      assert.equal(sourcesContent?.filter((text) => text !== null).length ?? 0, sources.length, path);
      for (const source of sources) {
        assert.equal(placeOf.get(source), undefined, `${source} is in ${path} too`);
        placeOf.set(source, path);
      }
    }
    assert.ok([...placeOf.keys()].some((source) => source.endsWith('src/embedded/database.ts')));
  });

  test('nothing in it is resolved while a bundler runs that only a run from the sources needs', async () => {
    for (const path of project.files.filter((file) => file.endsWith('.js'))) {
      // webpack follows both, and fails where the first leads nowhere
      assert.doesNotMatch(
        await readFile(join(ROOT, path), 'utf8'),
        /import\.meta\.resolve|import \{[^}]*createRequire/,
        path,
      );
    }
  });

  test('what is part of the bundle is named with its licence and not installed next to it', async () => {
    const text = await readFile(join(ROOT, 'dist/bundle/THIRD-PARTY.txt'), 'utf8');
    const inside = Object.keys((await readManifest('scripts/bundle')).dependencies ?? {}).filter(
      (name) => !BUILD_TOOLS.includes(name),
    );
    assert.ok(inside.length > 0);
    for (const name of inside) assert.match(text, new RegExp(`^${name} \\d`, 'm'));
    const installed = Object.keys((await readManifest('.')).dependencies ?? {});
    assert.deepEqual(
      installed.filter((name) => inside.includes(name) || text.includes(`\n${name} `)),
      [],
    );
  });

  async function runTwice(path: string): Promise<void> {
    const folder = join(project.folder, `data-of-${path}`);
    await mkdir(folder);
    for (let time = 1; time <= 2; time++) {
      const { stdout, stderr } = await project.node(path, folder);
      assert.equal(stderr, '');
      assert.match(stdout, /^com\.cnn\.www .*CNN\n.*compacted\n$/s);
    }
  }

  test("README's program runs twice as an ES module", async () => {
    await project.write('program.mjs', await readmeProgram());
    await runTwice('program.mjs');
  });

  test('and in CommonJS', async () => {
    await project.write('program.cjs', asCommonJs(await readmeProgram()));
    await runTwice('program.cjs');
  });

  test('the server door and package.json can be loaded', async () => {
    await project.write(
      'server.mjs',
      `import * as server from 'edubba/server';\nimport { readFileSync } from 'node:fs';\nconsole.log(typeof server.startServer, JSON.parse(readFileSync(new URL(import.meta.resolve('edubba/package.json')))).name);`,
    );
    assert.equal((await project.node('server.mjs')).stdout, 'function edubba\n');
  });

  test('its types hold in strict TypeScript, in every way that a compiler finds them', async () => {
    const program = await readmeProgram();
    const server = `import { startServer } from 'edubba/server';\nvoid startServer;\n`;
    await project.write('types.mts', `${program}${server}`);
    // no `await` outside functions there
    const inFunction = `${program}${server}`
      .replace(/^(import [^;]*;)$/gm, '')
      .replace(
        /^/,
        `import { open, RowMutation } from 'edubba';\n${server}\nexport async function main(): Promise<void> {\n`,
      );
    await project.write('types.cts', `${inFunction}\n}\n`);
    await project.write('types.ts', `${inFunction}\n}\n`);
    const ways: [string, string[]][] = [
      ['typescript-native', ['--module', 'nodenext', 'types.mts', 'types.cts']],
      ['typescript', ['--module', 'commonjs', '--moduleResolution', 'node10', 'types.ts']],
    ];
    if (FROM_REGISTRY) {
      await project.install(['typescript-5.7@npm:typescript@5.7', 'typescript-5.8@npm:typescript@5.8']);
      ways.push(
        ['typescript-5.7', ['--module', 'nodenext', 'types.mts']],
        ['typescript-5.7', ['--module', 'commonjs', '--moduleResolution', 'node10', 'types.ts']],
        ['typescript-5.7', ['--module', 'esnext', '--moduleResolution', 'bundler', 'types.ts']],
        ['typescript-5.8', ['--module', 'nodenext', 'types.mts', 'types.cts']],
      );
    }
    for (const [compiler, words] of ways)
      assert.equal(await project.typeErrors(compiler, words), '', `${compiler} ${words.join(' ')}`);
  });

  test('a misspelt option is an error of types', async () => {
    await project.write(
      'misspelt.mts',
      `import { open } from 'edubba';\nconst database = await open(':memory:');\nvoid database.createTable('t', { famillies: {} });\n`,
    );
    assert.match(await project.typeErrors('typescript-native', ['--module', 'nodenext', 'misspelt.mts']), /famillies/);
  });
});

describe('without the binary of file locks', () => {
  test('a database in memory works, and a directory is refused in words', async (t) => {
    const project = await UserProject.make();
    t.after(() => project.remove());
    await project.without('fs-native-extensions');
    await copyPackage('fs-native-extensions', project.folder, 'prebuilds');
    for (const name of ['require-addon', 'which-runtime']) await link(name, project.folder);
    await project.write(
      'locks.mjs',
      `import { open } from 'edubba';\nawait (await open(':memory:')).close();\nawait open('./data').catch(({ code, message }) => console.log(code, message));`,
    );
    const { stdout } = await project.node('locks.mjs');
    assert.match(stdout, /^12 .*LOCK: no file locks on \S+ \S+.*fs-native-extensions.*':memory:' works here\n$/);
  });
});
