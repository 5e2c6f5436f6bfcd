import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unavailable } from '../base/index.ts';
import { ManualClock, MemoryLockService, sleep } from '../env/index.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { encodeSchema, schemaPath } from '../metadata/index.ts';
import { SchemaCache } from './schema-cache.ts';

test('a cache of schemas that is started twice would watch twice, and is a bug', async () => {
  const schemas = new SchemaCache({ lockService: new MemoryLockService(), clock: new ManualClock() }, (error) =>
    assert.fail(String(error)),
  );
  await schemas.start();
  await assert.rejects(schemas.start(), /a cache of schemas is started once/);
  schemas.stop();
});

test('a cache of schemas reads what changed while changes were not reported', async () => {
  const lockService = new MemoryLockService();
  const clock = new ManualClock();
  const put = (name: string, extra: string): Promise<number> =>
    lockService.write(
      schemaPath(name),
      encodeSchema({
        name,
        id: `0000001${name}`,
        granularity: 'micros',
        families: {},
        deletionProtection: false,
        extra: { extra },
      }),
    );
  for (const name of ['1', '2', '3']) await put(name, 'before');
  const errors: unknown[] = [];
  const schemas = new SchemaCache({ lockService, clock }, (error) => errors.push(error));
  await schemas.start();
  const kept = schemas.byName('1');
  const end = lockService.missChanges();
  await put('2', 'after');
  await put('4', 'after');
  await lockService.remove(schemaPath('3'));
  await lockService.write(schemaPath('0'), Buffer.from('{}'));
  await turns();
  assert.equal(schemas.byName('2')?.extra?.['extra'], 'before');
  end();
  await turns();
  assert.equal(schemas.byName('1'), kept);
  assert.deepEqual(
    schemas.list('').map(({ name, extra }) => [name, extra?.['extra']]),
    [
      ['1', 'before'],
      ['2', 'after'],
      ['4', 'after'],
    ],
  );
  assert.equal(errors.length, 1, 'a broken file does not hide the others');
  schemas.stop();
});

test('a cache of schemas reads a file that has changed until it can', async () => {
  let isAway = false;
  class Away extends MemoryLockService {
    override async read(path: string) {
      if (isAway) throw unavailable('away');
      return super.read(path);
    }
  }
  const lockService = new Away();
  const clock = new ManualClock();
  const errors: unknown[] = [];
  const schemas = new SchemaCache({ lockService, clock }, (error) => errors.push(error));
  await schemas.start();
  isAway = true;
  await lockService.write(
    schemaPath('t'),
    encodeSchema({ name: 't', id: '00000010', granularity: 'micros', families: {}, deletionProtection: false }),
  );
  clock.timer(5000, () => (isAway = false));
  await inSimulatedTime(clock, sleep(clock, 10_000));
  assert.equal(schemas.byName('t')?.id, '00000010');
  assert.ok(errors.length > 0);
  schemas.stop();
});

test('and tries again until it can read', async () => {
  let isAway = false;
  class Away extends MemoryLockService {
    override async list(prefix: string, after?: string) {
      if (isAway) throw unavailable('away');
      return super.list(prefix, after);
    }
  }
  const lockService = new Away();
  const clock = new ManualClock();
  const schemas = new SchemaCache({ lockService, clock }, (error) => assert.fail(String(error)));
  await schemas.start();
  const end = lockService.missChanges();
  await lockService.write(
    schemaPath('t'),
    encodeSchema({ name: 't', id: '00000010', granularity: 'micros', families: {}, deletionProtection: false }),
  );
  isAway = true;
  end();
  clock.timer(5000, () => (isAway = false));
  await inSimulatedTime(clock, sleep(clock, 10_000));
  assert.equal(schemas.byName('t')?.id, '00000010');
  schemas.stop();
});

describe('a read of all schemas', () => {
  const schemaOf = (name: string, id: string): Uint8Array =>
    encodeSchema({ name, id, granularity: 'micros', families: {}, deletionProtection: false });

  test('that cannot read one fails: a table that is not known then may exist', async () => {
    let isAway = false;
    class Away extends MemoryLockService {
      override async read(path: string) {
        if (isAway && path === schemaPath('t')) throw unavailable('away');
        return super.read(path);
      }
    }
    const lockService = new Away();
    const errors: unknown[] = [];
    const schemas = new SchemaCache({ lockService, clock: new ManualClock() }, (error) => errors.push(error));
    await lockService.write(schemaPath('t'), schemaOf('t', '00000010'));
    isAway = true;
    await assert.rejects(schemas.refreshAll(), /away/);
    assert.equal(errors.length, 1);
    isAway = false;
    assert.equal(await schemas.refreshAll(), true);
    assert.equal(schemas.byId('00000010')?.name, 't');
  });

  test('leaves out those that are damaged, and says so', async () => {
    const lockService = new MemoryLockService();
    const errors: unknown[] = [];
    const schemas = new SchemaCache({ lockService, clock: new ManualClock() }, (error) => errors.push(error));
    await lockService.write(schemaPath('damaged'), Buffer.from('?'));
    await lockService.write(schemaPath('t'), schemaOf('t', '00000010'));
    assert.equal(await schemas.refreshAll(), false);
    assert.equal(errors.length, 1);
    assert.equal(schemas.byId('00000010')?.name, 't');
  });
});

async function turns(): Promise<void> {
  for (let i = 0; i < 200; i++) await undefined;
}
