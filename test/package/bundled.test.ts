/** A program that a user's bundler (esbuild) has put into one file, with Edubba inside or left out. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { build } from 'esbuild';
import { lonelyFolder, type Output, ROOT, runNode, UserProject } from './project.ts';
import { asCommonJs, readmeProgram } from './readme-program.ts';

const FORMATS = [
  ['esm', 'mjs'],
  ['cjs', 'cjs'],
] as const;

for (const [format, ending] of FORMATS) {
  describe(`bundled by esbuild into ${format}`, () => {
    let project: UserProject;
    const folders: string[] = [];

    before(async () => {
      project = await UserProject.make();
      const program = await readmeProgram();
      await project.write(`program.${ending}`, format === 'esm' ? program : asCommonJs(program));
    });
    after(() =>
      Promise.all([project.remove(), ...folders.map((folder) => rm(folder, { recursive: true, force: true }))]),
    );

    async function bundle(target: string, external: readonly string[] = []): Promise<string> {
      const outfile = join(target, `bundle.${ending}`);
      // it warns that a CommonJS file has no import.meta
      await build({
        entryPoints: [join(project.folder, `program.${ending}`)],
        outfile,
        bundle: true,
        platform: 'node',
        format,
        external: [...external],
        logLevel: 'silent',
      });
      return outfile;
    }

    async function lonely(packages: readonly string[]): Promise<string> {
      const folder = await lonelyFolder(packages);
      folders.push(folder);
      return folder;
    }

    async function runTwice(path: string, warning: RegExp): Promise<void> {
      for (let time = 1; time <= 2; time++) {
        const { stdout, stderr } = await runNode(path, dirname(path));
        assert.match(stdout, /^com\.cnn\.www .*CNN\n.*compacted\n$/s);
        assert.match(stderr, warning);
      }
    }

    test("README's program runs twice with edubba left out", async () => {
      const target = join(project.folder, 'left-out');
      await mkdir(target);
      await runTwice(await bundle(target, ['edubba']), /^$/);
    });

    test('it runs twice with edubba inside, where edubba is installed: compactions have their threads', async () => {
      const target = join(project.folder, 'inside');
      await mkdir(target);
      await runTwice(await bundle(target), /^$/);
    });

    test('without edubba next to it compactions run on the main thread, and one warning says what to leave out', async () => {
      const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
        readonly dependencies: Record<string, string>;
      };
      const path = await bundle(await lonely(Object.keys(dependencies)));
      await runTwice(
        path,
        /^(?=.*EDUBBA_BUNDLED)(?=.*compactions run on the main thread)(?=.*--external:edubba)(?!.*EDUBBA_BUNDLED.*EDUBBA_BUNDLED)/s,
      );
    });

    test('without any package next to it a directory is refused, and the error says what to leave out', async () => {
      const path = await bundle(await lonely([]));
      await assert.rejects(runNode(path, dirname(path)), (error: Output) => {
        assert.match(error.stderr, /LOCK: the package fs-native-extensions was not found.*--external:edubba/);
        return true;
      });
    });
  });
}
