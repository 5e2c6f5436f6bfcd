import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import type { ServerSettings } from './server-settings.ts';
import { checkTogether, describeMemory } from './settings-checks.ts';
import { effectiveSettings } from './settings-sources.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** With a block cache and indexes of 64 MiB each. */
function settings(flags: Partial<ServerSettings> = {}): ServerSettings {
  return effectiveSettings({ flags: { blockCacheBytes: 64 * MIB, indexBytes: 64 * MIB, ...flags }, environment: {} })
    .values;
}

describe('settings together', () => {
  test('enough memory is reported without a warning', () => {
    assert.deepEqual(checkTogether(settings(), 'serve', GIB), []);
    assert.equal(
      describeMemory(settings(), 1.5 * GIB),
      'memory: 400 MiB of 1.5 GiB: memtables 64 MiB, block cache 64 MiB, row cache 16 MiB, indexes 64 MiB, requests 128 MiB, in-memory groups 64 MiB',
    );
  });

  test('a sum above the memory is a warning; the program and its threads count', () => {
    const available = (400 + 80) * MIB;
    assert.deepEqual(checkTogether(settings(), 'serve', available), []);
    assert.match(
      String(checkTogether(settings(), 'serve', available - 1)),
      /^the memory that settings allow \(400 MiB\) and the program \(about 80 MiB\) are more than there is \(480 MiB\): memtables 64 MiB/,
    );
    assert.match(
      String(checkTogether(settings({ tabletServers: 4 }), 'serve', available)),
      /the program \(about 144 MiB\)/,
    );
  });

  test('one size above the memory is refused, but a default is not', () => {
    assert.throws(() => checkTogether(settings({ memtableBytes: 200 * MIB }), 'serve', 150 * MIB), {
      code: Code.INVALID_ARGUMENT,
      message: /^memtable-bytes is 200 MiB, more than the memory there is \(150 MiB\)$/,
    });
    assert.equal(checkTogether(settings(), 'serve', 100 * MIB).length, 1);
  });

  test('all contradictions are reported together', () => {
    const message =
      /^3 settings are wrong:\n {2}TLS needs both .*\n {2}tokens of an issuer need all of .*\n {2}scan-cache-bytes is 2 GiB, more than/;
    assert.throws(
      () => checkTogether(settings({ tlsKey: 'k', jwtIssuer: 'i', scanCacheBytes: 2 * GIB }), 'serve', GIB),
      {
        message,
      },
    );
  });

  test('a cluster needs a lock service and a store, and serve takes neither', () => {
    const cluster = { lock: 'etcd://127.0.0.1', files: '/store' };
    for (const command of ['tabletserver', 'master'] as const) {
      assert.deepEqual(checkTogether(settings(cluster), command, GIB), []);
      assert.throws(() => checkTogether(settings(), command, GIB), {
        code: Code.INVALID_ARGUMENT,
        message:
          /^2 settings are wrong:\n {2}a cluster needs a lock service: --lock etcd:.*\n {2}a cluster needs a store/,
      });
      for (const [more, what] of [
        [{ lockUser: 'u' }, /a user of etcd needs both/],
        [{ lockCert: 'c', lockKey: 'k' }, /a certificate for etcd needs all of/],
        [{ clusterCa: 'a' }, /TLS between the processes of a cluster needs all of/],
      ] as const)
        assert.throws(() => checkTogether(settings({ ...cluster, ...more }), command, GIB), what);
    }
    assert.throws(
      () => checkTogether(settings(cluster), 'serve', GIB),
      /lock is for a cluster: use edubba tabletserver/,
    );
  });
});
