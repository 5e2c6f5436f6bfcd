import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { open } from './database.ts';
import { Row } from './rows/row.ts';
import { RowMutation } from './rows/row-mutation.ts';

const FAMILIES = { families: { f: {} } };

describe('getNow', () => {
  let scratch: string;
  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'edubba-get-now-'));
  });
  after(() => rm(scratch, { recursive: true, force: true }));

  test('returns what get returns, without a promise for rows in the memtable', async () => {
    await using database = await open(':memory:');
    const table = await database.createTable('t', FAMILIES);
    await table.apply(new RowMutation('a').set('f:x', 'old', 1000).set('f:x', 'new', 2000));
    const found = table.getNow('a');
    assert(found instanceof Row);
    assert.deepEqual(found, await table.get('a'));
    assert.equal(found.cells[0]?.text, 'new');
    const all = table.getNow('a', { versions: 'all' });
    assert(all instanceof Row);
    assert.equal(all.cells.length, 2);
    assert.equal(table.getNow('b'), undefined);
  });

  test('returns a row of several batches whole, and nothing for a row that the filter refuses', async () => {
    await using database = await open(':memory:');
    const table = await database.createTable('t', FAMILIES);
    const large = new RowMutation('large');
    for (let i = 0; i < 5; i++) large.set(`f:${i}`, Buffer.alloc(200_000, i));
    await table.apply(large);
    const found = table.getNow('large');
    assert(found instanceof Row);
    assert.deepEqual(
      found.cells.map(({ value }) => [value.length, value[0]]),
      [0, 1, 2, 3, 4].map((i) => [200_000, i]),
    );
    assert.equal(table.getNow('large', { filter: { kind: 'rowKeyRegex', regex: 'other' } }), undefined);
  });

  test('ends with its signal while it waits', async () => {
    await using database = await open(':memory:');
    const abort = new AbortController();
    // the schema of a table that is not known is looked up elsewhere
    const found = database.table('absent').getNow('a', { signal: abort.signal });
    assert(found instanceof Promise);
    abort.abort();
    await assert.rejects(found, { name: 'AbortError' });
  });

  test('returns a promise while blocks have to be read, and none after that', async () => {
    const path = join(scratch, 'files');
    await using written = await open(path);
    await (await written.createTable('t', FAMILIES)).apply(new RowMutation('a').set('f:x', 'value'));
    await written.flush();
    await written.close();
    await using database = await open(path);
    const table = database.table('t');
    const first = table.getNow('a');
    assert(first instanceof Promise);
    assert.equal((await first)?.cells[0]?.text, 'value');
    const second = table.getNow('a');
    assert(second instanceof Row);
    assert.equal(second.cells[0]?.text, 'value');
  });

  test('throws for an invalid request, where get rejects', async () => {
    await using database = await open(':memory:');
    const table = await database.createTable('t', FAMILIES);
    assert.throws(() => table.getNow(''), { code: Code.INVALID_ARGUMENT });
    await assert.rejects(table.get(''), { code: Code.INVALID_ARGUMENT });
    // what has to be looked up elsewhere rejects
    await assert.rejects(async () => database.table('absent').getNow('a'), { code: Code.NOT_FOUND });
    await database.close();
    assert.throws(() => table.getNow('a'), { code: Code.FAILED_PRECONDITION });
  });

  test('a loop of such reads leaves nothing behind in the budgets', async () => {
    await using database = await open(':memory:');
    const table = await database.createTable('t', FAMILIES);
    await table.apply(new RowMutation('a').set('f:x', Buffer.alloc(100_000)));
    for (let i = 0; i < 5000; i++) assert(table.getNow('a') instanceof Row);
    await table.apply(new RowMutation('b').set('f:x', 'y'));
    assert(table.getNow('b') instanceof Row);
  });
});
