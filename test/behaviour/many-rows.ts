/** Part of the behaviour suite: many rows in one call, into a table and out of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchError, Code, LoadError, RowMutation, type Table } from '../../src/embedded/index.ts';

const key = (n: number): string => `k${String(n).padStart(6, '0')}`;
const mutation = (n: number): RowMutation => new RowMutation(key(n)).set('f:n', String(n), 1000);

function* mutations(count: number, from = 0): Generator<RowMutation> {
  for (let n = from; n < from + count; n++) yield mutation(n);
}

async function countOf(t: Table): Promise<number> {
  let count = 0;
  for await (const _ of t.scan({ filter: { kind: 'stripValue' } })) count++;
  return count;
}

export function manyRowsTests(table: () => Promise<Table>): void {
  test('getMany answers in the order of the keys: nothing where there is no row, the same row for the same key', async () => {
    const t = await table();
    await t.applyAll([...mutations(300)]);
    const asked = [299, 7, 1000, 7, 0, 150, 5000].map(key);
    const rows = await t.getMany(asked);
    assert.deepEqual(
      rows.map((row) => row?.get('f:n')?.text),
      ['299', '7', undefined, '7', '0', '150', undefined],
    );
    assert.equal(rows[1], rows[3]);
    assert.deepEqual(await t.getMany([]), []);
    const bytes = Buffer.from(key(3));
    assert.deepEqual(
      (await t.getMany([bytes, key(3)])).map((row) => row?.name),
      [key(3), key(3)],
    );
    assert.deepEqual(await t.getMany([key(1)], { families: ['g'] }), [undefined]);
    assert.equal((await t.getMany([key(1)], { columns: ['f:n'], timeoutMs: 60_000 }))[0]?.cells.length, 1);
  });

  test('getMany of more keys than one read takes', async () => {
    const t = await table();
    await t.applyAll([...mutations(1000)]);
    const asked = Array.from({ length: 7000 }, (_, i) => (i * 7919) % 6000);
    const rows = await t.getMany(asked.map(key));
    assert.deepEqual(
      rows.map((row) => row && Number(row.get('f:n')?.text)),
      asked.map((n) => (n < 1000 ? n : undefined)),
    );
  });

  test('getMany refuses what is no list of row keys, and a table that is not there', async () => {
    const t = await table();
    for (const wrong of [undefined, 'k', [''], [undefined], [7]])
      await assert.rejects(t.getMany(wrong as never), { code: Code.INVALID_ARGUMENT });
    for (const wrong of [{ limit: 1 }, { rows: ['a'] }, { preffix: 'a' }])
      await assert.rejects(t.getMany(['a'], wrong as never), { code: Code.INVALID_ARGUMENT });
  });

  test('toArray gives the rows that are left, and refuses more than its max', async () => {
    const t = await table();
    await t.applyAll([...mutations(50)]);
    assert.deepEqual(
      (await t.scan().toArray()).map((row) => row.name),
      Array.from({ length: 50 }, (_, n) => key(n)),
    );
    const rows = t.scan({ start: key(40) });
    await rows.next();
    assert.deepEqual(
      (await rows.toArray({ max: 9 })).map((row) => row.name),
      Array.from({ length: 9 }, (_, n) => key(41 + n)),
    );
    assert.deepEqual(await rows.toArray(), []);
    await assert.rejects(t.scan().toArray({ max: 49 }), {
      code: Code.RESOURCE_EXHAUSTED,
      message: /more than 49 rows/,
    });
    for (const wrong of [{ max: -1 }, { max: '9' }, { max: undefined }, { limit: 1 }, 9]) {
      await assert.rejects(t.scan().toArray(wrong as never), { code: Code.INVALID_ARGUMENT });
    }
  });

  test('applyAll of more mutations than a request may have', async () => {
    const t = await table();
    const wide = (row: string, steps: number): RowMutation => {
      const many = new RowMutation(row);
      for (let n = 0; n < steps; n++) many.set('f:a', '', 1000);
      return many;
    };
    const rows = [
      ...mutations(10),
      wide('w1', 60_000),
      wide('w2', 60_000),
      new RowMutation('bad').set('no:x', '', 1000),
      ...mutations(10, 10),
    ];
    await assert.rejects(t.applyAll(rows), (error: unknown) => {
      assert.ok(error instanceof BatchError);
      assert.deepEqual(
        error.failures.map(({ index }) => index),
        [12],
      );
      return true;
    });
    assert.equal(await countOf(t), 22);
  });

  test('load takes mutations out of any iterable, in order, and answers how many', async () => {
    const t = await table();
    const told: number[] = [];
    assert.equal(await t.load(mutations(2500), { onProgress: ({ applied }) => told.push(applied) }), 2500);
    assert.deepEqual([told.at(-1), told.every((applied, i) => applied > (told[i - 1] ?? 0))], [2500, true]);
    assert.equal(await countOf(t), 2500);
    async function* slow(): AsyncGenerator<RowMutation> {
      for (const each of mutations(1500, 2500)) {
        await null;
        yield each;
      }
    }
    assert.equal(await t.load(slow()), 1500);
    assert.equal(await t.load([mutation(4000)]), 1);
    assert.equal(await t.load([]), 0);
    assert.equal(await countOf(t), 4001);
    // the last of a row counts, wherever it is
    await t.load(Array.from({ length: 2500 }, (_, i) => new RowMutation('same').set('f:n', String(i), 1000)));
    assert.equal((await t.getCell('same', 'f:n'))?.text, '2499');
  });

  test('a load ends with the first failure, says which mutation it is and how many are applied, and closes its source', async () => {
    const t = await table();
    let closed = 0;
    function* source(bad: unknown): Generator<RowMutation> {
      try {
        yield* mutations(2500);
        yield bad as RowMutation;
        for (;;) yield mutation(1);
      } finally {
        closed++;
      }
    }
    for (const bad of [new RowMutation('x').set('no:x', ''), undefined, { row: 'x' }]) {
      await assert.rejects(t.load(source(bad)), (error: unknown) => {
        assert.ok(error instanceof LoadError);
        assert.deepEqual(
          [error.name, error.code, error.failures[0]?.index],
          ['LoadError', error.failures[0]?.error.code, 2500],
        );
        assert.match(error.message, /^mutation 2500 failed.*applied: /);
        assert.ok(error.applied >= 2000);
        return true;
      });
    }
    assert.equal(closed, 3);
    const broken = new Error('the file ends here');
    function* breaks(): Generator<RowMutation> {
      yield* mutations(10, 10_000);
      throw broken;
    }
    await assert.rejects(t.load(breaks()), broken);
    assert.notEqual(await t.get(key(10_009)), undefined);
    const stop = new Error('enough');
    await assert.rejects(
      t.load(source(mutation(0)), {
        onProgress: () => {
          throw stop;
        },
      }),
      stop,
    );
    assert.equal(closed, 4);
  });

  test('a load is given up by its signal, whether it writes or waits for its source', async () => {
    const t = await table();
    const abort = new AbortController();
    let given = 0;
    function* endless(): Generator<RowMutation> {
      for (;;) yield mutation(given++);
    }
    const reason = new Error('stop');
    const loading = t.load(endless(), {
      signal: abort.signal,
      onProgress: ({ applied }) => applied >= 2000 && abort.abort(reason),
    });
    await assert.rejects(loading, { name: 'AbortError', cause: reason, outcomeUnknown: true });
    const before = given;
    await t.get('k');
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(given, before);
    async function* silent(): AsyncGenerator<RowMutation> {
      await new Promise(() => {});
      yield mutation(0);
    }
    await assert.rejects(t.load(silent(), { timeoutMs: 5 }), { name: 'TimeoutError', code: Code.DEADLINE_EXCEEDED });
  });

  test('load refuses what is no source, and options that are none', async () => {
    const t = await table();
    for (const wrong of [undefined, null, 7, 'text', {}, mutation(1)])
      await assert.rejects(t.load(wrong as never), { code: Code.INVALID_ARGUMENT });
    for (const wrong of [{ onProgres() {} }, { onProgress: 7 }, 7])
      await assert.rejects(t.load([], wrong as never), { code: Code.INVALID_ARGUMENT });
  });
}
