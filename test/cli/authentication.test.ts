/**
 * `edubba serve` with TLS, tokens and certificates, and the commands that speak to it, as processes and users have
 * them.
 */
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Child, documents, edubba, output, temporaryDirectory } from './run.ts';

/** Copies, since keys in a checkout can be read by others, which commands complain of. */
const certificates = mkdtempSync(join(tmpdir(), 'edubba-certificates-'));
for (const name of readdirSync('test/certificates')) {
  copyFileSync(`test/certificates/${name}`, join(certificates, name));
  chmodSync(join(certificates, name), 0o600);
}
after(() => rmSync(certificates, { recursive: true }));

const pem = (name: string): string => join(certificates, name);
const TLS = ['--tls-key', pem('server.key'), '--tls-cert', pem('server.pem')];

describe('edubba token', () => {
  test('makes, lists and removes tokens', async (t) => {
    const file = join(await temporaryDirectory(t), 'tokens.txt');
    const token = (await output(['token', 'add', file, 'alice'])).trim();
    assert.match(token, /^edubba_[a-z0-9]{8}_[A-Za-z0-9_-]{43}$/);
    await output(['token', 'add', file, 'bob']);
    assert.ok(!(await readFile(file, 'utf8')).includes(token.slice(-43)));
    const listed = documents(await output(['--json', 'token', 'list', file]));
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['alice', 'bob'],
    );
    assert.ok(token.includes(String(listed[0]?.id)));
    assert.match(await output(['token', 'list', file]), /^[a-z0-9]{8} {2}20\d\d-\S+Z {2}alice\n/);
    assert.match(await output(['token', 'remove', file, 'alice']), /alice\n$/);
    const { status, err } = await edubba(['token', 'remove', file, 'alice']);
    assert.deepEqual([status, err.split(':', 2)[1]], [1, ' NOT_FOUND']);
  });
});

describe('edubba serve, guarded', () => {
  test('with TLS and tokens it may be public; who has no token is refused', async (t) => {
    const directory = await temporaryDirectory(t);
    const [tokens, mine] = [join(directory, 'tokens.txt'), join(directory, 'mine')];
    assert.equal(await output(['token', 'add', tokens, 'alice', '--out', mine]), '');
    const server = new Child(t, [
      'serve',
      '--dir',
      join(directory, 'data'),
      '--address',
      '0.0.0.0:0',
      ...TLS,
      '--tokens',
      tokens,
    ]);
    const there = `127.0.0.1:${(await server.address()).split(':')[1]}`;
    assert.doesNotMatch(server.out, /BIGTABLE_EMULATOR_HOST=/);
    const target = ['--address', there, '--tls-ca', pem('ca.pem')];
    await output([...target, '--token-file', mine, 'createtable', 't', 'families=f']);
    const token = (await readFile(mine, 'utf8')).trim();
    assert.equal(await output([...target, 'ls'], { EDUBBA_TOKEN: token }), 't\n');
    assert.match((await edubba([...target, 'compact', 't'], { EDUBBA_TOKEN: token })).err, /^$/);
    for (const [words, environment, message] of [
      [[...target, 'ls'], {}, /^edubba: UNAUTHENTICATED: the call has no bearer token/],
      [[...target, 'ls'], { EDUBBA_TOKEN: `${token.slice(0, -1)}_` }, /^edubba: UNAUTHENTICATED: unknown bearer token/],
      [[...target, 'compact'], {}, /^edubba: UNAUTHENTICATED: the call has no bearer token/],
      [[...target, 'split', 't', 'r'], {}, /^edubba: UNAUTHENTICATED: the call has no bearer token/],
      [['--address', there, '--tls', 'ls'], { EDUBBA_TOKEN: token }, /^edubba: UNAVAILABLE: .*certificate/],
      [['--address', there, 'ls'], {}, /^edubba: UNAVAILABLE: /],
    ] as const) {
      const { status, err } = await edubba(words, environment);
      assert.equal(status, 1);
      assert.match(err, message);
    }
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
    assert.equal(server.err, '');
  });

  test('with an authority for clients, a certificate says who asks', async (t) => {
    const directory = await temporaryDirectory(t);
    const server = new Child(t, [
      'serve',
      '--dir',
      join(directory, 'data'),
      '--address',
      '127.0.0.1:0',
      ...TLS,
      '--tls-client-ca',
      pem('ca.pem'),
    ]);
    const target = ['--address', await server.address(), '--tls-ca', pem('ca.pem')];
    assert.equal(await output([...target, '--tls-key', pem('client.key'), '--tls-cert', pem('client.pem'), 'ls']), '');
    for (const words of [[], ['--tls-key', pem('stranger.key'), '--tls-cert', pem('stranger.pem')]]) {
      const { status, err } = await edubba([...target, ...words, 'ls']);
      assert.deepEqual([status, err.split(':', 2)[1]], [1, ' UNAVAILABLE'], err);
    }
  });

  test('writes that are acknowledged before they are on disk are there after an end in order', async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const server = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0', '--durability', 'buffered']);
    const address = await server.address();
    assert.match(server.out, /acknowledged = on its way to the disk/);
    await output(['--address', address, 'createtable', 't', 'families=f']);
    await output(['--address', address, 'set', 't', 'r', 'f:q=kept']);
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
    assert.match(await output(['--dir', directory, 'read', 't']), /"kept"/);
  });
});

describe('settings that make no sense are refused', () => {
  const serve = ['serve', '--dir', '/nowhere/data'];
  for (const [words, message] of [
    [[...serve, '--address', '0.0.0.0:0', '--tls-key', 'k'], /TLS needs both --tls-key and --tls-cert/],
    [[...serve, '--tls-client-ca', 'ca'], /--tls-client-ca needs TLS/],
    [[...serve, '--jwt-issuer', 'i'], /all of --jwt-issuer, --jwt-audience and --jwt-jwks/],
    [['--address', '192.0.2.1:1', '--token-file', pem('ca.pem'), 'ls'], /bearer token is empty, or holds/],
    [['--address', '127.0.0.1:1', '--token-file', '/nowhere/token', 'ls'], /cannot read the token/],
    [['--address', '127.0.0.1:1', '--tls-ca', '/nowhere/ca', 'ls'], /cannot read \/nowhere\/ca/],
    [['--address', '127.0.0.1:1', '--tls-key', pem('client.key'), 'ls'], /--tls-key and --tls-cert/],
    [['token', 'add', pem('ca.pem'), 'alice'], /is not a list of tokens/],
  ] as const) {
    test(words.join(' ').replaceAll(/\/\S+\//g, ''), async () => {
      const { status, err } = await edubba(words);
      assert.equal(status, 1);
      assert.match(err, message);
    });
  }

  test('a token never goes to another machine in plain text', async () => {
    const { err } = await edubba(['--address', '192.0.2.1:1', 'ls'], { EDUBBA_TOKEN: 'secret-token' });
    assert.match(err, /^edubba: INVALID_ARGUMENT: .*use TLS/);
    assert.doesNotMatch(err, /secret-token/);
  });

  test('a public address tells what it lacks', async (t) => {
    const directory = await temporaryDirectory(t);
    const tokens = join(directory, 'tokens.txt');
    await output(['token', 'add', tokens, 'alice']);
    const publicly = ['serve', '--dir', join(directory, 'data'), '--address', '0.0.0.0:0'];
    for (const [words, message] of [
      [[], /needs TLS .* and authentication/],
      [TLS, /needs authentication \(--tokens/],
      [['--tokens', tokens], /needs TLS \(--tls-key and --tls-cert\); or use/],
    ] as const) {
      const { err } = await edubba([...publicly, ...words]);
      assert.match(err, message);
    }
  });
});
