/** Settings as operators give them: by flag, environment and file; what is wrong; and a server that runs with them. */
import assert from 'node:assert/strict';
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { connect } from 'node:tls';
import { Child, documents, edubba, output, temporaryDirectory } from './run.ts';

async function settingsFile(t: TestContext, text: string, name = 'edubba.toml'): Promise<string> {
  const path = join(await temporaryDirectory(t), name);
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

async function effective(
  words: readonly string[],
  environment: Record<string, string> = {},
): Promise<ReadonlyMap<string, Record<string, unknown>>> {
  return new Map(
    documents(await output(['settings', '--json', ...words], environment)).map((document) => [
      String(document['setting']),
      document,
    ]),
  );
}

describe('edubba settings', () => {
  test('a flag goes before the environment, that before the file, that before the default', async (t) => {
    const path = await settingsFile(
      t,
      '# sizes\nmemtable-bytes = "32MiB"\nscan-cache-bytes = 4194304\nlimits = "cloud"\n\ninsecure-public = true\n',
    );
    const environment = {
      EDUBBA_SETTINGS: path,
      EDUBBA_MEMTABLE_BYTES: '48MiB',
      EDUBBA_LIMITS: 'default',
      EDUBBA_JWT_ISSUER: '',
    };
    const found = await effective(['--memtable-bytes', '64MiB', '--no-insecure-public'], environment);
    assert.deepEqual(found.get('memtable-bytes'), {
      setting: 'memtable-bytes',
      value: 2 ** 26,
      source: 'flag',
      where: '--memtable-bytes',
    });
    assert.deepEqual(found.get('limits'), {
      setting: 'limits',
      value: 'default',
      source: 'environment',
      where: 'EDUBBA_LIMITS',
    });
    assert.deepEqual(found.get('scan-cache-bytes'), {
      setting: 'scan-cache-bytes',
      value: 2 ** 22,
      source: 'file',
      where: `${path}:3`,
    });
    assert.deepEqual(found.get('insecure-public'), {
      setting: 'insecure-public',
      value: false,
      source: 'flag',
      where: '--no-insecure-public',
    });
    assert.deepEqual(found.get('durability'), { setting: 'durability', value: 'synced', source: 'default' });
    assert.deepEqual(found.get('jwt-issuer'), { setting: 'jwt-issuer', value: null, source: 'default' });
  });

  test('the flag for the file goes before its variable, and paths in it start from its directory', async (t) => {
    const path = await settingsFile(
      t,
      'dir = "data"\ntokens = "../tokens.txt"\njwt-jwks = "https://accounts.example.org/keys"\njwt-issuer = "i"\njwt-audience = "a"\n',
    );
    const found = await effective(['--settings', path], { EDUBBA_SETTINGS: '/does/not/exist' });
    assert.deepEqual(
      ['dir', 'tokens', 'jwt-jwks'].map((key) => found.get(key)?.['value']),
      [join(dirname(path), 'data'), resolve(dirname(path), '../tokens.txt'), 'https://accounts.example.org/keys'],
    );
    assert.equal((await effective(['--dir', 'here'])).get('dir')?.['value'], resolve('here'));
  });

  test('what it prints is a settings file with the same values', async (t) => {
    const words = [
      '--memtable-bytes',
      '48MiB',
      '--dir',
      'a "b" \\ c',
      '--insecure-public',
      '--tls-key',
      'k',
      '--tls-cert',
      'c',
      '--major-compaction-ms',
      '90s',
      '--jwt-issuer',
      'i',
      '--jwt-audience',
      'ü',
      '--jwt-jwks',
      'https://x/y',
    ];
    const values = async (more: readonly string[]) =>
      [...(await effective(more)).values()].map(({ setting, value }) => [setting, value]);
    const path = await settingsFile(t, await output(['settings', ...words]));
    assert.deepEqual(await values(['--settings', path]), await values(words));
    // defaults are comments: nothing is pinned that was not set
    const keys = (await readFile(path, 'utf8'))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split(' ', 1)[0]);
    assert.deepEqual(keys, [
      'dir',
      'memtable-bytes',
      'major-compaction-ms',
      'tls-key',
      'tls-cert',
      'jwt-issuer',
      'jwt-audience',
      'jwt-jwks',
      'insecure-public',
    ]);
  });

  test('--cache MiB, the old name of a flag', async () => {
    assert.equal((await effective(['--cache', '48'])).get('block-cache-bytes')?.['value'], 48 * 2 ** 20);
    for (const words of [
      ['--cache', '1.5'],
      ['--cache', 'x'],
    ])
      assert.equal((await edubba(['settings', ...words])).status, 2);
    const both = await edubba(['settings', '--cache', '48', '--block-cache-bytes', '1MiB']);
    assert.match(both.err, /^edubba: INVALID_ARGUMENT: give either --cache or --block-cache-bytes/);
  });

  test('variables of Kubernetes and of other commands are let be', async () => {
    const service = {
      EDUBBA_SERVICE_HOST: '10.0.0.1',
      EDUBBA_SERVICE_PORT: '8086',
      EDUBBA_SERVICE_PORT_GRPC: '8086',
      EDUBBA_PORT: 'tcp://10.0.0.1:8086',
      EDUBBA_PORT_8086_TCP: 'tcp://10.0.0.1:8086',
      EDUBBA_PORT_8086_TCP_PROTO: 'tcp',
      EDUBBA_PORT_8086_TCP_PORT: '8086',
      EDUBBA_PORT_8086_TCP_ADDR: '10.0.0.1',
      EDUBBA_HEADLESS_SERVICE_HOST: '10.0.0.2',
      EDUBBA_HEADLESS_PORT: 'tcp://x',
    };
    await output(['settings'], {
      ...service,
      EDUBBA_TOKEN: 'secret',
      EDUBBA_LIMITS: '',
      EDUBBA_SETTINGS: '',
      OTHER: 'x',
      edubba_limits: 'x',
    });
  });

  const wrongFiles: [string, RegExp[]][] = [
    ['# a\n\nmemtable-byte = 1\n', [/:3: unknown setting "memtable-byte" \(did you mean memtable-bytes\?\)/]],
    ['memtableBytes = 1', [/:1: unknown setting "memtableBytes" \(did you mean memtable-bytes\?\)/]],
    ['memtable-bytes = "1KiB"', [/:1: memtable-bytes must be a size of at least 1 MiB, .*, not "1KiB"/]],
    ['memtable-bytes = 1048576.5', [/:1: memtable-bytes must be .*, not number 1048576\.5/]],
    ['memtable-bytes = true', [/memtable-bytes must be .*, not boolean true/]],
    ['insecure-public = 1', [/insecure-public must be true or false, not number 1/]],
    ['limits = ["cloud"]', [/limits must be default or cloud, not an array of 1/]],
    ['dir = 2026-11-22', [/dir must be a path, not TomlDate/]],
    ['[memory]\nmemtable-bytes = 1\n', [/:1: unknown setting "memory"; tables are not allowed/]],
    ['memory.memtable-bytes = 1\n', [/:1: unknown setting "memory"; tables are not allowed/]],
    ['"__proto__" = 1\nconstructor = 2\n', [/:1: unknown setting "__proto__"/, /:2: unknown setting "constructor"/]],
    ['token = "very secret"\n', [/:1: unknown setting "token" \(did you mean tokens\?\)/]],
    ['limits = cloud\n', [/:1:\d+: Invalid TOML document/]],
    ['a = 1\nlimits = "cloud"\nlimits = "cloud"\n', [/:3:\d+: Invalid TOML document/]],
    ['memtable-bytes = 99999999999999999999\n', [/Invalid TOML document/]],
    [
      'limits = "x"\ndurability = "y"\n',
      [
        /2 settings are wrong:/,
        /:1: limits must be default or cloud, not "x"/,
        /:2: durability must be synced or buffered, not "y"/,
      ],
    ],
  ];
  for (const [text, messages] of wrongFiles) {
    test(`refused, with the line: ${JSON.stringify(text)}`, async (t) => {
      const path = await settingsFile(t, text);
      for (const command of ['settings', 'serve']) {
        const { status, out, err } = await edubba([command, '--settings', path]);
        assert.deepEqual([status, out], [1, '']);
        assert.ok(err.startsWith('edubba: INVALID_ARGUMENT: '), err);
        assert.ok(err.includes(path), err);
        for (const message of messages) assert.match(err, message);
        assert.doesNotMatch(err, /very secret/);
      }
    });
  }

  test('a file that cannot be read is refused', async (t) => {
    const directory = await temporaryDirectory(t);
    for (const path of [join(directory, 'none'), directory]) {
      const { status, err } = await edubba(['serve', '--settings', path]);
      assert.equal(status, 1);
      assert.match(err, /^edubba: INVALID_ARGUMENT: cannot read the settings: /);
      assert.ok(err.includes(path) || err.includes('EISDIR'), err);
    }
  });

  test('a file of Windows is read, one that is not UTF-8 is refused', async (t) => {
    const windows = await settingsFile(t, '\ufefflimits = "cloud"\r\nblock-cache-bytes = "8MiB"\r\n');
    assert.deepEqual((await effective(['--settings', windows])).get('block-cache-bytes')?.['where'], `${windows}:2`);
    const latin = await settingsFile(t, '');
    await writeFile(latin, Buffer.from('dir = "M\u00fcll"\n', 'latin1'));
    assert.match(
      (await edubba(['settings', '--settings', latin])).err,
      /^edubba: INVALID_ARGUMENT: .*: the settings are not UTF-8 text/,
    );
  });

  const wrongVariables: [Record<string, string>, RegExp][] = [
    [
      { EDUBBA_MEMTABLE_BYTE: '1' },
      /unknown setting in the environment: EDUBBA_MEMTABLE_BYTE \(did you mean EDUBBA_MEMTABLE_BYTES\?\)/,
    ],
    [{ EDUBBA_TOKNE: 'secret' }, /unknown setting in the environment: EDUBBA_TOKNE \(did you mean EDUBBA_TOKEN/],
    [{ EDUBBA_MEMTABLE_BYTES: '64 MB' }, /EDUBBA_MEMTABLE_BYTES: memtable-bytes must be a size .* not "64 MB"/],
    [
      { EDUBBA_TABLET_SERVERS: '65' },
      /EDUBBA_TABLET_SERVERS: tablet-servers must be a whole number from 1 to 64, not "65"/,
    ],
    [{ EDUBBA_INSECURE_PUBLIC: 'maybe' }, /EDUBBA_INSECURE_PUBLIC: insecure-public must be true or false, not "maybe"/],
    [{ EDUBBA_ADDRESS: '8086' }, /EDUBBA_ADDRESS: address must be HOST:PORT/],
    [{ EDUBBA_TLS_KEY: 'k' }, /TLS needs both --tls-key and --tls-cert/],
    [{ EDUBBA_TLS_CLIENT_CA: 'k' }, /--tls-client-ca needs TLS/],
    [
      { EDUBBA_JWT_ISSUER: 'i', EDUBBA_JWT_AUDIENCE: 'a' },
      /tokens of an issuer need all of --jwt-issuer, --jwt-audience and --jwt-jwks/,
    ],
    [{ EDUBBA_REQUEST_BYTES: '1024TiB' }, /request-bytes is 1024 TiB, more than the memory there is/],
    [
      { EDUBBA_MEMTABLE_BYTES: '3MiB', EDUBBA_TABLET_SERVERS: '4' },
      /setting memtableBytes is 3 MiB, which 4 tablet servers share: they need at least 4 MiB/,
    ],
  ];
  for (const [environment, message] of wrongVariables) {
    test(`refused: ${JSON.stringify(environment)}`, async () => {
      for (const command of ['settings', 'serve']) {
        const { status, out, err } = await edubba([command], environment);
        assert.deepEqual([status, out], [1, '']);
        assert.match(err, /^edubba: INVALID_ARGUMENT: /);
        assert.match(err, message);
        assert.doesNotMatch(err, /secret/);
      }
    });
  }

  test('a wrong flag is a command that was not understood', async () => {
    for (const words of [
      ['--memtable-bytes', '1KiB'],
      ['--memtable-bytes', ''],
      ['--limits', 'x'],
      ['--tablet-servers', '0'],
      ['--memtable-byte', '1'],
      ['--tokens', ''],
    ]) {
      const { status, err } = await edubba(['serve', ...words]);
      assert.equal(status, 2, words.join(' '));
      assert.match(err, new RegExp(`'${words[0]}`));
    }
  });

  test('flags by which clients find a server are refused, and say which one is meant', async () => {
    for (const [words, meant] of [
      [['--tls'], '--tls-key'],
      [['--tls-ca', 'x'], '--tls-client-ca'],
      [['--token-file', 'x'], '--tokens'],
    ] as const) {
      for (const command of ['serve', 'settings']) {
        const { status, out, err } = await edubba([command, ...words]);
        assert.deepEqual([status, out], [1, '']);
        assert.match(
          err,
          new RegExp(`^edubba: INVALID_ARGUMENT: serve .* by ${meant}\\b.*; ${words[0]} is for commands`),
        );
      }
    }
  });

  test('what is overridden is checked too', async () => {
    assert.match(
      (await edubba(['settings', '--limits', 'cloud'], { EDUBBA_LIMITS: 'x' })).err,
      /EDUBBA_LIMITS: limits must be/,
    );
  });

  test('more than the memory there is: a warning with numbers', async () => {
    const most = Math.min(totalmem(), process.constrainedMemory() || totalmem());
    const { status, err } = await edubba([
      'settings',
      '--memtable-bytes',
      String(Math.floor(most * 0.9)),
      '--block-cache-bytes',
      String(Math.floor(most * 0.9)),
    ]);
    assert.equal(status, 0, err);
    assert.match(
      err,
      /^edubba: warning: the memory that settings allow \([\d.]+ .iB\) .* are more than there is \([\d.]+ .iB\): memtables [\d.]+ .iB, block cache/,
    );
  });

  test('a file that others can change: a warning', { skip: process.platform === 'win32' }, async (t) => {
    const path = await settingsFile(t, '');
    await chmod(path, 0o666);
    const { status, err } = await edubba(['settings', '--settings', path]);
    assert.equal(status, 0);
    assert.match(
      err,
      new RegExp(`warning: the settings can be changed by other users of this machine .*: chmod go-w ${path}`),
    );
  });
});

describe('edubba serve with settings', () => {
  for (const servers of ['1', '2']) {
    test(`runs with those of file, environment and flags; ${servers} tablet servers`, async (t) => {
      const path = await settingsFile(
        t,
        `dir = "data"\nmemtable-bytes = "32MiB"\nlimits = "default"\nblock-cache-bytes = 0\ntablet-servers = ${servers}\n`,
      );
      await mkdir(join(dirname(path), 'data'), { mode: 0o700 });
      const environment = {
        EDUBBA_SETTINGS: path,
        EDUBBA_LIMITS: 'cloud',
        EDUBBA_ADDRESS: '127.0.0.1:0',
        EDUBBA_BLOCK_CACHE_BYTES: '8MiB',
        EDUBBA_STOP_GRACE_MS: '100ms',
        EDUBBA_METRICS_ADDRESS: '127.0.0.1:0',
        EDUBBA_LOG_LIMIT_BYTES: '24MiB',
        EDUBBA_INDEX_BYTES: '40MiB',
      };
      const server = new Child(t, ['serve', '--block-cache-bytes', '48MiB', '--max-connections', '76'], {
        environment,
      });
      const address = await server.address();
      assert.match(server.out, new RegExp(`^data in ${join(dirname(path), 'data')}$`, 'm'));
      assert.match(
        server.out,
        /^memory: 328 MiB of [\d.]+ .iB: memtables 32 MiB, block cache 48 MiB, row cache 16 MiB, indexes 40 MiB, requests 128 MiB, in-memory groups 64 MiB$/m,
      );
      const metrics = await (await fetch(`${/^metrics: (\S+)\/metrics,/m.exec(server.out)?.[1]}/metrics`)).text();
      const limit = (name: string): number => Number(new RegExp(`^edubba_${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
      const limits = [
        'memtables_limit_bytes',
        'block_cache_limit_bytes',
        'row_cache_limit_bytes',
        'indexes_limit_bytes',
        'in_memory_groups_limit_bytes',
        'log_limit_bytes',
        'request_budget_limit_bytes',
      ].map(limit);
      assert.deepEqual(
        limits,
        [32, 48, 16, 40, 64, 24, 128].map((mib) => mib * 2 ** 20),
      );
      assert.equal(limit('connections_limit'), 76);
      await output(['--address', address, 'createtable', 't', 'families=f:never']);
      const long = await edubba(['--address', address, 'set', 't', 'k'.repeat(5000), 'f:q=1']);
      assert.match(long.err, /^edubba: INVALID_ARGUMENT: .*4096/);
      server.process.kill('SIGTERM');
      assert.equal(await server.ended(), 0, server.err);
      assert.equal(server.err, '');
      assert.equal(/^tablet server 1 passed/m.test(server.out), servers === '2');
    });
  }

  for (const servers of ['1', '2']) {
    test(`speaks TLS of the versions that it may; ${servers} tablet servers`, async (t) => {
      const directory = join(await temporaryDirectory(t), 'data');
      const key = join(dirname(directory), 'server.key');
      await copyFile('test/certificates/server.key', key);
      await chmod(key, 0o600);
      const environment = {
        EDUBBA_DIR: directory,
        EDUBBA_ADDRESS: '127.0.0.1:0',
        EDUBBA_TLS_KEY: key,
        EDUBBA_TLS_CERT: resolve('test/certificates/server.pem'),
        EDUBBA_TLS_MIN_VERSION: '1.3',
      };
      const server = new Child(t, ['serve', '--tablet-servers', servers], { environment });
      const port = Number((await server.address()).split(':')[1]);
      const protocolOf = (maxVersion: 'TLSv1.2' | 'TLSv1.3'): Promise<string | null> =>
        new Promise((done) => {
          const socket = connect(
            { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'], maxVersion },
            () => {
              done(socket.getProtocol());
              socket.destroy();
            },
          );
          socket.on('error', () => done(null));
        });
      assert.deepEqual([await protocolOf('TLSv1.2'), await protocolOf('TLSv1.3')], [null, 'TLSv1.3']);
    });
  }
});
