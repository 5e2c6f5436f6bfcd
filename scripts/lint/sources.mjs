/** The product's modules as syntax trees: what src/ holds but tests, fixtures and generated code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesUnder, ROOT } from '../lib/repository.mjs';

/** @param {string} name */
const isSource = (name) =>
  name.endsWith('.ts') && !name.endsWith('.d.ts') && !name.endsWith('.test.ts') && !name.endsWith('fixtures.ts');

/** @type {{ path: string, tree: ts.SourceFile }[] | undefined} */
let trees;

/** Rows of { path, tree }, parsed once a process. */
export function productTrees() {
  trees ??= filesUnder('src', isSource)
    .filter((path) => !path.includes('/generated/'))
    .map((path) => ({
      path,
      tree: ts.createSourceFile(path, readFileSync(join(ROOT, path), 'utf8'), ts.ScriptTarget.ESNext, true),
    }));
  return trees;
}

/** @param {ts.Node} node */
export const lineOf = (node) => node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1;
