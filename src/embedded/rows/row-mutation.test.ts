import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { open, RowMutation } from '../index.ts';

test('an object that only has the prototype of RowMutation is refused as INVALID_ARGUMENT', async () => {
  const database = await open(':memory:');
  try {
    const table = await database.openTable('t', { families: { f: {} } });
    const hollow = Object.create(RowMutation.prototype) as RowMutation;
    const refusal = { codeName: 'INVALID_ARGUMENT', message: /mutation .*must be a RowMutation/ };
    await assert.rejects(table.apply(hollow), refusal);
    await assert.rejects(table.applyAll([hollow]), refusal);
    await assert.rejects(table.load([hollow]), /mutation .*must be a RowMutation/);
  } finally {
    await database.close();
  }
});

test('a mutation with a token is made once, however it is applied', async () => {
  await using database = await open(':memory:');
  const table = await database.openTable('t', { families: { visits: { aggregate: 'sum' } } });
  const visit = (): RowMutation => new RowMutation('r').add('visits:n', 1).withToken('visit-0001', new Date());
  await table.apply(visit());
  await table.apply(visit());
  await table.applyAll([visit(), visit(), new RowMutation('r').add('visits:n', 10)]);
  await table.load([visit(), visit()]);
  assert.equal((await table.getCell('r', 'visits:n'))?.int, 11n);
  await table.apply(new RowMutation('r').add('visits:n', 100).withToken(Buffer.from('visit-0002')));
  assert.equal((await table.getCell('r', 'visits:n'))?.int, 111n);
});

test('a token is shown, and a wrong one is refused', async () => {
  await using database = await open(':memory:');
  const table = await database.openTable('t', { families: { visits: { aggregate: 'sum' } } });
  const visit = (): RowMutation => new RowMutation('r').add('visits:n', 1);
  const wrong = { codeName: 'INVALID_ARGUMENT' };
  assert.throws(() => visit().withToken(7 as never), { ...wrong, message: /a token must be text or bytes/ });
  assert.throws(() => visit().withToken('visit-0001', 'now' as never), { ...wrong, message: /microseconds/ });
  await assert.rejects(table.apply(visit().withToken('short')), { ...wrong, message: /8 to 1024 bytes/ });
  const hourAgo = new Date(Date.now() - 3_600_000);
  await assert.rejects(table.apply(visit().withToken('visit-0001', hourAgo)), { codeName: 'FAILED_PRECONDITION' });
  assert.equal(await table.getCell('r', 'visits:n'), undefined);
  const shown = visit().withToken('visit-0001');
  assert.equal((JSON.parse(JSON.stringify(shown)) as { token: string }).token, 'visit-0001');
  assert.match(inspect(shown), /visit-0001/);
  assert.ok(!('token' in (JSON.parse(JSON.stringify(visit())) as object)));
});
