import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/index.ts';
import type { LockHandle } from '../../src/env/index.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { newPrefix, openAt } from './fixtures.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { until } from './until.ts';
import { Watched } from './watched.ts';

let etcd: EtcdCluster;
before(async () => {
  etcd = await EtcdCluster.start();
});
after(() => etcd.close());

async function behindProxy(prefix: string) {
  const proxy = await TcpProxy.to(etcd.members[0]!.clientPort);
  const service = await openAt([proxy.endpoint], prefix);
  return {
    proxy,
    service,
    close: async () => {
      await service.close();
      proxy.close();
    },
  };
}

describe('a session on etcd whose process stalls', () => {
  test('outlasts a stall of the main thread that is longer than its lease', async () => {
    const prefix = newPrefix();
    const [service, other] = [await openAt(etcd.endpoints, prefix), await openAt(etcd.endpoints, prefix)];
    const session = await service.openSession();
    const lock = await service.tryAcquire('l', session);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 13_000);
    assert.equal(service.leaseHolds(session), true);
    assert.deepEqual(await other.holder('l'), lock);
    assert.equal(service.leaseHolds(session), true);
    await service.close();
    await other.close();
  });
});

describe('a session on etcd', { concurrency: true }, () => {
  test('lapses without keep-alives: its owner knows it before others get its locks', async () => {
    const prefix = newPrefix();
    const { proxy, service, close } = await behindProxy(prefix);
    const direct = await openAt(etcd.endpoints, prefix);
    const seen = new Watched(direct, '');
    const session = await service.openSession();
    await service.tryAcquire('l', session);
    await service.write('f', Buffer.from('x'), { sessionId: session });
    const others = await direct.openSession();
    proxy.goSilent();
    assert.equal(service.leaseHolds(session), true);
    let held = true;
    await until('another session gets the lock', async () => {
      if ((await direct.tryAcquire('l', others)) !== undefined) return true;
      const holds = service.leaseHolds(session);
      assert.ok(held || !holds, 'a lease that has lapsed does not hold again without a keep-alive');
      held = holds;
      return false;
    });
    assert.equal(held, false, 'the lease lapsed before the lock was free');
    await seen.kind('session-expired');
    assert.equal(await direct.read('f'), undefined);
    assert.deepEqual(
      seen.events.filter(({ kind }) => kind !== 'established' && kind !== 'changed'),
      [
        { kind: 'deleted', path: 'f' },
        { kind: 'lock-lost', path: 'l', sessionId: session },
        { kind: 'session-expired', sessionId: session },
      ],
    );
    proxy.pass();
    await assert.rejects(service.tryAcquire('m', session), { code: Code.FAILED_PRECONDITION });
    assert.equal(service.leaseHolds(session), false);
    await service.closeSession(session);
    await close();
    await direct.close();
  });

  test('whose lease has lapsed holds again if a keep-alive arrives in time, and else is over', async () => {
    const prefix = newPrefix();
    const own = await EtcdCluster.start();
    const [service, other] = [await openAt(own.endpoints, prefix), await openAt(own.endpoints, prefix)];
    const session = await service.openSession();
    const lock = await service.tryAcquire('l', session);
    await own.members[0]!.stop();
    await until('the lease lapses', () => !service.leaseHolds(session));
    own.members[0]?.goOn();
    let holder: LockHandle | undefined;
    await until('the lock is free, or its session holds again', async () => {
      holder = await other.holder('l');
      return holder === undefined || service.leaseHolds(session);
    });
    if (holder === undefined) assert.equal(service.leaseHolds(session), false);
    else assert.deepEqual(holder, lock, 'the lock was never free');
    await service.close();
    await other.close();
    await own.close();
  });

  test('is ended by another process: its owner learns it from the next keep-alive', async () => {
    const prefix = newPrefix();
    const [service, other] = [await openAt(etcd.endpoints, prefix), await openAt(etcd.endpoints, prefix)];
    const session = await service.openSession();
    await other.closeSession(session);
    await until('the owner learns it', () => !service.leaseHolds(session));
    await service.close();
    await other.close();
  });

  test('of each kind of end leaves its place to others', async () => {
    const service = await openAt(etcd.endpoints, newPrefix());
    for (let i = 0; i < 3; i++) {
      const sessions = await Promise.all(Array.from({ length: 500 }, () => service.openSession()));
      assert.ok(sessions.every((session) => service.leaseHolds(session)));
      await Promise.all(sessions.map((session) => service.closeSession(session)));
      assert.ok(!sessions.some((session) => service.leaseHolds(session)));
    }
    await service.close();
  });

  test('that only a stopped leader knew as alive: its owner knows the end before others do', async () => {
    const prefix = newPrefix();
    const own = await EtcdCluster.start({ members: 3 });
    const leader = await own.leader();
    const endpoints = own.members.filter((member) => member !== leader).map(({ endpoint }) => endpoint);
    const [service, other] = [await openAt([leader.endpoint], prefix), await openAt(endpoints, prefix)];
    const session = await service.openSession();
    await service.tryAcquire('l', session);
    const others = await other.openSession();
    // keep-alives go to this member alone
    await leader.stop();
    const othersTry = () => other.tryAcquire('l', others).catch(() => undefined);
    await until('others get the lock', async () => (await othersTry()) !== undefined);
    assert.equal(service.leaseHolds(session), false);
    leader.goOn();
    const isKnown = async (): Promise<boolean> => {
      const lock = await service.holder('l');
      if (lock !== undefined) return lock.sessionId === others;
      // it may end sessions that were kept alive while it stood still (docs/decisions/0080-etcd.md)
      return !other.leaseHolds(others);
    };
    await until('the leader of before knows as much as the others', () => isKnown().catch(() => false));
    assert.equal(service.leaseHolds(session), false);
    await service.close();
    await other.close();
    await own.close();
  });
});
