/**
 * Mutable state at module level: shared by all databases and servers of a process, and found rather than passed. It
 * belongs to a connection, an API object or a cursor. Only the machine (src/platform), the pools (src/base/pools.ts)
 * and the listeners of signals, which belong to no database (src/base/abort-listeners.ts), have their own.
 *
 * It finds a variable at the top of a module that a function changes: by assignment to it or to a part of it, by a
 * method such as `set` or `push`, or by any method where it is an instance of a class of ours whose fields change. A
 * static field that is not readonly and an uninitialised buffer count too. What is built while the module loads passes,
 * and so do pools.
 */
import ts from 'typescript';
import { lineOf, productTrees } from './sources.mjs';

/** Where it is allowed. */
const OWNERS = /^src\/(platform\/|base\/(pools|abort-listeners)\.ts$)/;

const MUTATOR =
  /^(add|clear|copyWithin|delete|fill|pop|push|reverse|set|shift|sort|splice|unshift|write|set(Big)?(Ui|I)nt\d+|setFloat\d+|(write|utf8|latin1|ascii|hex)[A-Z]\w*)$/;

/**
 * The variable that `node` is, or is a part of: `table` for `table.rows[1]`.
 *
 * @param {ts.Node} node
 */
function rootOf(node) {
  let at = node;
  while (ts.isPropertyAccessExpression(at) || ts.isElementAccessExpression(at) || ts.isNonNullExpression(at))
    at = at.expression;
  return ts.isIdentifier(at) ? at : undefined;
}

/**
 * What `node` changes, when it is an assignment, `++`, `delete` or a call of a mutating method.
 *
 * @param {ts.Node} node
 */
function changedBy(node) {
  if (ts.isBinaryExpression(node)) {
    const kind = node.operatorToken.kind;
    const assigns = kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
    return assigns ? rootOf(node.left) : undefined;
  }
  if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
    const { operator, operand } = node;
    const steps = operator === ts.SyntaxKind.PlusPlusToken || operator === ts.SyntaxKind.MinusMinusToken;
    return steps ? rootOf(operand) : undefined;
  }
  if (ts.isDeleteExpression(node)) return rootOf(node.expression);
  if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression))
    return MUTATOR.test(node.expression.name.text) ? rootOf(node.expression) : undefined;
  return undefined;
}

/**
 * @param {ts.BindingName} binding
 * @param {Set<string>} names
 */
function namesIn(binding, names) {
  if (ts.isIdentifier(binding)) names.add(binding.text);
  else for (const element of binding.elements) if (ts.isBindingElement(element)) namesIn(element.name, names);
}

/**
 * Names that a function declares: its parameters and all variables of its body, inner functions apart.
 *
 * @param {ts.Node} fn
 */
function localsOf(fn) {
  /** @type {Set<string>} */
  const names = new Set();
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isVariableDeclaration(node) || ts.isParameter(node)) namesIn(node.name, names);
    if (node === fn || !ts.isFunctionLike(node)) ts.forEachChild(node, visit);
  };
  visit(fn);
  return names;
}

/** @typedef {ReturnType<typeof productTrees>[number]} Module */

/**
 * Names of our classes whose instances change: they have a field that is not readonly.
 *
 * @param {Module[]} trees
 */
function changingClasses(trees) {
  /** @type {Set<string>} */
  const names = new Set();
  /** @param {ts.ClassElement} member */
  const isChanging = (member) =>
    ts.isPropertyDeclaration(member) &&
    !has(member, ts.SyntaxKind.ReadonlyKeyword) &&
    !has(member, ts.SyntaxKind.StaticKeyword);
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isClassDeclaration(node) && node.name && node.members.some(isChanging)) names.add(node.name.text);
    ts.forEachChild(node, visit);
  };
  for (const { tree } of trees) visit(tree);
  return names;
}

/** @param {ts.Expression | undefined} value */
const isUninitialised = (value) => value !== undefined && /^Buffer\.allocUnsafe/.test(value.getText());

/** @type {(node: ts.Node, kind: ts.SyntaxKind) => boolean} */
const has = (node, kind) =>
  ts.canHaveModifiers(node) && node.modifiers?.some((modifier) => modifier.kind === kind) === true;

/**
 * @param {Module} module
 * @param {Set<string>} changing
 */
function stateOf({ path, tree }, changing) {
  /** @type {Map<string, { key: string, text: string }>} */
  const found = new Map();
  /** @type {(node: ts.Node, name: string, what: string) => void} */
  const add = (node, name, what) => {
    if (!found.has(name)) found.set(name, { key: `${path}: ${name}`, text: `${path}:${lineOf(node)}: ${what}` });
  };
  /** @type {Set<string>} */
  const variables = new Set();
  /** @type {Set<string>} */
  const instances = new Set();
  for (const statement of tree.statements) {
    if (ts.isVariableStatement(statement) && !has(statement, ts.SyntaxKind.DeclareKeyword)) {
      for (const { name, initializer } of statement.declarationList.declarations) {
        const text = name.getText();
        if (isUninitialised(initializer)) add(name, text, `\`${text}\`, a buffer to be written`);
        namesIn(name, variables);
        if (initializer && ts.isNewExpression(initializer) && changing.has(initializer.expression.getText()))
          instances.add(text);
      }
    }
    if (ts.isClassDeclaration(statement) && statement.name) variables.add(statement.name.text);
  }
  /** @type {(node: ts.Node, scopes: Set<string>[]) => void} */
  const visit = (node, scopes) => {
    const inner = ts.isFunctionLike(node) ? [...scopes, localsOf(node)] : scopes;
    /** @param {string} name */
    const isOfModule = (name) => inner.length > 0 && !inner.some((names) => names.has(name));
    if (ts.isPropertyDeclaration(node) && has(node, ts.SyntaxKind.StaticKeyword)) {
      const text = node.name.getText();
      if (!has(node, ts.SyntaxKind.ReadonlyKeyword)) add(node, text, `\`static ${text}\`, not readonly`);
    }
    const root = changedBy(node)?.text;
    if (root && variables.has(root) && isOfModule(root)) add(node, root, `\`${root}\` is changed here`);
    if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression)) {
      const { text } = node.expression;
      if (instances.has(text) && isOfModule(text)) add(node, text, `\`${text}\`, an object that changes`);
    }
    ts.forEachChild(node, (child) => visit(child, inner));
  };
  visit(tree, []);
  return [...found.values()];
}

/** A line for each piece of state outside its owners. */
export function moduleState() {
  const changing = changingClasses(productTrees());
  changing.delete('Pool');
  return productTrees()
    .filter(({ path }) => !OWNERS.test(path))
    .flatMap((one) => stateOf(one, changing))
    .map(({ text }) => text);
}
