import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BigtableError, Code } from '../../src/base/index.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { gateway, newPrefix, openAt } from './fixtures.ts';
import { Watched } from './watched.ts';

const CERTIFICATES = fileURLToPath(new URL('../certificates/', import.meta.url)).replace('/dist/', '/');
const pem = (name: string): string => readFileSync(`${CERTIFICATES}${name}.pem`, 'utf8');
const key = (name: string): string => readFileSync(`${CERTIFICATES}${name}.key`, 'utf8');
const refusedWith = (code: Code, form: RegExp) => (error: unknown) =>
  error instanceof BigtableError && error.code === code && form.test(error.message);

/** An etcd that asks for users: root, and one who has the keys of the prefix. */
async function withUsers(prefix: string): Promise<EtcdCluster> {
  const etcd = await EtcdCluster.start();
  await gateway(etcd, 'auth/user/add', { name: 'root', password: 'r' });
  await gateway(etcd, 'auth/user/grant', { user: 'root', role: 'root' });
  await gateway(etcd, 'auth/user/add', { name: 'edubba', password: 'secret' });
  await gateway(etcd, 'auth/role/add', { name: 'cluster' });
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  await gateway(etcd, 'auth/role/grant', {
    name: 'cluster',
    perm: { permType: 'READWRITE', key: base64(`${prefix}/`), range_end: base64(`${prefix}0`) },
  });
  await gateway(etcd, 'auth/user/grant', { user: 'edubba', role: 'cluster' });
  await gateway(etcd, 'auth/enable', {});
  return etcd;
}

describe('an etcd with users', { concurrency: true }, () => {
  test('serves the user who has the keys of the prefix, and refuses others with words', async () => {
    const prefix = newPrefix();
    const etcd = await withUsers(prefix);
    const login = { user: 'edubba', password: 'secret' };
    try {
      const service = await openAt(etcd.endpoints, prefix, login);
      const seen = new Watched(service, '');
      const session = await service.openSession();
      const lock = await service.tryAcquire('l', session);
      await service.write('a', Buffer.from('x'), { lock: lock!, sessionId: session });
      await seen.kind('changed');
      await service.closeSession(session);
      await seen.kind('lock-lost');

      const at = `^etcd at ${etcd.endpoints[0]}: `;
      for (const [prefixOf, given, code, form] of [
        [prefix, {}, Code.UNAUTHENTICATED, `${at}.*user name is empty.*: it needs a user`],
        [prefix, { ...login, password: 'x' }, Code.UNAUTHENTICATED, `${at}.*: check user and password`],
        [newPrefix(), login, Code.PERMISSION_DENIED, `${at}.*permission denied`],
      ] as const)
        await assert.rejects(openAt(etcd.endpoints, prefixOf, given), refusedWith(code, new RegExp(form)));

      // tokens are in the memory of the member: calls, the watch and the keep-alives sign in again
      const kept = await service.openSession();
      const other = await openAt(etcd.endpoints, prefix, login);
      const from = seen.events.length;
      await etcd.members[0]?.kill();
      etcd.members[0]?.start();
      await etcd.members[0]?.ready();
      await other.write('a', Buffer.from('y'));
      await seen.kind('changed', from);
      await other.close();
      assert.equal(Buffer.from((await service.read('a'))!.contents).toString(), 'y');
      // longer than a lease that is not kept alive
      const endMs = performance.now() + 11_000;
      while (performance.now() < endMs) {
        assert.equal(service.leaseHolds(kept), true);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }

      const root = { user: 'root', password: 'r' };
      const { token } = (await gateway(etcd, 'auth/authenticate', { name: root.user, password: root.password })) as {
        token: string;
      };
      await gateway(etcd, 'auth/user/revoke', { name: 'edubba', role: 'cluster' }, token);
      await assert.rejects(service.read('a'), refusedWith(Code.PERMISSION_DENIED, new RegExp(at)));
      const later = new Watched(service, 'b');
      later.stop();
      seen.stop();
      const refused = new Watched(service, '');
      await refused.kind('ended');
      await service.close();
    } finally {
      await etcd.close();
    }
  });

  test('or without: a user is refused', async () => {
    const etcd = await EtcdCluster.start();
    try {
      await assert.rejects(
        openAt(etcd.endpoints, newPrefix(), { user: 'edubba', password: 'secret' }),
        refusedWith(Code.FAILED_PRECONDITION, /authentication is not enabled.*: leave out user and password/),
      );
    } finally {
      await etcd.close();
    }
  });
});

describe('an etcd with TLS', () => {
  test('serves clients with a certificate of its authority', async () => {
    const files = ['--cert-file', 'server.pem', '--key-file', 'server.key', '--trusted-ca-file', 'ca.pem'];
    const args = files.map((word) => (word.startsWith('--') ? word : CERTIFICATES + word));
    const etcd = await EtcdCluster.start({ scheme: 'https', args: [...args, '--client-cert-auth'] });
    try {
      const tls = { ca: pem('ca'), cert: pem('client'), key: key('client') };
      const service = await openAt(etcd.endpoints, newPrefix(), { tls });
      const session = await service.openSession();
      assert.ok(await service.tryAcquire('l', session));
      assert.equal(service.leaseHolds(session), true);
      await service.close();
      const others = [
        [{}, /speaks TLS|speak TLS|closed the connection/],
        [{ tls: { cert: tls.cert, key: tls.key } }, /certificate/],
        [{ tls: { ca: tls.ca } }, /certificate|closed|lost|handshake/],
      ] as const;
      await Promise.all(
        others.map(([given, form]) =>
          assert.rejects(openAt(etcd.endpoints, newPrefix(), given), refusedWith(Code.UNAVAILABLE, form)),
        ),
      );
    } finally {
      await etcd.close();
    }
  });
});

describe('a prefix of etcd', () => {
  test('in another format is refused', async () => {
    const etcd = await EtcdCluster.start();
    try {
      const prefix = newPrefix();
      const base64 = (text: string): string => Buffer.from(text).toString('base64');
      await gateway(etcd, 'kv/put', { key: base64(`${prefix}/format`), value: base64('2') });
      await assert.rejects(
        openAt(etcd.endpoints, prefix),
        refusedWith(Code.FAILED_PRECONDITION, /written in format "2", this release reads format 1/),
      );
    } finally {
      await etcd.close();
    }
  });
});
