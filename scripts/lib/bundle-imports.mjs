/**
 * Checks what modules of the bundle take from others that they import when they run: esbuild gives a CommonJS package
 * its default export alone there, while Node gives it names as well, so that only the bundle would fail.
 */
import { basename } from 'node:path';

const IMPORT = /const \{([^{}]*)\} = await import\("\.\/([^"]+)"\)/g;

/**
 * Throws if a name is missing.
 *
 * @param {Record<string, { exports: string[] }>} outputs What esbuild tells of the files, by path.
 * @param {readonly string[]} texts Their texts.
 */
export function checkImports(outputs, texts) {
  const exported = new Map(Object.entries(outputs).map(([path, { exports }]) => [basename(path), exports]));
  for (const text of texts) {
    for (const [, names = '', file = ''] of text.matchAll(IMPORT)) {
      for (const name of names.split(',').map((each) => each.split(':', 1)[0]?.trim() ?? '')) {
        if (!exported.get(file)?.includes(name))
          throw new Error(`the bundle's ${file} has no export "${name}": take the default export and its member`);
      }
    }
  }
}
