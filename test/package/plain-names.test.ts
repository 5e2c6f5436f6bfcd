/**
 * The build stores private fields of hot classes as plain properties (docs/decisions/0041-plain-names.md): the objects
 * of the shipped bundle that users hold show none of them, and the step refuses names that meet.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { openDatabase } from '../../src/boot/index.ts';
import type * as embedded from '../../src/embedded/index.ts';
import { startServer } from '../../src/server/index.ts';
import { ROOT } from './project.ts';

const shipped = (path: string): Promise<unknown> => import(pathToFileURL(join(ROOT, path)).href);
const { connect, open, RowMutation } = (await shipped('dist/bundle/index.js')) as typeof embedded;
const { plainNames } = (await shipped('scripts/lib/plain-names.mjs')) as {
  plainNames: (texts: readonly string[]) => readonly string[];
};

/** What of a value is seen by a user who prints, copies or walks it. */
function assertNothingPrivate(what: string, value: object): void {
  const texts = [inspect(value, { depth: 20, showHidden: true }), Object.keys(value).join(' ')];
  for (const show of [() => JSON.stringify(value), () => inspect(structuredClone(value), { depth: 20 })]) {
    try {
      texts.push(show());
    } catch {
      // functions and circles are copied by neither
    }
  }
  for (const text of texts) {
    // the name of a method in a stack is no property
    const withoutStack = text.replaceAll(/^\s*['"]?\s*at .*$/gm, '');
    assert.equal(/.*\$\w.*/.exec(withoutStack)?.[0], undefined, what);
  }
}

async function visit(database: embedded.Database): Promise<void> {
  const table = await database.openTable('t', { families: { f: {} } });
  const mutation = new RowMutation('r').set('f:a', 'x');
  await table.apply(mutation);
  const scan = table.scan();
  const iterator = scan[Symbol.asyncIterator]();
  const seen: Record<string, unknown> = {
    database,
    table,
    mutation,
    row: await table.get('r'),
    scan,
    iterator,
    next: await iterator.next(),
    tablets: await table.tablets(),
    refused: await table.apply(new RowMutation('r').set('g:a', 'x')).catch((error: unknown) => error),
    aborted: await table.get('r', { signal: AbortSignal.abort() }).catch((error: unknown) => error),
  };
  await iterator.return?.();
  for (const [what, value] of Object.entries(seen)) assertNothingPrivate(what, value as object);
}

describe('plain names', () => {
  test('show in no object of the library', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-plain-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    for (const where of [':memory:', directory]) {
      const database = await open(where);
      await visit(database).finally(() => database.close());
    }
  });

  test('show in no object of a client', async () => {
    const { service, env, close } = await openDatabase({ memory: true });
    const server = await startServer({ service, env, address: '127.0.0.1:0' });
    const database = await connect(server.address);
    await visit(database)
      .finally(() => database.close())
      .finally(() => server.close())
      .finally(close);
  });

  const hot = (code: string): string => `// src/tablet/index.ts\n${code}\n`;

  test('are those of hot rooms, of the same length, with methods, accessors and static fields', () => {
    const code = 'var A = class {\n  #x = 1;\n  static #y = 2;\n  get #z() {\n    return this.#x + A.#y;\n  }\n};';
    assert.deepEqual(plainNames([hot(code)]), [hot(code.replaceAll('#', '$'))]);
    const cold = `// src/model/index.ts\n${code}\n`;
    assert.deepEqual(plainNames([cold + hot(code)]), [cold + hot(code.replaceAll('#', '$'))]);
    const packaged = `// node_modules/x/x.js\n${code}\n`;
    assert.deepEqual(plainNames([packaged]), [packaged]);
  });

  test('leave strings, comments and templates alone', () => {
    const codeWith = (own: string): string =>
      `class A {\n  ${own}; // #x\n  y = \`#x\${this.${own}}#x\` + "#x" + /#x/;\n}`;
    assert.deepEqual(plainNames([hot(codeWith('#x'))]), [hot(codeWith('$x'))]);
  });

  test('belong to the class that declares them', () => {
    const code =
      'class A {\n  #x;\n  f() {\n    return class {\n      #x;\n      g(a) {\n        return this.#x;\n      }\n    };\n  }\n}';
    assert.deepEqual(plainNames([hot(code)]), [hot(code.replaceAll('#', '$'))]);
  });

  test('that meet another name are refused', () => {
    assert.throws(() => plainNames([hot('class A { #x; }\nclass B extends A { #x; }')]), /B and A/);
    assert.throws(
      () => plainNames([hot('class A { #x; }'), hot('class B extends A {}\nclass C extends B { #x; }')]),
      /C and B|C and A/,
    );
    assert.throws(() => plainNames([hot('class A { #x; $x; }')]), /another \$x/);
    assert.throws(() => plainNames([hot('class A { #x; }\na.$x = 1;')]), /another \$x/);
    const sdk = '// node_modules/@smithy/core/dist-es/a.js\na.$x = 1;';
    assert.match(plainNames([hot('class A { #x; }'), sdk])[0]!, /\$x;/);
    assert.throws(() => plainNames([hot('class A { #x; f(o) { return #x in o; } }')]), /#x in/);
  });
});
