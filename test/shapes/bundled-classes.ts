/** The classes of the product in the bundle, read from its text. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ProgramClass } from './messages.ts';

const HERE = fileURLToPath(import.meta.url);
export const ROOT = join(HERE, HERE.includes('/dist/test/') ? '../../../..' : '../../..');
export const BUNDLE = join(ROOT, 'dist/bundle');

/** The line that esbuild writes above each module, or a class. */
const MODULE_OR_CLASS = /^\/\/ (?:src\/(\w+)\/)?.*$|^(?:var (\w+) = )?(class(?: (?!extends\b)_?(\w+))?[\s\S]*?^\})/gm;

/** The classes of the rooms whose private fields are plain properties in the bundle. */
export async function hotClasses(): Promise<ProgramClass[]> {
  const { HOT_ROOMS } = (await import(pathToFileURL(join(ROOT, 'scripts/lib/plain-names.mjs')).href)) as {
    readonly HOT_ROOMS: ReadonlySet<string>;
  };
  const classes: ProgramClass[] = [];
  for (const file of (await readdir(BUNDLE)).filter((name) => name.endsWith('.js'))) {
    let isHot = false;
    const text = await readFile(join(BUNDLE, file), 'utf8');
    for (const [line, room, boundName, classText, className] of text.matchAll(MODULE_OR_CLASS)) {
      if (line.startsWith('//')) isHot = room !== undefined && HOT_ROOMS.has(room);
      else if (isHot) classes.push({ name: (className ?? boundName)!, text: classText! });
    }
  }
  return classes;
}
