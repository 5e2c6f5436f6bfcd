import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type BigtableError, Code } from '../base/index.ts';
import { systemClock } from '../platform/index.ts';
import { MonitorServer } from './monitor-server.ts';
import { Readiness } from './readiness.ts';

const PAGE = '# HELP a A.\n# TYPE a counter\na 1\n';

async function started(
  t: TestContext,
  page = async (): Promise<string> => PAGE,
): Promise<{ port: number; address: string; readiness: Readiness; server: MonitorServer }> {
  const readiness = new Readiness(systemClock);
  const server = await MonitorServer.listen({
    clock: systemClock,
    address: '127.0.0.1:0',
    page: { text: page },
    readiness,
  });
  t.after(() => server.close());
  return { port: Number(server.address.split(':')[1]), address: server.address, readiness, server };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type: string | undefined;
}

function ask(port: number, path: string, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, path, method, agent: false }, (response) => {
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (more) => (text += more))
        .on('end', () => resolve({ status: response.statusCode ?? 0, text, type: response.headers['content-type'] }));
    });
    asking.on('error', reject).end();
  });
}

/** The bytes that come on a connection until it ends. */
async function raw(port: number, bytes: string | Buffer, ends = false): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (more) => (text += more));
  socket.on('error', () => {});
  socket.write(bytes);
  if (ends) socket.end();
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

async function opened(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

test('answers with the page, that the process lives, and whether the server serves: not while it starts or stops', async (t) => {
  const { port, readiness } = await started(t);
  assert.deepEqual(await ask(port, '/metrics'), {
    status: 200,
    text: PAGE,
    type: 'text/plain; version=0.0.4; charset=utf-8',
  });
  assert.deepEqual(await ask(port, '/healthz?x=1'), { status: 200, text: 'ok\n', type: 'text/plain; charset=utf-8' });
  assert.deepEqual(
    [(await ask(port, '/readyz')).status, (await ask(port, '/readyz')).text],
    [503, 'the server is starting\n'],
  );
  readiness.serving();
  assert.equal((await ask(port, '/readyz')).status, 200);
  readiness.stopping();
  readiness.serving();
  assert.equal((await ask(port, '/readyz')).text, 'the server is stopping\n');
  assert.match((await ask(port, '/')).text, /\/metrics/);
  assert.deepEqual([(await ask(port, '/nowhere')).status, (await ask(port, '/metrics/')).status], [404, 404]);
  const head = await ask(port, '/metrics', 'HEAD');
  assert.deepEqual([head.status, head.text], [200, '']);
});

test('an obstacle is reported, and checked once however many requests come', async () => {
  let asked = 0;
  let reason: string | undefined = 'the disk is full';
  const readiness = new Readiness(systemClock, [async () => (asked++, reason)]);
  readiness.serving();
  assert.deepEqual(
    await Promise.all(Array.from({ length: 100 }, () => readiness.obstacle())),
    new Array(100).fill('the disk is full'),
  );
  assert.equal(asked, 1);
  reason = undefined;
});

test('other methods, and requests with bodies, are refused and end their connection', async (t) => {
  const { port } = await started(t);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
    assert.equal((await ask(port, '/metrics', method)).status, 405, method);
  for (const body of [
    'Content-Length: 6\r\n\r\na body',
    'Content-Length: 1000000000\r\n\r\n',
    'Transfer-Encoding: chunked\r\n\r\n',
  ]) {
    assert.match(await raw(port, `GET /metrics HTTP/1.1\r\nHost: a\r\n${body}`), /^HTTP\/1\.1 413 /, body);
  }
});

test('garbage, HTTP/2, huge headers and an upgrade end their connection, and the next one is answered', async (t) => {
  const { port } = await started(t);
  const garbage = [
    '\0\0\0\0',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: a\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`,
    Buffer.alloc(300_000, 0xff),
  ];
  for (const bytes of garbage) assert.doesNotMatch(await raw(port, bytes), /200 OK/);
  assert.doesNotMatch(await raw(port, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'), /200/);
  const upgrade = await raw(
    port,
    'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n',
    true,
  );
  assert.doesNotMatch(upgrade, /101/);
  assert.equal((await ask(port, '/healthz')).status, 200);
});

test('requests that come together on one connection are answered in order', async (t) => {
  const { port } = await started(t);
  const text = await raw(
    port,
    `${'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50)}GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  );
  assert.deepEqual([text.match(/HTTP\/1\.1 200 OK/g)?.length, text.match(/HTTP\/1\.1 404/g)?.length], [50, 1]);
});

test('however many requests come together, other connections have their turn between any two of one', async (t) => {
  let pages = 0;
  const { port } = await started(t, async () => (pages++, PAGE));
  const sockets = await Promise.all(Array.from({ length: 8 }, () => opened(port)));
  const ends = sockets.map((socket) => once(socket.resume(), 'close'));
  for (const socket of sockets) socket.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000));
  let isOver = false;
  void Promise.all(ends).then(() => (isOver = true));
  for (let before = 0; !isOver; before = pages) {
    await systemClock.yield();
    assert.ok(pages - before <= 4 * sockets.length, `${pages - before} requests in a turn`);
  }
  assert.ok(pages > 100 && pages < 8000, `${pages} pages`);
});

test('a connection that does not take its answers makes way for others', async (t) => {
  const { port } = await started(t, async () => 'x'.repeat(16 << 20));
  const sockets = await Promise.all(Array.from({ length: 8 }, () => opened(port)));
  for (const socket of sockets) socket.pause().write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
  for (let i = 0; i < 8; i++) {
    // a connection is not replaced while its answer is made
    while ((await ask(port, '/healthz').catch(() => undefined))?.status !== 200) await systemClock.yield();
  }
  for (const socket of sockets) socket.destroy();
});

test('a request that comes in pieces, after empty lines, and before the end of its sender is answered', async (t) => {
  const { port } = await started(t);
  const socket = await opened(port);
  let text = '';
  socket.setEncoding('latin1').on('data', (more) => (text += more));
  for (const byte of '\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n\r\n') {
    socket.write(byte);
    await systemClock.yield();
  }
  socket.end();
  await once(socket, 'close');
  assert.match(
    text,
    /^HTTP\/1\.1 200 OK\r\n.*Content-Length: 3\r\n.*Connection: keep-alive\r\n.*\r\n\r\nok\nHTTP\/1\.1 200 OK\r\n.*\r\n\r\n# HELP a A\..*a 1\n$/s,
  );
});

test('a connection that sends thousands of requests in a second is closed', async (t) => {
  const { port } = await started(t);
  const text = await raw(port, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20_000));
  const answers = text.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0;
  assert.ok(answers < 20_000, `${answers} answers`);
});

test('idle connections keep no client out; those with a request in progress are not ended for others', async (t) => {
  let answer: ((text: string) => void) | undefined;
  const { port } = await started(t, () => new Promise((resolve) => (answer = resolve)));
  const waiting = ask(port, '/metrics');
  while (answer === undefined) await systemClock.yield();
  const idle = [];
  for (let i = 0; i < 200; i++) idle.push(await opened(port));
  for (let i = 0; i < 20; i++) assert.equal((await ask(port, '/healthz')).status, 200);
  answer(PAGE);
  assert.equal((await waiting).text, PAGE);
  for (const socket of idle) socket.destroy();
});

test('where all connections have a request in progress, new ones are refused', async (t) => {
  const answers: ((text: string) => void)[] = [];
  const { port } = await started(t, () => new Promise((resolve) => answers.push(resolve)));
  const waiting = Array.from({ length: 8 }, () => ask(port, '/metrics'));
  while (answers.length < 8) await systemClock.yield();
  await assert.rejects(ask(port, '/healthz'));
  for (const answer of answers) answer(PAGE);
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 200);
});

test('figures that cannot be read are an error of that request alone', async (t) => {
  const { port } = await started(t, () => Promise.reject(new Error('gone')));
  assert.equal((await ask(port, '/metrics')).status, 500);
  assert.equal((await ask(port, '/healthz')).status, 200);
});

test('an address in use, and an invalid one, are refused; close ends every connection', async (t) => {
  const { address, server, port } = await started(t);
  const page = { text: async () => '' };
  const readiness = new Readiness(systemClock);
  const refused = (given: string): Promise<BigtableError> =>
    MonitorServer.listen({ clock: systemClock, address: given, page, readiness }).then(
      () => assert.fail(given),
      (error) => error,
    );
  assert.equal((await refused(address)).code, Code.ALREADY_EXISTS);
  for (const given of ['nowhere', '127.0.0.1', '127.0.0.1:70000', ''])
    assert.equal((await refused(given)).code, Code.INVALID_ARGUMENT, given);
  const socket = await opened(port);
  const ended = new Promise((resolve) => socket.once('close', resolve));
  await server.close();
  await ended;
});
