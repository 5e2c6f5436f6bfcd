/** The changes of a table, as the library reads them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Change, type ChangesOptions, Code, type Database, open, RowMutation, type Table } from './index.ts';

const inPast = (): bigint => BigInt(Date.now() - 1000) * 1000n;

describe('readChanges', () => {
  let database: Database;
  let tables = 0;

  before(async () => {
    database = await open(':memory:');
  });
  after(() => database.close());

  async function streamed(splits: readonly string[] = []): Promise<Table> {
    const table = await database.createTable(`t${tables++}`, { families: { f: { maxVersions: 1 } }, splits });
    await table.keepChanges(1);
    return table;
  }

  const set = (table: Table, row: string, value: string, at = 1): Promise<void> =>
    table.apply(new RowMutation(row).set('f:q', value, at));

  /** All changes until now, and the token after them. */
  async function read(table: Table, options: ChangesOptions): Promise<{ all: Change[]; token: string }> {
    const all: Change[] = [];
    const changes = table.readChanges({ until: new Date(Date.now() + 1), ...options });
    for await (const change of changes) all.push(change);
    assert.ok(changes.token !== undefined);
    return { all, token: changes.token };
  }

  const rowsOf = (all: readonly Change[]): string[] => all.map(({ row }) => row.toString()).sort();

  test('gives each change of all tablets, and goes on from its token', async () => {
    const since = inPast();
    const table = await streamed(['m']);
    for (const row of ['a', 'b', 'x']) await set(table, row, row);
    const first = await read(table, { since });
    assert.deepEqual(rowsOf(first.all), ['a', 'b', 'x']);
    const [one] = first.all;
    assert.equal(one?.origin, 'user');
    assert.ok(one.time > since && one.time <= BigInt(Date.now() + 1) * 1000n);
    await set(table, 'c', '1');
    await database.split(table.name, 'c');
    await database.merge(table.name, 'm');
    await set(table, 'y', '1');
    const second = await read(table, { token: first.token });
    assert.deepEqual(rowsOf(second.all), ['c', 'y']);
    assert.deepEqual((await read(table, { token: second.token })).all, []);
  });

  test('has a token after each change, of what the loop has taken alone', async () => {
    const since = inPast();
    const table = await streamed(['m']);
    const rows = ['a', 'b', 'c', 'n', 'o', 'p'];
    for (const row of rows) await set(table, row, row);
    const seen: string[] = [];
    const changes = table.readChanges({ since, until: new Date(Date.now() + 1) });
    assert.equal(typeof changes.token, 'undefined');
    for await (const { row } of changes) {
      seen.push(row.toString());
      const rest = (await read(table, { token: changes.token! })).all;
      assert.deepEqual(
        rowsOf(rest),
        rows.filter((one) => !seen.includes(one)),
      );
    }
    assert.equal(seen.length, rows.length);
  });

  test('waits for changes, which can be applied to another table, those of garbage collection included', async () => {
    const table = await streamed();
    const copy = await database.createTable(`t${tables++}`, { families: { f: {} } });
    const changes = table.readChanges({ since: inPast() });
    const next = changes.next();
    await set(table, 'r', '1', 1);
    await set(table, 'r', '2', 2);
    await database.compact(table.name);
    const origins: string[] = [];
    for (let result = await next; !result.done; result = await changes.next()) {
      const { mutation, origin } = result.value;
      await copy.apply(mutation);
      origins.push(origin);
      if (origins.length === 3) break;
    }
    await changes.return?.();
    assert.deepEqual(origins, ['user', 'user', 'garbageCollection']);
    assert.deepEqual((await changes.next()).done, true);
    const row = await copy.get('r', {});
    assert.deepEqual(
      row?.cells.map(({ text }) => text),
      ['2'],
    );
  });

  test('ends with its signal, and fails with the right code', async () => {
    const table = await streamed();
    const plain = await database.createTable(`t${tables++}`, { families: { f: {} } });
    const codeOf = async (of: Table, options: ChangesOptions): Promise<number> => {
      try {
        for await (const _ of of.readChanges(options));
      } catch (error) {
        return (error as { readonly code: number }).code;
      }
      return Code.OK;
    };
    const ending = new AbortController();
    const ended = codeOf(table, { signal: ending.signal });
    ending.abort();
    assert.equal(await ended, Code.CANCELLED);
    assert.equal(await codeOf(table, { timeoutMs: 50 }), Code.DEADLINE_EXCEEDED);
    assert.equal(await codeOf(plain, {}), Code.FAILED_PRECONDITION);
    assert.equal(await codeOf(database.table('none'), {}), Code.NOT_FOUND);
    assert.equal(await codeOf(table, { since: 1n }), Code.OUT_OF_RANGE);
    for (const options of [{ token: 'none' }, { token: 'eyJmb3JtYXQiOjF9' }, { since: 1n, token: 'x' }, { from: 1 }])
      assert.equal(await codeOf(table, options as ChangesOptions), Code.INVALID_ARGUMENT, String(Object.keys(options)));
    for (const days of [0, 8, Number.NaN, '3'])
      await assert.rejects(table.keepChanges(days as number), { code: Code.INVALID_ARGUMENT });
    await table.keepChanges('never');
    assert.equal(await codeOf(table, {}), Code.FAILED_PRECONDITION);
  });

  test('ends when the database is closed', async () => {
    const other = await open(':memory:');
    const table = await other.createTable('t', { families: { f: {} } });
    await table.keepChanges(1);
    const next = table.readChanges().next();
    const failed = assert.rejects(next);
    await table.apply(new RowMutation('r').set('f:q', 'v')).catch(() => {});
    await other.close();
    await failed.catch(() => {});
  });
});
