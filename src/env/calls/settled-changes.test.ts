import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inSimulatedTime } from '../../../test/simulated-time.ts';
import { losingAnswers } from '../../../test/contracts/lost-answers.ts';
import { BigtableError, Code, unavailable } from '../../base/index.ts';
import { ManualClock } from '../memory/manual-clock.ts';
import { MemoryLockService } from '../memory/memory-lock-service.ts';
import type { LockHandle } from '../seams/lock-service.ts';
import { removeSettled, writeSettled } from './settled-changes.ts';

const ONE = Uint8Array.of(1);
const TWO = Uint8Array.of(2);

/** Its writes and removals fail with these errors first, without having happened. */
class Failing extends MemoryLockService {
  readonly failures: BigtableError[] = [];
  attempts = 0;

  override async write(...args: Parameters<MemoryLockService['write']>): Promise<number> {
    return this.#fail(() => super.write(...args));
  }

  override async remove(...args: Parameters<MemoryLockService['remove']>): Promise<boolean> {
    return this.#fail(() => super.remove(...args));
  }

  async #fail<T>(change: () => Promise<T>): Promise<T> {
    this.attempts++;
    const failure = this.failures.shift();
    if (failure) throw failure;
    return change();
  }
}

async function masterLock(service: MemoryLockService): Promise<LockHandle> {
  const lock = await service.tryAcquire('master', await service.openSession());
  assert.ok(lock);
  return lock;
}

function inTime(work: (service: Failing, clock: ManualClock) => Promise<void>): () => Promise<void> {
  const clock = new ManualClock();
  return () => inSimulatedTime(clock, work(new Failing(), clock));
}

describe('guarded changes that are sent until they are settled', () => {
  test(
    'fail without a repetition if they are refused, or surely did not happen',
    inTime(async (lockService, clock) => {
      await lockService.write('a', ONE);
      lockService.attempts = 0;
      await assert.rejects(writeSettled({ lockService, clock }, 'a', TWO, { version: 0 }), { code: Code.ABORTED });
      lockService.failures.push(new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
      await assert.rejects(removeSettled({ lockService, clock }, 'a', { version: 0 }), {
        code: Code.RESOURCE_EXHAUSTED,
      });
      assert.equal(lockService.attempts, 2);
    }),
  );

  test(
    'fail with UNAVAILABLE if no attempt is answered, for whatever reason the last one failed',
    inTime(async (lockService, clock) => {
      lockService.failures.push(...Array.from({ length: 6 }, () => unavailable('away')));
      await assert.rejects(writeSettled({ lockService, clock }, 'a', ONE, { version: 0 }), { code: Code.UNAVAILABLE });
      assert.equal(lockService.attempts, 6);
      lockService.failures.push(...Array.from({ length: 5 }, () => unavailable('away')));
      lockService.failures.push(new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
      await assert.rejects(writeSettled({ lockService, clock }, 'a', ONE, { version: 0 }), { code: Code.UNAVAILABLE });
    }),
  );

  test(
    'are refused if another change came first, or the lock was lost',
    inTime(async (inner, clock) => {
      const lock = await masterLock(inner);
      const version = await inner.write('a', ONE);
      inner.failures.push(unavailable('away'));
      const writing = writeSettled({ lockService: inner, clock }, 'a', TWO, { version });
      await inner.write('a', ONE);
      await assert.rejects(writing, { code: Code.ABORTED });
      const file = await inner.read('a');
      assert.ok(file);
      inner.failures.push(unavailable('away'));
      // the contents are those of the file as it was before
      const same = writeSettled({ lockService: inner, clock }, 'a', ONE, { version: file.version, lock });
      await inner.release(lock);
      await assert.rejects(same, { code: Code.ABORTED });
    }),
  );

  test(
    'have happened if their answer is lost, and that of the read after it',
    inTime(async (inner, clock) => {
      const { service } = losingAnswers(inner, () => true);
      const version = await writeSettled({ lockService: service, clock }, 'a', ONE, { version: 0 });
      await removeSettled({ lockService: service, clock }, 'a', { version });
      assert.equal(await inner.read('a'), undefined);
    }),
  );

  test(
    'create no file once more when an attempt arrives after the file was removed',
    inTime(async (lockService, clock) => {
      const late: (() => Promise<unknown>)[] = [];
      const losing = losingWrites(lockService, late);
      await lockService.write('d/other', ONE);
      const version = await writeSettled({ lockService: losing, clock }, 'd/a', ONE, { version: 0 });
      assert.equal(late.length, 1);
      await removeSettled({ lockService, clock }, 'd/a', { version });
      await assert.rejects(late[0]!(), { code: Code.ABORTED });
      assert.equal(await lockService.read('d/a'), undefined);
    }),
  );

  test(
    'create a file though others of its directory are removed meanwhile',
    inTime(async (lockService, clock) => {
      await lockService.write('d/other', ONE);
      let removals = 0;
      const racing = {
        read: (path: string) => lockService.read(path),
        lastRemoval: async (path: string) => {
          const last = await lockService.lastRemoval(path);
          if (removals++ < 2) await lockService.remove('d/other');
          if (removals < 2) await lockService.write('d/other', ONE);
          return last;
        },
        write: (...call: Parameters<MemoryLockService['write']>) => lockService.write(...call),
      };
      await writeSettled({ lockService: racing, clock }, 'd/a', TWO, { version: 0 });
      assert.deepEqual((await lockService.read('d/a'))?.contents, TWO);
      await assert.rejects(writeSettled({ lockService: racing, clock }, 'd/a', ONE, { version: 0 }), {
        code: Code.ABORTED,
      });
    }),
  );
});

/** The first write fails, and happens when the caller lets it. */
function losingWrites(lockService: MemoryLockService, late: (() => Promise<unknown>)[]) {
  return {
    read: (path: string) => lockService.read(path),
    lastRemoval: (path: string) => lockService.lastRemoval(path),
    write: (...call: Parameters<MemoryLockService['write']>): Promise<number> => {
      if (late.length > 0) return lockService.write(...call);
      late.push(() => lockService.write(...call));
      return Promise.reject(unavailable('no answer'));
    },
  };
}
