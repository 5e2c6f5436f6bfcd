import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { BigtableError, Code } from '../../base/index.ts';
import { moduleUrl, requirePackage, threadModule } from './packages.ts';

describe('packages', () => {
  let folder: string;
  const write = async (path: string, text: string): Promise<string> => {
    const full = join(folder, path);
    await mkdir(dirname(full), { recursive: true });
    await writeFile(full, text);
    return full;
  };
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edubba-packages-'));
    await write('app/node_modules/a-native/index.js', 'module.exports = { loaded: true };');
    await write('app/node_modules/broken/index.js', 'throw new Error("no binary");');
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test('moduleUrl follows the importer into the compiled tree', () => {
    assert.equal(moduleUrl('../b/task.ts', 'file:///src/a/main.ts').href, 'file:///src/b/task.ts');
    assert.equal(moduleUrl('../b/task.ts', 'file:///dist/src/a/main.js').href, 'file:///dist/src/b/task.js');
    assert.throws(() => moduleUrl('../b/task.js', 'file:///src/a/main.ts'), /not a module of the sources/);
  });

  test('a package is searched from each origin in turn, be it a path or a URL', () => {
    const app = join(folder, 'app/main.js');
    const elsewhere = join(folder, 'elsewhere/bundle.js');
    for (const origins of [[app], [pathToFileURL(app).href], [elsewhere, app], ['webpack://not-a-file', app]]) {
      assert.deepEqual(requirePackage('a-native', origins), { loaded: true });
    }
  });

  test('a missing package is a failed precondition with a hint for the bundler', () => {
    assert.throws(
      () => requirePackage('a-native', [join(folder, 'elsewhere/bundle.js')]),
      (error) =>
        error instanceof BigtableError &&
        error.code === Code.FAILED_PRECONDITION &&
        /a-native was not found.*--external:edubba/.test(error.message),
    );
  });

  test('where nothing was bundled no package is taken from the working directory', (t) => {
    const before = process.cwd();
    t.after(() => process.chdir(before));
    process.chdir(join(folder, 'app'));
    assert.throws(() => requirePackage('a-native'), /a-native was not found/);
  });

  test('an error that a package throws while it loads is passed on', () => {
    assert.throws(() => requirePackage('broken', [join(folder, 'app/main.js')]), /no binary/);
  });

  test('the code of a thread lies next to its importer, or in the installed package of the same version, or is missing', async () => {
    const sibling = await write('built/task.js', '');
    assert.equal(
      threadModule('./task.ts', pathToFileURL(join(folder, 'built/main.js')).href)?.href,
      pathToFileURL(sibling).href,
    );

    const bundle = pathToFileURL(join(folder, 'bundled/out.js')).href;
    const installed = join(folder, 'app/main.js');
    assert.equal(threadModule('./task.ts', bundle, [installed]), undefined);
    const shipped = await write('app/node_modules/edubba/dist/bundle/task.js', '');
    await write('app/node_modules/edubba/package.json', '{ "version": "1.2.3" }');
    for (const importer of [bundle, undefined, 'webpack://x/out.js']) {
      assert.equal(threadModule('./task.ts', importer, [installed], '1.2.3')?.href, pathToFileURL(shipped).href);
      assert.equal(
        threadModule('./task.ts', importer, [installed], '1.2.4'),
        undefined,
        'the code of another version is not run',
      );
      assert.equal(threadModule('./other.ts', importer, [installed], '1.2.3'), undefined);
    }
  });
});
