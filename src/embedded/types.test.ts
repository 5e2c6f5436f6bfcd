/** The library refuses all that the declarations refuse: the compiler checks the first, the test the second. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../base/index.ts';
import { type Database, open, type RowFilter, RowMutation, type Table } from './index.ts';

/** The value of a variable that is not set. */
const unset = undefined as string | undefined;

const CALLS: readonly ((table: Table, database: Database) => unknown)[] = [
  // @ts-expect-error no bound
  (table) => table.deleteRows(),
  // @ts-expect-error no bound
  (table) => table.deleteRows({}),
  // @ts-expect-error undefined
  (table) => table.deleteRows({ prefix: unset }),
  // @ts-expect-error undefined
  (table) => table.deleteRows({ start: unset }),
  // @ts-expect-error misspelt
  (table) => table.deleteRows({ preffix: 'a' }),
  // @ts-expect-error two kinds of bounds
  (table) => table.deleteRows({ prefix: 'a', start: 'a' }),
  // @ts-expect-error undefined
  (table) => table.scan({ prefix: unset }).next(),
  // @ts-expect-error undefined
  (table) => table.getCell('r', 'f:q', undefined),
  // @ts-expect-error undefined
  () => new RowMutation('r').delete('f:q', undefined),
  // @ts-expect-error undefined
  (table) => table.setGcRule('f', undefined),
  // @ts-expect-error undefined
  (_, database) => database.compact(unset),
  // @ts-expect-error undefined
  (_, database) => database.split('t', unset),
  // @ts-expect-error undefined
  (_, database) => database.listTableNames(unset),
  // @ts-expect-error an array
  (_, database) => database.createTable('u', { families: ['f', 'g'] }),
  // @ts-expect-error misspelt
  (_, database) => database.createTable('u', { families: { f: { maxVersion: 1 } } }),
  // @ts-expect-error no such compression
  (table) => table.setGroups({ default: { compression: 'gzip' } }),
  // @ts-expect-error a filter without its field
  (table) => table.scan({ filter: { kind: 'valueRegex' } }).next(),
  // @ts-expect-error a filter of no kind
  (table) => table.scan({ filter: { kind: 'valueRegexp', regex: 'a' } }).next(),
  // @ts-expect-error a bound without closed
  (table) => table.scan({ filter: { kind: 'valueRange', start: { value: 'a' } } }).next(),
  // @ts-expect-error undefined
  (table) => table.checkAndMutate('r', { column: 'f:q', equals: unset }, { then: (row) => row.deleteRow() }),
];

test('calls that do not compile are refused at run time as well', async () => {
  await using database = await open(':memory:');
  const table = await database.createTable('t', { families: { f: {} } });
  for (const call of CALLS)
    await assert.rejects(
      async () => call(table, database),
      { name: 'BigtableError', code: Code.INVALID_ARGUMENT },
      String(call),
    );
});

test('filters are made of text, bytes and Dates', async () => {
  await using database = await open(':memory:');
  const table = await database.createTable('t', { families: { f: {} } });
  await table.apply(new RowMutation('r').set('f:q', 'Zürich', new Date(1_700_000_000_000)));
  const filters: readonly RowFilter[] = [
    { kind: 'valueRegex', regex: 'Z.rich' },
    { kind: 'valueRegex', regex: new Uint8Array(Buffer.from('Z..rich')) },
    { kind: 'valueRange', start: { value: 'Zü', closed: true }, end: { value: Buffer.from([0xff]), closed: false } },
    { kind: 'timestampRange', range: { start: new Date(1_700_000_000_000), end: 1_700_000_000_001_000n } },
  ];
  for (const filter of filters)
    assert.equal(
      (await table.scan({ filter }).next()).value?.name,
      'r',
      JSON.stringify(filter, (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part)),
    );
});
