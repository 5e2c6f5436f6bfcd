import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EtcdCluster } from './etcd-cluster.ts';
import { compact, newPrefix, openAt } from './fixtures.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { Watched } from './watched.ts';

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));

describe('a watch of etcd', { concurrency: true }, () => {
  test('whose stream breaks goes on, and misses nothing', async () => {
    const etcd = await EtcdCluster.start();
    const proxy = await TcpProxy.to(etcd.members[0]!.clientPort);
    const prefix = newPrefix();
    const [service, direct] = [await openAt([proxy.endpoint], prefix), await openAt(etcd.endpoints, prefix)];
    const seen = new Watched(service, '');
    const versions: number[] = [];
    for (let i = 0; i < 60; i++) {
      if (i % 10 === 5) proxy.refuse();
      if (i % 10 === 8) proxy.pass();
      versions.push(await direct.write('a', bytes(`${i}`)));
    }
    await seen.until((event) => event.kind === 'changed' && event.version === versions.at(-1));
    assert.deepEqual(seen.versionsOf('a'), versions);
    await service.close();
    await direct.close();
    proxy.close();
    await etcd.close();
  });

  test('a watch whose revisions were compacted while it was broken has a gap, and goes on', async () => {
    const etcd = await EtcdCluster.start();
    const proxy = await TcpProxy.to(etcd.members[0]!.clientPort);
    const prefix = newPrefix();
    const [service, direct] = [await openAt([proxy.endpoint], prefix), await openAt(etcd.endpoints, prefix)];
    const seen = new Watched(service, '');
    await direct.write('a', bytes('1'));
    await seen.kind('changed');
    proxy.refuse();
    await direct.write('a', bytes('2'));
    await direct.remove('a');
    await compact(etcd, await direct.write('b', bytes('1')));
    const last = await direct.write('b', bytes('2'));
    proxy.pass();
    await seen.until((event) => event.kind === 'changed' && event.version === last);
    const kinds = seen.events.map(({ kind }) => kind);
    assert.deepEqual(kinds.filter((kind) => kind === 'gap').length, 1);
    assert.ok(kinds.indexOf('gap') > kinds.indexOf('changed') && kinds.indexOf('gap') < kinds.lastIndexOf('changed'));
    assert.ok(!seen.events.some((event) => event.kind === 'deleted'), 'what was compacted is not reported');
    await service.close();
    assert.equal(seen.events.at(-1)?.kind, 'ended');
    await direct.close();
    proxy.close();
    await etcd.close();
  });

  test('that begins after a compaction of what its adapter has not seen has a gap', async () => {
    const etcd = await EtcdCluster.start();
    const prefix = newPrefix();
    const [service, other] = [await openAt(etcd.endpoints, prefix), await openAt(etcd.endpoints, prefix)];
    for (let i = 0; i < 3; i++) await other.write('a', bytes(`${i}`));
    await compact(etcd, await other.write('a', bytes('3')));
    const seen = new Watched(service, '');
    const version = await service.write('b', bytes('1'));
    await seen.until((event) => event.kind === 'changed' && event.version === version);
    const kinds = seen.events.map(({ kind }) => kind);
    assert.deepEqual(kinds.slice(0, 2), ['established', 'gap']);
    await service.close();
    await other.close();
    await etcd.close();
  });

  test('whose member falls silent goes on at another one, though no call is made', async () => {
    const own = await EtcdCluster.start({ members: 3 });
    const prefix = newPrefix();
    const proxies = await Promise.all(own.members.map(({ clientPort }) => TcpProxy.to(clientPort)));
    const service = await openAt(
      proxies.map(({ endpoint }) => endpoint),
      prefix,
    );
    const other = await openAt(own.endpoints, prefix);
    const seen = new Watched(service, '');
    await seen.kind('established');
    const watched = proxies.find(({ connections }) => connections > 0);
    assert.ok(watched !== undefined);
    watched.goSilent();
    const version = await other.write('a', bytes('1'));
    await seen.until((event) => event.kind === 'changed' && event.version === version);
    assert.ok(!seen.events.some(({ kind }) => kind === 'gap'));
    await service.close();
    await other.close();
    for (const proxy of proxies) proxy.close();
    await own.close();
  });

  test('ends when etcd stays away, and another one may begin', async () => {
    const etcd = await EtcdCluster.start();
    const proxy = await TcpProxy.to(etcd.members[0]!.clientPort);
    const service = await openAt([proxy.endpoint], newPrefix());
    const seen = new Watched(service, '');
    await seen.kind('established');
    proxy.refuse();
    await seen.kind('ended');
    proxy.pass();
    const again = new Watched(service, '');
    await service.write('a', bytes('x'));
    await again.kind('changed');
    await service.close();
    proxy.close();
    await etcd.close();
  });
});
