/**
 * Makes the private names of hot classes plain property names in the bundle: `#x` becomes `$x`. V8 stores a private
 * field by a slower path than a property, and calls its runtime for each one where a class was seen in many shapes.
 * Figures: docs/decisions/0041-plain-names.md.
 *
 * The two spellings have the same length, so source maps stay true. Only rooms whose objects no user holds take part:
 * what a user prints, copies or compares shows no `$x` (test/package). The build fails where a plain name would meet
 * another one: a name of that spelling, or the private name of a superclass.
 */
import { createRequire } from 'node:module';

/** Loaded when it is used: in a fresh clone the build installs it first. */
const acorn = () => createRequire(new URL('../bundle/package.json', import.meta.url))('acorn');

/**
 * The rooms below src/ whose classes take part. test/shapes judges the same classes.
 *
 * @type {Set<string | undefined>}
 */
export const HOT_ROOMS = new Set([
  'commitlog',
  'env',
  'filter',
  'grpc',
  'locator',
  'memtable',
  'platform',
  'protobuf',
  'sstable',
  'tablet',
  'tabletserver',
  'wire',
]);

/** What esbuild writes above each module. */
const MODULE = /^ (?:src\/([^/]+)\/\S+|\S+\.\w+)$/;

/**
 * Packages with names that begin with "$", for objects of their own: none of ours is handed to them. What they do does
 * not count.
 */
const APART = /^ (?:\S+\/)?node_modules\/@(?:aws|aws-sdk|smithy)\//;

/**
 * A node of acorn's tree: its fields depend on its type; `boundName`, `isHot` and `names` are ours.
 *
 * @typedef {Record<string, any>} TreeNode
 */

/**
 * Every node below `node`, with the classes around it, innermost last.
 *
 * @param {TreeNode} node
 * @param {TreeNode[]} [around]
 * @returns {Generator<{ node: TreeNode, around: TreeNode[] }>}
 */
function* nodesOf(node, around = []) {
  yield { node, around };
  const inside = isClass(node) ? [...around, node] : around;
  for (const [name, part] of Object.entries(node)) {
    // what a class extends is outside of it
    const where = name === 'superClass' ? around : inside;
    for (const child of Array.isArray(part) ? part : [part])
      if (typeof child?.type === 'string') yield* nodesOf(child, where);
  }
}

/** @param {TreeNode} node */
const isClass = ({ type }) => type === 'ClassDeclaration' || type === 'ClassExpression';

/**
 * The private names that a class declares.
 *
 * @param {TreeNode} node
 * @returns {Set<string>}
 */
const privateNames = ({ body }) =>
  new Set(
    body.body.flatMap((/** @type {TreeNode} */ { key }) => (key?.type === 'PrivateIdentifier' ? [key.name] : [])),
  );

/** @param {string} text */
function parsed(text) {
  /** @type {{ start: number, room: string | undefined, isApart: boolean }[]} */
  const modules = [];
  const tree = acorn().parse(text, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    /** @type {(isBlock: boolean, comment: string, start: number) => void} */
    onComment(_isBlock, comment, start) {
      const found = MODULE.exec(comment);
      if (found !== null && (start === 0 || text[start - 1] === '\n'))
        modules.push({ start, room: found[1], isApart: APART.test(comment) });
    },
  });
  /** @param {TreeNode} node */
  const moduleOf = (node) => modules.findLast(({ start }) => start < node.start);
  /** @param {TreeNode} node */
  const isHot = (node) => HOT_ROOMS.has(moduleOf(node)?.room);
  /** @param {TreeNode} node */
  const isApart = (node) => moduleOf(node)?.isApart === true;
  return { nodes: [...nodesOf(tree)], isHot, isApart };
}

/** @typedef {{ name: string, parent: string | undefined, names: Set<string> }} PrivateNames */

/**
 * Fails where two classes of which one extends the other have the same plain name.
 *
 * @param {PrivateNames[]} classes
 */
function checkInheritance(classes) {
  /** @type {Map<string, PrivateNames[]>} */
  const byName = new Map();
  for (const it of classes) byName.set(it.name, [...(byName.get(it.name) ?? []), it]);
  for (const { name, parent, names } of classes) {
    for (let above = parent; above !== undefined; ) {
      const found = byName.get(above) ?? [];
      for (const it of found)
        for (const shared of names)
          if (it.names.has(shared)) throw new Error(`${name} and ${above}, which it extends, both have #${shared}`);
      above = found[0]?.parent;
    }
  }
}

/**
 * `texts`: all files of a bundle. Returns them, in the same order, with plain names.
 *
 * @param {readonly string[]} texts
 */
export function plainNames(texts) {
  const files = texts.map(parsed);
  /** @type {PrivateNames[]} */
  const classes = [];
  /** @type {Set<string>} */
  const taken = new Set();
  for (const { nodes, isHot, isApart } of files) {
    for (const { node } of nodes) {
      if (node.type === 'Identifier' && node.name.startsWith('$') && !isApart(node)) taken.add(node.name.slice(1));
      if (node.type === 'VariableDeclarator' && node.init && isClass(node.init)) node.init.boundName = node.id.name;
    }
    for (const { node } of nodes) {
      if (!isClass(node)) continue;
      node.isHot = isHot(node);
      node.names = privateNames(node);
      if (node.isHot)
        classes.push({ name: node.boundName ?? node.id?.name, parent: node.superClass?.name, names: node.names });
    }
  }
  for (const { name, names } of classes)
    for (const own of names) if (taken.has(own)) throw new Error(`${name} has #${own}, and there is another $${own}`);
  checkInheritance(classes);
  return files.map(({ nodes }, i) => {
    const text = Buffer.from(texts[i], 'utf16le');
    for (const { node, around } of nodes) {
      if (node.type === 'BinaryExpression' && node.left.type === 'PrivateIdentifier')
        throw new Error(`"#${node.left.name} in" has no plain form`);
      if (node.type !== 'PrivateIdentifier') continue;
      const owner = /** @type {TreeNode} */ (around.findLast(({ names }) => names.has(node.name)));
      if (owner.isHot) text.writeUInt16LE('$'.charCodeAt(0), 2 * node.start);
    }
    return text.toString('utf16le');
  });
}
