/**
 * Module hooks that compile changed sources: each module of dist/src whose source in src/ is to be changed is made of
 * the changed text. Throws where a text does not stand in its source exactly once.
 */
import { readFileSync } from 'node:fs';
import { transformSync } from 'esbuild';

let root = '';
let changes = [];

export function initialize(planted) {
  ({ root, changes } = planted);
}

export async function load(url, context, nextLoad) {
  const file = url.split('/dist/src/')[1]?.replace(/\.js$/, '.ts');
  const own = changes.filter((change) => change.file === file);
  if (own.length === 0) return nextLoad(url, context);
  let source = readFileSync(`${root}/src/${file}`, 'utf8');
  for (const { text, wrong } of own) {
    if (source.split(text).length !== 2) throw new Error(`src/${file} does not hold this text once: ${text}`);
    source = source.replace(text, () => wrong);
  }
  // the imports of what was compiled end in .js
  const imports = source.replace(/(from ')(\.[^']*)\.ts(';)/g, '$1$2.js$3');
  const { code } = transformSync(imports, { loader: 'ts', format: 'esm', target: 'es2022', sourcefile: file });
  return { format: 'module', source: code, shortCircuit: true };
}
