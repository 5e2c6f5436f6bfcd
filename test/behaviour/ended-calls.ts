/** Part of the behaviour suite: calls that their caller ends, by a signal or by a time. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import {
  BigtableError,
  CallEndedError,
  type CallOptions,
  Code,
  type Database,
  RowMutation,
  type Table,
} from '../../src/embedded/index.ts';

export interface CallsSubject {
  readonly database: () => Database;
  readonly table: () => Promise<Table>;
}

/** Every call, with its options. */
const CALLS: Readonly<Record<string, (table: Table, options: CallOptions, database: Database) => Promise<unknown>>> = {
  apply: (t, options) => t.apply(new RowMutation('r').set('f:a', '1', 1000), options),
  applyAll: (t, options) => t.applyAll([new RowMutation('r').set('f:a', '1', 1000)], options),
  'applyAll of nothing': (t, options) => t.applyAll([], options),
  get: (t, options) => t.get('r', options),
  getMany: (t, options) => t.getMany(['r'], options),
  load: (t, options) => t.load([new RowMutation('r').set('f:a', '1', 1000)], options),
  getCell: (t, options) => t.getCell('r', 'f:a', options),
  'getCell at a time': (t, options) => t.getCell('r', 'f:a', 5000n, options),
  scan: (t, options) => t.scan(options).next(),
  toArray: (t, options) => t.scan(options).toArray(),
  increment: (t, options) => t.increment('r', 'f:a', 1, options),
  append: (t, options) => t.append('r', 'f:a', 'x', options),
  readModifyWrite: (t, options) =>
    t.readModifyWrite('r', [{ family: 'f', qualifier: 'a', change: { kind: 'append', suffix: 'x' } }], options),
  checkAndMutate: (t, options) =>
    t.checkAndMutate('r', { column: 'f:a' }, { otherwise: (row) => row.set('f:a', '1', 1000) }, options),
  deleteRow: (t, options) => t.deleteRow('r', options),
  deleteRows: (t, options) => t.deleteRows({ prefix: 'r' }, options),
  deleteAllRows: (t, options) => t.deleteAllRows(options),
  sampleKeys: (t, options) => t.sampleKeys(options),
  statistics: (t, options) => t.statistics(options),
  schema: (t, options) => t.schema(options),
  createFamily: (t, options) => t.createFamily('new', {}, options),
  setGcRule: (t, options) => t.setGcRule('f', { kind: 'maxVersions', versions: 1 }, options),
  setGroups: (t, options) => t.setGroups({}, options),
  deleteFamily: (t, options) => t.deleteFamily('f', options),
  createTable: (t, options, database) => database.createTable(`${t.name}x`, options),
  openTable: (t, options, database) => database.openTable(`${t.name}x`, options),
  hasTable: (t, options, database) => database.hasTable(t.name, options),
  listTables: (_, options, database) => database.listTables(options),
  listTableNames: (t, options, database) => database.listTableNames(t.fullName.slice(0, -t.name.length), options),
  'listTableNames of all': (_, options, database) => database.listTableNames(options),
  deleteTable: (t, options, database) => database.deleteTable(t.name, options),
  flush: (_, options, database) => database.flush(options),
  compact: (t, options, database) => database.compact(t.name, options),
  'compact all': (_, options, database) => database.compact(options),
  split: (t, options, database) => database.split(t.name, 'm', options),
  'split all': (t, options, database) => database.split(t.name, options),
  merge: (t, options, database) => database.merge(t.name, 'm', options),
};

async function errorOf(call: () => Promise<unknown>): Promise<BigtableError> {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof BigtableError, `not a BigtableError: ${String(error)}`);
    return error;
  }
  assert.fail('it did not fail');
}

async function filled(table: () => Promise<Table>, rows: number): Promise<Table> {
  const t = await table();
  const value = Buffer.alloc(1000, 'x');
  await t.applyAll(
    Array.from({ length: rows }, (_, i) => new RowMutation(`r${String(i).padStart(5, '0')}`).set('f:a', value, 1000)),
  );
  return t;
}

export function endedCallTests({ database, table }: CallsSubject): void {
  test('a signal that has aborted, or a time that is over, ends every call before it begins', async () => {
    const t = await table();
    const reason = new Error('the user left');
    for (const [name, call] of Object.entries(CALLS)) {
      const aborted = await errorOf(() => call(t, { signal: AbortSignal.abort(reason) }, database()));
      assert.ok(aborted instanceof CallEndedError, `${name}: ${String(aborted)}`);
      assert.deepEqual(
        [aborted.code, aborted.name, aborted.cause, aborted.outcomeUnknown],
        [Code.CANCELLED, 'AbortError', reason, false],
        name,
      );
      const late = await errorOf(() => call(t, { timeoutMs: 0 }, database()));
      assert.ok(late instanceof CallEndedError, `${name}: ${String(late)}`);
      assert.deepEqual(
        [late.code, late.name, late.outcomeUnknown],
        [Code.DEADLINE_EXCEEDED, 'TimeoutError', false],
        name,
      );
    }
    assert.deepEqual(await t.scan().toArray(), []);
    assert.deepEqual(Object.keys((await t.schema()).families).sort(), ['f', 'g']);
  });

  test('options that are none are refused by every call', async () => {
    const t = await table();
    for (const [name, call] of Object.entries(CALLS)) {
      for (const options of [{ sginal: undefined }, { signal: {} }, { timeoutMs: '10' }, { timeoutMs: Number.NaN }]) {
        const error = await errorOf(() => call(t, options as never, database()));
        assert.equal(error.code, Code.INVALID_ARGUMENT, `${name} ${Object.keys(options)}: ${error.message}`);
      }
    }
  });

  test('after abort() in the body of a loop no further row comes', async () => {
    const t = await filled(table, 500);
    const abort = new AbortController();
    const reason = { why: 'enough' };
    let rows = 0;
    const error = await errorOf(async () => {
      for await (const _ of t.scan({ signal: abort.signal })) if (++rows === 10) abort.abort(reason);
    });
    assert.equal(rows, 10);
    assert.deepEqual([error.name, error.cause], ['AbortError', reason]);
    assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
  });

  test('an ended read fails once, and is then at its end', async () => {
    const t = await filled(table, 100);
    const abort = new AbortController();
    const rows = t.scan({ signal: abort.signal });
    await rows.next();
    abort.abort();
    await assert.rejects(rows.next(), { name: 'AbortError', code: Code.CANCELLED });
    assert.equal((await rows.next()).done, true);
  });

  test('a write that is given up when it has begun says that its outcome is unknown', async () => {
    const t = await table();
    const abort = new AbortController();
    const written = t.apply(new RowMutation('r').set('f:a', '1', 1000), { signal: abort.signal });
    abort.abort('enough');
    const error = await errorOf(() => written);
    assert.ok(error instanceof CallEndedError);
    assert.deepEqual(
      [error.name, error.cause, error.outcomeUnknown, error.details['outcomeUnknown']],
      ['AbortError', 'enough', true, true],
    );
    const read = new AbortController();
    const got = t.get('r', { signal: read.signal });
    read.abort();
    // what was in memory may have been there at once
    await got.catch((ended: unknown) => assert.equal((ended as CallEndedError).outcomeUnknown, false));
  });

  test('a read ends when its time is over, by AbortSignal.timeout as by timeoutMs', async () => {
    const t = await filled(table, 200);
    const signal = AbortSignal.timeout(1);
    const error = await errorOf(async () => {
      for (;;) for await (const _ of t.scan({ signal })) await new Promise((resolve) => setImmediate(resolve));
    });
    assert.deepEqual([error.code, error.name], [Code.DEADLINE_EXCEEDED, 'TimeoutError']);
    assert.equal(error.cause, signal.reason);
    const late = await errorOf(async () => {
      for (;;) for await (const _ of t.scan({ timeoutMs: 1 })) await new Promise((resolve) => setImmediate(resolve));
    });
    assert.deepEqual([late.code, late.name], [Code.DEADLINE_EXCEEDED, 'TimeoutError']);
  });

  test('one signal serves ten thousand calls, many at once, and nothing of them is left on it', async () => {
    const t = await filled(table, 10);
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    try {
      const options = { signal, timeoutMs: 600_000 };
      for (let wave = 0; wave < 20; wave++) {
        const calls = Array.from({ length: 500 }, (_, i) =>
          i % 50 === 0 ? t.apply(new RowMutation(`w${i}`).set('f:a', '', 1000), options) : t.get('r00001', options),
        );
        await Promise.all(calls);
      }
      await Promise.all(Array.from({ length: 100 }, () => t.scan(options).toArray()));
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off('warning', onWarning);
    }
    assert.deepEqual(warnings, []);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });
}
