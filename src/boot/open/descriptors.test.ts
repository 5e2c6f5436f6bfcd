import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { shareDescriptors } from './descriptors.ts';

describe('shares of descriptors', () => {
  const uses = fc.record({
    tabletServers: fc.integer({ min: 1, max: 64 }),
    compactionsAtOnce: fc.integer({ min: 1, max: 64 }),
    serves: fc.boolean(),
  });

  test('leave descriptors for logs, threads and files, whatever the limit; where it is too low the error states a sufficient one', () => {
    fc.assert(
      fc.property(uses, fc.integer({ min: 1, max: 1_100_000 }), (use, limit) => {
        const fileSystems =
          1 + (use.tabletServers > 1 ? use.tabletServers : 0) + use.tabletServers * use.compactionsAtOnce;
        try {
          const { openFiles, connections } = shareDescriptors(limit, use);
          assert.ok(openFiles >= 4 && openFiles <= 256);
          if (use.serves) assert.ok(connections >= 16 * use.tabletServers);
          const reserve = limit - connections - openFiles * fileSystems;
          assert.ok(
            reserve >= 37 + use.tabletServers * (6 + 6 * use.compactionsAtOnce) + fileSystems * 8,
            `${reserve} are left`,
          );
        } catch (error) {
          assert.ok(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED, String(error));
          const needed = Number(/at least (\d+)/.exec(error.message)?.[1]);
          assert.ok(needed > limit && error.message.includes(`may open ${limit} files`), error.message);
          shareDescriptors(needed, use);
        }
      }),
    );
  });

  test('of usual limits', () => {
    const use = { tabletServers: 1, compactionsAtOnce: 1, serves: true };
    assert.deepEqual(shareDescriptors(256, use), { openFiles: 23, connections: 145 });
    assert.deepEqual(shareDescriptors(1024, use), { openFiles: 119, connections: 721 });
    assert.deepEqual(shareDescriptors(20_000, use), { openFiles: 256, connections: 19_423 });
    assert.deepEqual(shareDescriptors(undefined, use), { openFiles: 256, connections: Number.POSITIVE_INFINITY });
    assert.throws(() => shareDescriptors(24, use), {
      message: /may open 24 files, and a database needs at least 89: raise the limit of open files \(ulimit -n 89/,
    });
  });
});
