/** Builds of the program that differ from this checkout's in some texts, as a later release would. */
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './repository.mjs';

/**
 * Copies the bundle into an empty folder, with changes: each text stands in it once. Returns the path of the program.
 *
 * @param {string} folder
 * @param {readonly (readonly [text: string, other: string])[]} changes
 */
export function otherBuild(folder, changes) {
  const bundle = join(folder, 'dist', 'bundle');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  cpSync(join(ROOT, 'dist', 'bundle'), bundle, { recursive: true, filter: (path) => !/\.map$|\/cache$/.test(path) });
  for (const name of ['package.json', join('bin', 'edubba')]) copyFileSync(join(ROOT, name), join(folder, name));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const paths = readdirSync(bundle)
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(bundle, name));
  for (const [text, other] of changes) {
    const holders = paths.filter((path) => readFileSync(path, 'utf8').includes(text));
    const [path] = holders;
    const parts = path === undefined ? [] : readFileSync(path, 'utf8').split(text);
    if (path === undefined || holders.length > 1 || parts.length !== 2)
      throw new Error(`the bundle does not hold this text once: ${text}`);
    writeFileSync(path, parts.join(other));
  }
  return join(folder, 'bin', 'edubba');
}
