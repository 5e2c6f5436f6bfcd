import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type BigtableError, codeName } from '../base/index.ts';
import { ManualClock, MemoryLockService, silentLogger } from '../env/index.ts';
import { type AppProfile, uncreatedInstance } from '../model/index.ts';
import { AppProfileCache } from './app-profile-cache.ts';
import { encodeInstance, instancePath } from './instance-file.ts';

const NAME = 'projects/p/instances/i';
const TABLE = `${NAME}/tables/t`;

const profile = (id: string, allowsTransactions: boolean): AppProfile => ({
  id,
  description: '',
  routing: { kind: 'single', cluster: 'edubba', allowsTransactions },
  isolation: { kind: 'standard', priority: 'low' },
  revision: 1,
});

async function started() {
  const lockService = new MemoryLockService();
  const clock = new ManualClock();
  const cache = new AppProfileCache({ lockService, clock, logger: silentLogger });
  const write = async (...appProfiles: AppProfile[]): Promise<void> => {
    const contents = encodeInstance({ instance: { ...uncreatedInstance(NAME), appProfiles }, writes: [] });
    await lockService.write(instancePath(NAME), contents);
    await turn();
  };
  /** The priority, or the code of the error. */
  const check = (id: string, kind: 'read' | 'write' | 'transaction', table = TABLE): string | undefined => {
    try {
      return cache.check(table, id, kind);
    } catch (error) {
      return codeName((error as BigtableError).code);
    }
  };
  return { lockService, clock, cache, write, check };
}

describe('what app profiles allow', () => {
  test('is everything before an instance has a file, and of instances without one', async () => {
    const { cache, write, check } = await started();
    await write(profile('a', false));
    assert.equal(check('b', 'transaction'), undefined);
    await cache.start();
    assert.equal(check('a', 'transaction'), 'FAILED_PRECONDITION');
    assert.equal(check('b', 'read'), 'NOT_FOUND');
    assert.equal(check('b', 'transaction', 'projects/p/instances/other/tables/t'), undefined);
    assert.equal(check('b', 'transaction', 'no name'), undefined);
    cache.stop();
  });

  test('follows changes and deletions', async () => {
    const { cache, lockService, write, check } = await started();
    await cache.start();
    await write(profile('a', false));
    assert.deepEqual([check('a', 'read'), check('a', 'transaction')], ['low', 'FAILED_PRECONDITION']);
    await write(profile('a', true));
    assert.equal(check('a', 'transaction'), 'low');
    await lockService.remove(instancePath(NAME));
    await turn();
    assert.equal(check('b', 'transaction'), undefined);
    cache.stop();
    await write(profile('a', false));
    assert.equal(check('a', 'transaction'), undefined);
  });

  test('is read again after a gap, of instances that are gone, too', async () => {
    const { cache, lockService, write, check } = await started();
    await write(profile('a', false));
    await cache.start();
    const report = lockService.missChanges();
    await lockService.remove(instancePath(NAME));
    assert.equal(check('a', 'transaction'), 'FAILED_PRECONDITION');
    report();
    await turn();
    assert.equal(check('a', 'transaction'), undefined);
    cache.stop();
  });
});
