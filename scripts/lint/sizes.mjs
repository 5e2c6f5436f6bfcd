/**
 * How long the files and functions of src/ are, how wide comments are everywhere, and how many casts the product has.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesUnder, ROOT } from '../lib/repository.mjs';
import { lineOf, productTrees } from './sources.mjs';

export const MAX_COLUMNS = 120;

/**
 * Lines of a node that are not empty.
 *
 * @param {ts.Node} node
 */
const linesOf = (node) =>
  node
    .getText()
    .split('\n')
    .filter((line) => line.trim() !== '').length;

/** The product's longest file and longest function: { path, lines } and { path, line, name, lines }. */
export function longest() {
  let file = { path: '', lines: 0 };
  let fn = { path: '', line: 0, name: '', lines: 0 };
  for (const { path, tree } of productTrees()) {
    const lines = tree.text.split('\n').length - 1;
    if (lines > file.lines) file = { path, lines };
    /** @param {ts.Node} node */
    const visit = (node) => {
      if (ts.isFunctionLike(node) && 'body' in node && node.body) {
        const count = linesOf(node);
        if (count > fn.lines)
          fn = {
            path,
            line: lineOf(node),
            name: node.name?.getText() ?? (ts.isConstructorDeclaration(node) ? 'constructor' : 'a function'),
            lines: count,
          };
      }
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  return { file, fn };
}

/** Casts by path: `value as Type`. `as const` is none. */
export function casts() {
  /** @type {Map<string, number>} */
  const byPath = new Map();
  for (const { path, tree } of productTrees()) {
    let count = 0;
    /** @param {ts.Node} node */
    const visit = (node) => {
      if (ts.isTypeAssertionExpression(node) || (ts.isAsExpression(node) && node.type.getText() !== 'const')) count++;
      ts.forEachChild(node, visit);
    };
    visit(tree);
    if (count > 0) byPath.set(path, count);
  }
  return byPath;
}

const FOLDERS = ['src', 'scripts', 'bench', 'test', 'examples'];
const COMMENT = /^\s*(\/\*|\*|\/\/)/;

/** `path:line` of comment lines wider than MAX_COLUMNS that have a space to break at. The formatter keeps code. */
export function wideComments() {
  const wide = [];
  for (const folder of FOLDERS) {
    for (const path of filesUnder(folder, (name) => /\.(ts|mjs)$/.test(name))) {
      if (path.includes('/generated/')) continue;
      for (const [i, line] of readFileSync(join(ROOT, path), 'utf8').split('\n').entries())
        if (line.length > MAX_COLUMNS && COMMENT.test(line)) wide.push(`${path}:${i + 1}`);
    }
  }
  return wide;
}
