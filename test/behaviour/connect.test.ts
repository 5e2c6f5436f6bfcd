/** `connect` itself: addresses, instances, TLS and tokens, a server that goes and comes back, and the end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { addToken } from '../../src/auth/index.ts';
import { moduleUrl, openDatabase } from '../../src/boot/index.ts';
import { BigtableError, Code, connect, type ConnectOptions, RowMutation } from '../../src/embedded/index.ts';
import { type RunningServer, startServer } from '../../src/server/index.ts';

type Opened = Awaited<ReturnType<typeof openDatabase>>;
type More = Partial<Pick<Parameters<typeof startServer>[0], 'service' | 'address' | 'tls' | 'access'>>;

const pem = (name: string): string => `test/certificates/${name}`;
const families = { f: {} };

describe('connect', () => {
  let opened: Opened;
  let directory = '';
  before(async () => {
    opened = await openDatabase({ memory: true });
    directory = await mkdtemp(join(tmpdir(), 'edubba-connect-'));
  });
  const servers: RunningServer[] = [];
  after(async () => {
    // those of a test that failed: they would keep this process
    for (const server of servers) await server.close();
    await opened.close();
    await rm(directory, { recursive: true });
  });
  const serve = async (more: More = {}): Promise<RunningServer> => {
    const server = await startServer({ service: opened.service, env: opened.env, address: '127.0.0.1:0', ...more });
    servers.push(server);
    return server;
  };

  test('table ids are of the instance given; full names are taken as they are', async () => {
    const server = await serve();
    const [ours, theirs, local] = [
      await connect(server.address, { project: 'p', instance: 'i' }),
      await connect(server.address, { project: 'p', instance: 'j' }),
      await connect(server.address),
    ];
    const table = await ours.createTable('t', { families });
    assert.equal(table.fullName, 'projects/p/instances/i/tables/t');
    assert.equal((await local.createTable('t', { families })).fullName, 'projects/local/instances/local/tables/t');
    await table.apply(new RowMutation('r').set('f:a', 'x'));
    assert.deepEqual(
      [await ours.listTables(), await theirs.listTables(), await theirs.hasTable('t')],
      [['t'], [], false],
    );
    assert.equal((await theirs.table(table.fullName).getCell('r', 'f:a'))?.text, 'x');
    for (const database of [ours, theirs, local]) await database.close();
    await server.close();
  });

  test('names of tables are one question, however many tables there are', async () => {
    const asked: string[] = [];
    const service = new Proxy(opened.service, {
      get(target, name) {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return (...given: unknown[]): unknown => {
          asked.push(String(name));
          return method.apply(target, given) as unknown;
        };
      },
    });
    const server = await serve({ service });
    await using database = await connect(server.address, { project: 'p', instance: 'names' });
    for (const id of ['b', 'a', 'c']) await database.createTable(id, { families });
    asked.length = 0;
    assert.deepEqual(await database.listTables(), ['a', 'b', 'c']);
    assert.deepEqual(asked, ['listTables']);
    const names = ['a', 'b', 'c'].map((id) => `projects/p/instances/names/tables/${id}`);
    assert.deepEqual(
      (await database.listTableNames()).filter((name) => name.includes('/names/')),
      names,
    );
    assert.deepEqual(await database.listTableNames('projects/p/instances/names/tables/b'), names.slice(1, 2));
    assert.deepEqual(asked.slice(1), ['listTableNames', 'listTables']);
    await database.close();
    await server.close();
  });

  test('addresses and options that are none are refused before anything is sent', async () => {
    const wrong: readonly (readonly [unknown, unknown?])[] = [
      [undefined],
      [''],
      ['localhost'],
      ['localhost:'],
      ['localhost:0'],
      ['localhost:99999'],
      [8086],
      ['http://localhost:8086'],
      ['etcd://localhost:1'],
      ['etcd://'],
      ['etcd://localhost:1', { token: 'x' }],
      ['etcd://localhost:1', { tls: true }],
      ['etcd://localhost:1', { cluster: 7 }],
      ['etcd://localhost:1', { cluster: { secretFiles: 'x' } }],
      ['etcd://localhost:1', { cluster: { secretFile: '/nowhere/secret' } }],
      ['etcd://localhost:1', { cluster: { caFile: pem('ca.pem') } }],
      ['localhost:1', { cluster: {} }],
      ['localhost:1', { port: 1 }],
      ['localhost:1', 'p'],
      ['localhost:1', { project: '' }],
      ['localhost:1', { instance: 'a/b' }],
      ['localhost:1', { project: 1 }],
      ['localhost:1', { tls: 'yes' }],
      ['localhost:1', { tls: { caFiles: 'x' } }],
      ['localhost:1', { tls: { caFile: '/nowhere/ca.pem' } }],
      ['localhost:1', { tls: { ca: 'x', caFile: pem('ca.pem') } }],
      ['localhost:1', { tls: { certFile: pem('client.pem') } }],
      ['localhost:1', { token: '' }],
      ['localhost:1', { token: 'a b' }],
      ['localhost:1', { token: 7 }],
      ['192.0.2.1:1', { token: 'secret' }],
    ];
    for (const [address, options] of wrong) {
      await assert.rejects(
        connect(address as string, options as ConnectOptions),
        { name: 'BigtableError', code: Code.INVALID_ARGUMENT },
        `${String(address)} ${JSON.stringify(options)}`,
      );
    }
  });

  test('a lock service that is not there is UNAVAILABLE', async () => {
    const secretFile = join(directory, 'secret');
    await writeFile(secretFile, '0123456789abcdef0123456789abcdef', { mode: 0o600 });
    await assert.rejects(connect('etcd://127.0.0.1:1', { cluster: { secretFile } }), { code: Code.UNAVAILABLE });
  });

  test('TLS, certificates in files and in hand, and tokens', async () => {
    const tokensFile = join(directory, 'tokens');
    const token = await addToken(tokensFile, 'alice', '2026-01-01T00:00:00Z');
    const server = await serve({
      tls: { keyFile: pem('server.key'), certFile: pem('server.pem') },
      access: { tokensFile },
    });
    const codeOf = async (options: ConnectOptions): Promise<number> => {
      await using database = await connect(server.address, options);
      return database.listTables().then(
        () => Code.OK,
        (error: BigtableError) => error.code,
      );
    };
    assert.equal(await codeOf({ tls: { caFile: pem('ca.pem') }, token }), Code.OK);
    assert.equal(
      await codeOf({ tls: { ca: readFileSync(pem('ca.pem'), 'utf8'), serverName: 'localhost' }, token }),
      Code.OK,
    );
    assert.equal(
      await codeOf({ tls: { ca: readFileSync(pem('ca.pem')) }, token: 'edubba_other' }),
      Code.UNAUTHENTICATED,
    );
    assert.equal(await codeOf({ tls: { caFile: pem('ca.pem') } }), Code.UNAUTHENTICATED);
    // no authority that Node trusts has signed it
    assert.equal(await codeOf({ tls: true, token }), Code.UNAVAILABLE);
    assert.equal(await codeOf({ token }), Code.UNAVAILABLE);
    await server.close();
    const mutual = await serve({
      tls: { keyFile: pem('server.key'), certFile: pem('server.pem'), clientCaFile: pem('ca.pem') },
    });
    for (const [tls, code] of [
      [{ keyFile: pem('client.key'), certFile: pem('client.pem') }, Code.OK],
      [{}, Code.UNAVAILABLE],
    ] as const) {
      await using database = await connect(mutual.address, { tls: { caFile: pem('ca.pem'), ...tls } });
      assert.equal(
        await database.listTables().then(
          () => Code.OK,
          (error: BigtableError) => error.code,
        ),
        code,
      );
    }
    await mutual.close();
  });

  test('a lost server is UNAVAILABLE, and calls come back with it', async () => {
    const server = await serve();
    const { address } = server;
    const database = await connect(address);
    const table = await database.createTable('lost', { families });
    await table.apply(new RowMutation('r').set('f:a', 'x'));
    await server.close();
    for (let i = 0; i < 3; i++) await assert.rejects(table.get('r'), { code: Code.UNAVAILABLE, retry: true });
    await assert.rejects(
      async () => {
        for await (const _ of table.scan());
      },
      { code: Code.UNAVAILABLE },
    );
    const again = await serve({ address });
    for (;;) {
      const row = await table.get('r').catch((error: BigtableError) => assert.equal(error.code, Code.UNAVAILABLE));
      if (row) break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await database.close();
    await again.close();
  });

  test('close lets a write end, ends a scan, and refuses what comes later', async () => {
    const server = await serve();
    const database = await connect(server.address);
    const table = await database.createTable('closed', { families });
    await table.applyAll(
      Array.from({ length: 3000 }, (_, i) => new RowMutation(`r${i}`).set('f:a', Buffer.alloc(2000))),
    );
    const scan = table.scan();
    await scan.next();
    const written = table.apply(new RowMutation('last').set('f:a', 'x'));
    await database.close();
    await written;
    await assert.rejects(
      async () => {
        for await (const _ of scan);
      },
      { code: Code.CANCELLED },
    );
    await assert.rejects(table.get('last'), { code: Code.FAILED_PRECONDITION, message: 'the database is closed' });
    await assert.rejects(table.scan().next(), { code: Code.FAILED_PRECONDITION });
    await database.close();
    await using other = await connect(server.address);
    assert.equal((await other.table('closed').getCell('last', 'f:a'))?.text, 'x');
    await other.close();
    await server.close();
  });

  test('calls to a server that says nothing end by their signal and their time, and by close', async () => {
    const sockets: Socket[] = [];
    const mute = createServer((socket) => sockets.push(socket.on('error', () => {}))).listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const database = await connect(`127.0.0.1:${(mute.address() as { port: number }).port}`);
    await assert.rejects(database.listTables({ timeoutMs: 20 }), {
      name: 'TimeoutError',
      code: Code.DEADLINE_EXCEEDED,
    });
    const abort = new AbortController();
    const row = database.table('t').get('r', { signal: abort.signal });
    setImmediate(() => abort.abort());
    await assert.rejects(row, { name: 'AbortError', code: Code.CANCELLED });
    const scan = database.table('t').scan().next();
    await Promise.all([assert.rejects(scan, BigtableError), database.close()]);
    for (const socket of sockets) socket.destroy();
    mute.close();
  });

  test('a program ends though it does not close, and though it leaves a scan open and closes', {
    timeout: 60_000,
  }, async () => {
    const server = await serve();
    const database = await connect(server.address);
    const table = await database.createTable('ends', { families });
    await table.applyAll(
      Array.from({ length: 3000 }, (_, i) => new RowMutation(`r${i}`).set('f:a', Buffer.alloc(2000))),
    );
    const library = JSON.stringify(moduleUrl('../../src/embedded/index.ts', import.meta.url).href);
    const run = async (body: string): Promise<string> => {
      const source = `import { connect } from ${library}; const database = await connect(${JSON.stringify(server.address)}); const table = database.table('ends'); ${body}`;
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', source], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let out = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        out += text;
      });
      const [status] = (await once(child, 'close')) as [number];
      return `${out}${status}`;
    };
    assert.equal(await run(`console.log((await table.get('r1')).name);`), 'r1\n0');
    // nothing but the call keeps it
    const silent = '(async function* () { await new Promise(() => {}); })()';
    assert.equal(
      await run(`await table.load(${silent}, { timeoutMs: 50 }).catch(({ name }) => console.log(name));`),
      'TimeoutError\n0',
    );
    assert.equal(await run(`console.log((await table.scan().next()).value.name); await database.close();`), 'r0\n0');
    await database.close();
    await server.close();
  });
});
