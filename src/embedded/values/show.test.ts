/** The output of console.log and JSON.stringify for the objects that the library returns. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { fromBytes } from '../../base/index.ts';
import { BatchError, BigtableError, open, Row, RowMutation, type Table } from '../index.ts';

const TIME = 1_700_000_000_123_456n;
const NOT_TEXT = Buffer.from([0xff, 0, 1]);

async function rowOf(mutation: RowMutation): Promise<Row> {
  await using database = await open(':memory:');
  const table = await database.createTable('t', { families: { f: {}, sum: { aggregate: 'sum' } } });
  await table.apply(mutation);
  const [row] = await table.scan({ versions: 'all' }).toArray();
  assert.ok(row !== undefined);
  return row;
}

test('a row shows its key, and each cell its column, time and value', async () => {
  const row = await rowOf(
    new RowMutation('Zürich')
      .set('f:a', 'grüezi', TIME)
      .set({ family: 'f', qualifier: NOT_TEXT }, NOT_TEXT, 5n)
      .set('f:n', 7n, -1n),
  );
  assert.equal(
    inspect(row),
    [
      'Row {',
      "  name: 'Zürich',",
      '  cells: [',
      '    Cell {',
      "      column: 'f:a',",
      '      timestamp: 1700000000123456n (2023-11-14T22:13:20.123456Z),',
      "      text: 'grüezi'",
      '    },',
      '    Cell {',
      "      column: 'f:n',",
      '      timestamp: -1n,',
      '      value: <Buffer 00 00 00 00 00 00 00 07>',
      '    },',
      '    Cell {',
      "      family: 'f',",
      '      qualifier: <Buffer ff 00 01>,',
      '      timestamp: 5n (1970-01-01T00:00:00.000005Z),',
      '      value: <Buffer ff 00 01>',
      '    }',
      '  ]',
      '}',
    ].join('\n'),
  );
  assert.match(inspect([[row]]), /'Zürich'[\s\S]*'grüezi'/);
  assert.equal(inspect({ a: { b: { row } } }), '{ a: { b: { row: [Row] } } }');
  assert.deepEqual(JSON.parse(JSON.stringify(row)), {
    key: 'Zürich',
    cells: [
      { family: 'f', qualifier: 'a', timestamp: '1700000000123456', value: 'grüezi' },
      { family: 'f', qualifier: 'n', timestamp: '-1', value: '\0\0\0\0\0\0\0\x07' },
      { family: 'f', qualifierBase64: '/wAB', timestamp: '5', valueBase64: '/wAB' },
    ],
  });
});

test('a mutation shows its changes by the names of its methods', () => {
  const mutation = new RowMutation('r')
    .set('f:a', 'v')
    .set('f:a', NOT_TEXT, TIME)
    .add('sum:n', 5)
    .add('hll:n', 'text', 7n)
    .merge('sum:n', NOT_TEXT)
    .delete('f:a')
    .delete('f:a', { since: 1n, until: TIME })
    .deleteFamily('f')
    .deleteRow();
  const shown = inspect(mutation);
  for (const part of [
    /^RowMutation \{\n {2}row: 'r',\n {2}mutations: \[\n {4}\{ kind: 'set', column: 'f:a', value: 'v' \},/,
    /timestamp: 1700000000123456n \(2023-11-14T22:13:20.123456Z\),\s+value: <Buffer ff 00 01>/,
    /\{ kind: 'add', column: 'sum:n', timestamp: 0n, input: 5 \}/,
    /\{ kind: 'delete', column: 'f:a' \},/,
    /since: 1n \(1970[^,]*\),\s+until: 1700000000123456n/,
    /\{ kind: 'deleteFamily', family: 'f' \},\s+\{ kind: 'deleteRow' \}\s+\]/,
  ])
    assert.match(shown, part);
  assert.deepEqual(JSON.parse(JSON.stringify(mutation)), {
    row: 'r',
    mutations: [
      { kind: 'set', family: 'f', qualifier: 'a', value: 'v' },
      { kind: 'set', family: 'f', qualifier: 'a', timestamp: String(TIME), valueBase64: '/wAB' },
      { kind: 'add', family: 'sum', qualifier: 'n', timestamp: '0', input: '5' },
      { kind: 'add', family: 'hll', qualifier: 'n', timestamp: '7', input: 'text' },
      { kind: 'merge', family: 'sum', qualifier: 'n', timestamp: '0', stateBase64: '/wAB' },
      { kind: 'delete', family: 'f', qualifier: 'a' },
      { kind: 'delete', family: 'f', qualifier: 'a', since: '1', until: String(TIME) },
      { kind: 'deleteFamily', family: 'f' },
      { kind: 'deleteRow' },
    ],
  });
  assert.deepEqual(JSON.parse(JSON.stringify(new RowMutation(NOT_TEXT))), { rowBase64: '/wAB', mutations: [] });
});

test('long values are cut when they are inspected, and whole in JSON', () => {
  const row = new Row('r', [{ family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('x'.repeat(5000)) }]);
  assert.match(inspect(row), /'x{200}'\.\.\. 4800 more characters/);
  assert.match(inspect(row, { maxStringLength: 10 }), /'x{10}'\.\.\. 4990 more/);
  assert.equal(JSON.parse(JSON.stringify(row)).cells[0].value.length, 5000);
  const binary = new Row('r', [{ family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.alloc(5000) }]);
  assert.ok(inspect(binary).length < 500);
});

test('tables and databases describe themselves', async () => {
  const database = await open(':memory:');
  assert.equal(inspect(database), "Database { where: ':memory:', closed: false }");
  assert.equal(inspect(database.table('web')), "Table { name: 'web' }");
  assert.equal(
    inspect(database.table('projects/p/instances/i/tables/web')),
    "Table { name: 'projects/p/instances/i/tables/web' }",
  );
  await database.close();
  assert.match(inspect(database), /closed: true/);
});

describe('mutations that failed', () => {
  const MUTATIONS = Array.from({ length: 100 }, (_, i) => new RowMutation(`r${i}`).set('nofamily:q', 'v'));

  async function failed(work: (table: Table) => Promise<unknown>): Promise<BatchError> {
    await using database = await open(':memory:');
    const table = await database.createTable('t', { families: { f: {} } });
    return await work(table).then(
      () => assert.fail('it must fail'),
      (error) => error as BatchError,
    );
  }

  for (const [name, work] of [
    ['BatchError', (table: Table) => table.applyAll(MUTATIONS)],
    ['LoadError', (table: Table) => table.load(MUTATIONS)],
  ] as const) {
    test(`${name} states the number, and the first few in a line each; the caller's stack is the only one`, async () => {
      const error = await failed(work);
      assert.equal(error.name, name);
      const told = [0, 1, 2, 3, 4].map((index) => `  ${index}: NOT_FOUND table t has no column family "nofamily"`);
      assert.deepEqual(error.message.split('\n').slice(1), [...told, '  … and 95 more']);
      assert.match(error.message, /^100 mutations failed(, with 0 applied)?:\n/);
      // without custom words: so Node shows uncaught errors
      for (const options of [{}, { depth: 5 }, { depth: 5, customInspect: false }]) {
        const shown = inspect(error, options);
        assert.ok(shown.startsWith(`${name}: ${error.message}\n    at `), shown);
        assert.equal(shown.match(/nofamily/g)?.length, told.length);
        assert.equal(shown.match(/BigtableError/g), null, shown);
      }
    });

    test(`the failures of a ${name} stay an array for programs, and JSON has all of them`, async () => {
      const error = await failed(work);
      assert.ok(Array.isArray(error.failures));
      assert.deepEqual(
        error.failures.map(({ index }) => index),
        MUTATIONS.map((_, i) => i),
      );
      assert.deepEqual(Object.keys(error.failures[0] ?? {}), ['index', 'error']);
      const json = JSON.parse(JSON.stringify(error));
      assert.deepEqual(
        [json.name, json.message, json.codeName, json.failures.length],
        [name, error.message, 'NOT_FOUND', 100],
      );
      assert.deepEqual(json.failures[99], {
        index: 99,
        error: {
          name: 'BigtableError',
          message: 'table t has no column family "nofamily"',
          code: 5,
          codeName: 'NOT_FOUND',
          retry: false,
        },
      });
      assert.equal('stack' in json, false);
      // a line each, if they are shown by themselves
      assert.equal(inspect(error.failures).split('\n').length, 102);
      assert.match(inspect(error.failures, { maxArrayLength: 3 }), /\n {2}2: NOT_FOUND [^\n]*\n {2}… and 97 more\n\]$/);
      assert.equal(inspect([[[error.failures]]]), '[ [ [ [Array] ] ] ]');
    });
  }

  test('one of them is named by its index', async () => {
    const error = await failed((table) =>
      table.applyAll([new RowMutation('a').set('f:q', 'v'), new RowMutation('b').set('g:q', 'v')]),
    );
    assert.equal(error.message, 'mutation 1 failed: table t has no column family "g"');
    assert.equal(inspect(error.failures), '[\n  1: NOT_FOUND table t has no column family "g"\n]');
  });

  test('a long message, or one of several lines, takes one line', () => {
    const failure = new BigtableError(3, `a\nb${'x'.repeat(5000)}`);
    const { message } = new BatchError([0, 1].map((index) => ({ index, error: failure })));
    const [, line = ''] = message.split('\n');
    assert.match(line, /^ {2}0: INVALID_ARGUMENT a bx+…$/);
    assert.ok(line.length < 250);
  });
});

test('any bytes are shown, and come back from JSON', () => {
  fc.assert(
    fc.property(
      fc.uint8Array(),
      fc.uint8Array({ minLength: 1 }),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      (value, key, time) => {
        const row = new Row(fromBytes(key), [{ family: 'f', qualifier: fromBytes(key), timestamp: time, value }]);
        assert.ok(inspect(row).startsWith('Row {'));
        const json = JSON.parse(JSON.stringify(row));
        const bytes = (object: Record<string, string>, name: string): Buffer =>
          name in object
            ? Buffer.from(object[name] as string, 'utf8')
            : Buffer.from(object[`${name}Base64`] as string, 'base64');
        assert.deepEqual(
          [bytes(json, 'key'), bytes(json.cells[0], 'qualifier'), bytes(json.cells[0], 'value')],
          [key, key, value].map((one) => Buffer.from(one)),
        );
        assert.equal(json.cells[0].timestamp, String(time));
      },
    ),
  );
});
