/** A store that keeps its promises passes the self-test without a trace, and one that breaks a promise is named. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quickClock } from '../../../test/simulated-time.ts';
import { unavailable } from '../../base/index.ts';
import { MemoryFileSystem } from '../memory/memory-file-system.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';
import { SeededRandom } from '../memory/seeded-random.ts';
import type { StoredFiles } from '../seams/file-system.ts';
import type { SlotStore } from '../seams/slot-store.ts';
import { proveStore } from './store-self-test.ts';

interface Stores {
  readonly files: StoredFiles;
  readonly slots: SlotStore;
}

function stores(): { files: MemoryFileSystem; slots: MemorySlotStore } {
  return { files: new MemoryFileSystem(), slots: new MemorySlotStore({ pageSize: 3 }) };
}

function proved({ files, slots }: Stores): Promise<void> {
  return proveStore({ files, slots, where: 'the store', clock: quickClock(), random: new SeededRandom(1) });
}

/** The object with some of its methods replaced; the others keep their `this`. */
function but<T extends object>(object: T, replaced: Partial<T>): T {
  return new Proxy(object, {
    get: (target, name: string & keyof T) => {
      const value = replaced[name] ?? target[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('a store that keeps its promises has nothing of the self-test afterwards', async () => {
  const { files, slots } = stores();
  await proved({ files, slots });
  assert.deepEqual(await files.list(''), []);
  assert.deepEqual(await slots.listLogs('', ''), []);
});

test('calls of unknown outcome begin the self-test anew, under another name', async () => {
  const { files, slots } = stores();
  let lost = 0;
  const create: SlotStore['create'] = async (...args) => {
    const isCreated = await slots.create(...args);
    if (lost++ < 2) throw unavailable('the answer was lost');
    return isCreated;
  };
  await proved({ files, slots: but(slots, { create }) });
  await assert.rejects(proved({ files, slots: but(slots, { create: async () => Promise.reject(unavailable('x')) }) }), {
    codeName: 'UNAVAILABLE',
  });
});

for (const [what, broken, words] of [
  [
    'slots that replace',
    ({ files, slots }: Stores) => ({
      files,
      slots: but(slots, { create: async (...args) => (await slots.create(...args), true) }),
    }),
    /of 8 that create one slot together one succeeds \(8 did\)/,
  ],
  [
    'files that replace',
    ({ files, slots }: Stores) => ({
      slots,
      files: but<StoredFiles>(files, {
        create: async (path) => {
          await files.delete(path);
          const writer = await files.create(path);
          return { append: (bytes) => writer.append(bytes), abort: () => writer.abort(), close: async () => undefined };
        },
      }),
    }),
    /of 8 that create one file together one succeeds/,
  ],
  [
    'a list that lags',
    ({ files, slots }: Stores) => ({
      files,
      slots: but(slots, { listSlots: async () => ({ slots: [], isLast: true }) }),
    }),
    /a list shows a slot as soon as it was created/,
  ],
  [
    'a list of files that lags',
    ({ files, slots }: Stores) => ({ slots, files: but<StoredFiles>(files, { list: async () => [] }) }),
    /a list shows a file as soon as it was created/,
  ],
  [
    'ranges that are ignored',
    ({ files, slots }: Stores) => ({
      slots,
      files: but<StoredFiles>(files, { read: async (path) => files.read(path, 0, await files.size(path)) }),
    }),
    /a range of a file reads as it was written/,
  ],
  [
    'slots that stay',
    ({ files, slots }: Stores) => ({ files, slots: but(slots, { delete: async () => undefined }) }),
    /a deleted slot is gone/,
  ],
  [
    'reads of other slots',
    ({ files, slots }: Stores) => ({
      files,
      slots: but(slots, {
        read: async (...args) => {
          if (args[1] !== 4) return slots.read(...args);
          return slots.read(args[0], 0, 0, 1);
        },
      }),
    }),
    /a slot that was not created is not there/,
  ],
] as const)
  test(`${what} are refused with the promise that is broken`, async () => {
    const message = new RegExp(`the store cannot hold a database: it breaks the promise that ${words.source}`);
    await assert.rejects(proved(broken(stores())), (error: Error) => {
      assert.match(error.message, message);
      return 'codeName' in error && error.codeName === 'FAILED_PRECONDITION';
    });
  });
