/**
 * Who may read what Edubba writes: its owner alone, whatever the umask; and what is said of secrets that others may
 * read.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { edubbaScript } from './edubba-script.ts';
import { Child, edubba, output, temporaryDirectory } from './run.ts';
import { userEnvironment } from './user-environment.ts';

/** The permissions of everything below the directory, and its own, by path. */
async function modesBelow(directory: string): Promise<Map<string, string>> {
  const modes = new Map<string, string>();
  for (const name of ['.', ...(await readdir(directory, { recursive: true }))]) {
    const { mode } = await stat(join(directory, name));
    modes.set(name, `${(mode & 0o170000) === 0o040000 ? 'directory' : 'file'} ${(mode & 0o7777).toString(8)}`);
  }
  return modes;
}

function assertPrivate(modes: ReadonlyMap<string, string>): void {
  for (const [path, mode] of modes) assert.ok(mode === 'directory 700' || mode === 'file 600', `${path}: ${mode}`);
}

/** The command with a umask that takes nothing away. */
function withOpenUmask(t: TestContext, words: readonly string[]): ChildProcess {
  const child = spawn(
    'sh',
    ['-c', 'umask 000; exec "$@"', 'sh', process.execPath, ...process.execArgv, edubbaScript(), ...words],
    { stdio: ['ignore', 'pipe', 'inherit'], env: userEnvironment() },
  );
  t.after(() => child.kill('SIGKILL'));
  return child;
}

async function listening(child: ChildProcess): Promise<string> {
  let out = '';
  for await (const text of (child.stdout as NodeJS.ReadableStream).setEncoding('utf8')) {
    out += text;
    const address = /^listening on (\S+)$/m.exec(out)?.[1];
    if (address !== undefined) return address;
  }
  return assert.fail(`no server: ${out}`);
}

describe('files and directories', () => {
  for (const servers of ['1', '2']) {
    test(`of a database are the owner's alone, with ${servers} tablet servers and a umask of 000`, async (t) => {
      const above = join(await temporaryDirectory(t), 'above');
      const directory = join(above, 'data');
      const server = withOpenUmask(t, [
        'serve',
        '--dir',
        directory,
        '--address',
        '127.0.0.1:0',
        '--tablet-servers',
        servers,
      ]);
      const address = await listening(server);
      await output(['--address', address, 'createtable', 't', 'families=f']);
      await output(['--address', address, 'set', 't', 'r', 'f:q=1']);
      const whileServing = await modesBelow(above);
      server.kill('SIGTERM');
      await once(server, 'exit');
      const afterwards = await modesBelow(above);
      for (const modes of [whileServing, afterwards]) {
        assertPrivate(modes);
        const parts = [...modes.keys()];
        for (const part of ['data/LOCK', 'data/EDUBBA', 'data/tmp', 'data/files/lock-service', 'data/logs'])
          assert.ok(parts.includes(part), part);
      }
      assert.ok(
        [...whileServing].some(([path, mode]) => path.startsWith('data/logs/') && mode.startsWith('file')),
        'a log segment',
      );
    });
  }

  test('of a repair are the owner’s alone', async (t) => {
    const above = await temporaryDirectory(t);
    const directory = join(above, 'data');
    await output(['--dir', directory, 'createtable', 't', 'families=f']);
    await output(['--dir', directory, 'set', 't', 'r', 'f:q=1']);
    const child = withOpenUmask(t, ['--dir', directory, 'inspect', 'repair', '--write-to', join(above, 'repaired')]);
    child.stdout?.resume();
    const [status] = await once(child, 'exit');
    assert.equal(status, 0);
    assertPrivate(await modesBelow(join(above, 'repaired')));
  });
});

/** A server's key and certificate with the permissions that they should have. */
async function tlsFiles(directory: string): Promise<{ key: string; cert: string }> {
  const [key, cert] = [join(directory, 'server.key'), join(directory, 'server.pem')];
  await copyFile('test/certificates/server.key', key);
  await copyFile('test/certificates/server.pem', cert);
  await chmod(key, 0o600);
  await chmod(cert, 0o644);
  return { key, cert };
}

describe('what others can read', () => {
  const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

  for (const servers of ['1', '2']) {
    test(`is reported once by serve, with file and mode, with ${servers} tablet servers; what is right is not`, async (t) => {
      const above = await temporaryDirectory(t);
      const { key, cert } = await tlsFiles(above);
      const [directory, tokens, keys] = [join(above, 'data'), join(above, 'tokens.txt'), join(above, 'keys.json')];
      await output(['token', 'add', tokens, 'alice']);
      await writeFile(keys, JSON.stringify({ keys: [{ kty: 'oct', k: 'AAAA', kid: '1' }] }), { mode: 0o600 });
      const words = [
        'serve',
        '--dir',
        directory,
        '--address',
        '127.0.0.1:0',
        '--tls-key',
        key,
        '--tls-cert',
        cert,
        '--tls-client-ca',
        cert,
        '--tokens',
        tokens,
      ];
      words.push('--jwt-issuer', 'i', '--jwt-audience', 'a', '--jwt-jwks', keys, '--tablet-servers', servers);
      for (const expected of [
        [],
        [
          ['data', '755'],
          ['server.key', '644'],
          ['tokens.txt', '640'],
          ['keys.json', '604'],
          ['server.pem', '666'],
        ],
      ]) {
        const server = new Child(t, words);
        await server.address();
        server.process.kill('SIGTERM');
        assert.equal(await server.ended(), 0, server.err);
        for (const [name, mode] of expected) {
          assert.match(server.err, new RegExp(`=${join(above, name as string)} mode=${mode} remedy="chmod`), name);
        }
        // the certificate is the authority of the clients' certificates too
        assert.equal(server.err.split('\n').length - 1, expected.length === 0 ? 0 : expected.length + 1, server.err);
        for (const [path, mode] of [
          [directory, 0o755],
          [key, 0o644],
          [tokens, 0o640],
          [keys, 0o604],
          [cert, 0o666],
        ] as const)
          await chmod(path, mode);
        // root's files may be read by a group
        if ((await stat(tokens)).uid === 0) await chown(tokens, 1, 0);
      }
    });
  }

  test('is reported by commands of the token and the key that they use', async (t) => {
    const above = await temporaryDirectory(t);
    const { key, cert } = await tlsFiles(above);
    const token = join(above, 'token');
    await writeFile(token, 'edubba_x', { mode: 0o600 });
    const ls = ['--address', '127.0.0.1:1', '--token-file', token, '--tls-key', key, '--tls-cert', cert, 'ls'];
    assert.doesNotMatch((await edubba(ls)).err, /warning/);
    await chmod(token, 0o644);
    await chmod(key, 0o666);
    const { err } = await edubba(ls);
    assert.match(
      err,
      new RegExp(
        `^edubba: warning: ${token} is secret and can be read by other users of this machine \\(mode 644\\)`,
        'm',
      ),
    );
    assert.match(err, new RegExp(`^edubba: warning: ${key} .*\\(mode 666\\)`, 'm'));
  });

  test('is no token that was written with --out: it is the owner’s alone, and no file is written over', async (t) => {
    const above = await temporaryDirectory(t);
    const [tokens, out] = [join(above, 'tokens.txt'), join(above, 'crawler.token')];
    const child = withOpenUmask(t, ['token', 'add', tokens, 'crawler', '--out', out]);
    child.stdout?.resume();
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    assert.deepEqual([await modeOf(tokens), await modeOf(out)], ['600', '600']);
    const token = await readFile(out, 'utf8');
    assert.match(token, /^edubba_[a-z0-9]{8}_[A-Za-z0-9_-]{43}\n$/);
    const list = await readFile(tokens, 'utf8');
    for (const [where, code] of [
      [out, 'ALREADY_EXISTS'],
      [join(above, 'nowhere', 'x'), 'FAILED_PRECONDITION'],
    ] as const) {
      const { status, err } = await edubba(['token', 'add', tokens, 'crawler', '--out', where]);
      assert.deepEqual([status, err.split(':', 2)[1]], [1, ` ${code}`]);
      assert.ok(err.includes(where), err);
    }
    assert.deepEqual(
      [await readFile(out, 'utf8'), await readFile(tokens, 'utf8')],
      [token, list],
      'nothing has changed',
    );
    const refused = await edubba(['token', 'add', tokens, 'no name', '--out', join(above, 'other')]);
    assert.equal(refused.status, 1);
    await assert.rejects(stat(join(above, 'other')), { code: 'ENOENT' });
  });
});
