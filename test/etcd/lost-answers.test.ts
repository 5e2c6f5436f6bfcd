import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code } from '../../src/base/index.ts';
import { type LockHandle, SeededRandom } from '../../src/env/index.ts';
import type { EtcdLockService } from '../../src/platform/index.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { newPrefix, openAt } from './fixtures.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { Watched } from './watched.ts';

let etcd: EtcdCluster;
before(async () => {
  etcd = await EtcdCluster.start();
});
after(() => etcd.close());

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));

async function lossy(run: (service: EtcdLockService, proxy: TcpProxy, direct: EtcdLockService) => Promise<void>) {
  const proxy = await TcpProxy.to(etcd.members[0]!.clientPort);
  const prefix = newPrefix();
  const [service, direct] = [await openAt([proxy.endpoint], prefix), await openAt(etcd.endpoints, prefix)];
  try {
    await run(service, proxy, direct);
  } finally {
    await service.close();
    await direct.close();
    proxy.close();
  }
}

describe('an answer of etcd is lost with its connection', () => {
  test('each call happens once, and says what it did', async () => {
    await lossy(async (service, proxy, direct) => {
      const lose = async <T>(call: () => Promise<T>): Promise<T> => {
        const lost = proxy.lostAnswers;
        proxy.loseAnswer(0);
        const result = await call();
        assert.equal(proxy.lostAnswers, lost + 1);
        return result;
      };
      const seen = new Watched(direct, '');
      const session = await lose(() => service.openSession());
      assert.equal(service.leaseHolds(session), true);
      const lock = await lose(() => service.tryAcquire('l', session));
      assert.ok(lock);
      assert.deepEqual(await direct.holder('l'), lock);
      const first = await lose(() => service.write('a', bytes('1'), { version: 0, lock, sessionId: session }));
      const second = await lose(() => service.write('a', bytes('2'), { version: first, lock }));
      assert.equal((await lose(() => service.read('a')))?.version, second);
      assert.equal((await lose(() => service.list('')))[0]?.version, second);
      await lose(() => service.release(lock));
      assert.equal(await lose(() => service.holder('l')), undefined);
      assert.equal(await lose(() => service.tryAcquire('l', 'no session')).catch((error) => error.code), 9);
      await lose(() => service.closeSession(session));
      await direct.write('last', bytes('x'));
      await seen.until((event) => event.kind === 'changed' && event.path === 'last');
      assert.deepEqual(seen.versionsOf('a'), [first, second]);
      assert.equal(seen.events.filter(({ kind }) => kind === 'lock-lost').length, 1);
      assert.equal(seen.events.filter(({ kind }) => kind === 'session-expired').length, 0);
    });
  });

  test('a refusal is one: it says that the call did nothing, or that this is not known', async () => {
    await lossy(async (service, proxy) => {
      const version = await service.write('a', bytes('1'));
      proxy.loseAnswer(0);
      await assert.rejects(service.write('a', bytes('2'), { version: version - 1 }), { code: Code.ABORTED });
      proxy.loseAnswer(0);
      // the file may have been written by an earlier try, and removed since
      await assert.rejects(service.write('b', bytes('2'), { version }), { code: Code.UNAVAILABLE });
      proxy.loseAnswer(0);
      await assert.rejects(service.remove('a', { version }), { code: Code.UNAVAILABLE });
      assert.equal(await service.read('a'), undefined);
    });
  });

  test('any sequence of calls leaves what its answers say, and a watch reports each change once', async () => {
    await lossy(async (service, proxy, direct) => {
      const random = new SeededRandom(7);
      const draw = <T>(items: readonly T[]): T => items[Math.floor(random.float() * items.length)]!;
      const seen = new Watched(service, '');
      const versions = new Map<string, number[]>();
      const locks = new Map<string, LockHandle>();
      const session = await service.openSession();
      for (let i = 0; i < 300; i++) {
        if (i % 2 === 0) proxy.loseAnswer(Math.floor(random.float() * 3));
        const path = draw(['a', 'b', 'c']);
        if (random.float() < 0.6) {
          const known = versions.get(path) ?? [];
          const guard = random.float() < 0.5 ? {} : { version: known.at(-1) ?? 0 };
          known.push(await service.write(path, bytes(`${i}`), guard));
          versions.set(path, known);
        } else if (locks.has(path)) {
          await service.release(locks.get(path)!);
          locks.delete(path);
        } else {
          const lock = await service.tryAcquire(path, session);
          assert.ok(lock !== undefined);
          locks.set(path, lock);
        }
        assert.deepEqual(await direct.holder(path), locks.get(path));
        assert.equal((await direct.read(path))?.version, versions.get(path)?.at(-1));
      }
      assert.ok(proxy.lostAnswers > 50, `${proxy.lostAnswers} answers were lost`);
      const last = await service.write('last', bytes('x'));
      await seen.until((event) => event.kind === 'changed' && event.version === last);
      for (const [path, written] of versions) assert.deepEqual(seen.versionsOf(path), written, path);
      assert.ok(!seen.events.some(({ kind }) => kind === 'gap' || kind === 'ended'));
    });
  });

  test('an etcd that cannot be reached fails calls, with the member and the reason', async () => {
    await lossy(async (service, proxy) => {
      proxy.refuse();
      const failures = await Promise.allSettled([service.write('a', bytes('1')), service.openSession()]);
      for (const failure of failures) {
        assert.ok(failure.status === 'rejected' && failure.reason instanceof BigtableError);
        assert.equal(failure.reason.code, Code.UNAVAILABLE);
        assert.match(failure.reason.message, new RegExp(`^etcd at ${proxy.endpoint}: .* \\(\\d+ tries\\)$`));
      }
      proxy.pass();
      assert.equal(await service.read('a'), undefined);
      await assert.rejects(openAt(['127.0.0.1:1'], 'p'), /etcd at 127\.0\.0\.1:1: cannot reach a server/);
    });
  });
});
