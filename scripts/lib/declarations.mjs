/**
 * dist/types, made from the declarations that the compiler put into dist/src: those that the library's two doors lead
 * to, and no others. They name nothing but each other and Node's own modules, so they hold wherever the package is
 * installed.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './repository.mjs';

const DOORS = ['embedded/index.ts', 'server/index.ts'];
const SPECIFIER = /((?:from|import\() ?')([^']+)(')/g;

export function declarations() {
  rmSync(join(ROOT, 'dist/types'), { recursive: true, force: true });
  // grows while it is walked
  const paths = new Set(DOORS);
  for (const path of paths) {
    const declared = path.replace(/\.ts$/, '.d.ts');
    const text = readFileSync(join(ROOT, 'dist/src', declared), 'utf8').replaceAll(
      SPECIFIER,
      (whole, before, specifier, after) => {
        if (specifier.startsWith('node:')) return whole;
        if (!specifier.startsWith('.'))
          throw new Error(`src/${path}: the library's types lead to ${specifier}, which is not installed with it`);
        paths.add(join(dirname(path), specifier));
        return `${before}${specifier.replace(/\.ts$/, '.js')}${after}`;
      },
    );
    const target = join(ROOT, 'dist/types', declared);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}
