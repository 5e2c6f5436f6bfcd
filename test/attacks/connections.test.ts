/** Attacks by connections that do nothing: by their number, and by never getting any further. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { RowMutation } from '../../src/embedded/index.ts';
import { HELLO } from '../wire/raw-frames.ts';
import { OTHERS_TABLE, Victim } from './victim.ts';

/** Copies, since a server complains of keys that others can read. */
const certificates = mkdtempSync(join(tmpdir(), 'edubba-certificates-'));
const pem = (name: string): string => join(certificates, name);
const TLS = { words: ['--tls-key', pem('server.key'), '--tls-cert', pem('server.pem')], tlsCa: pem('ca.pem') };
/** The first bytes of a TLS client. */
let clientHello: Buffer;

before(async () => {
  for (const name of readdirSync('test/certificates')) {
    copyFileSync(`test/certificates/${name}`, pem(name));
    chmodSync(pem(name), 0o600);
  }
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = connectTls({
    port: (listener.address() as AddressInfo).port,
    host: '127.0.0.1',
    ALPNProtocols: ['h2'],
  }).on('error', () => {});
  const [socket] = (await once(listener, 'connection')) as [Socket];
  [clientHello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  listener.close();
});

after(() => rmSync(certificates, { recursive: true }));

/** Connections that send these bytes and then nothing. */
class Crowd {
  readonly sockets: Socket[] = [];
  readonly #port: number;
  readonly #bytes: Buffer;

  constructor(t: TestContext, port: number, bytes: Buffer) {
    this.#port = port;
    this.#bytes = bytes;
    t.after(() => {
      for (const socket of this.sockets) socket.destroy();
    });
  }

  async grow(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, async () => {
        const socket = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
        this.sockets.push(socket);
        await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
        if (this.#bytes.length > 0 && !socket.destroyed) socket.write(this.#bytes);
        socket.resume();
      }),
    );
  }

  /** Those that the server has not ended. */
  get open(): number {
    return this.sockets.filter((socket) => !socket.destroyed && !socket.readableEnded).length;
  }
}

/** Open descriptors of a process; 0 where that cannot be seen. */
function descriptorsOf(pid: number | undefined): number {
  return platform() === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : 0;
}

const STUCK = [
  { name: 'that say nothing', bytes: () => Buffer.alloc(0) },
  { name: 'that begin a TLS handshake', bytes: () => clientHello.subarray(0, 3) },
  { name: 'that do not end their TLS handshake', bytes: () => clientHello },
];

describe('connections that never finish their TLS handshake', () => {
  for (const servers of ['1', '2']) {
    for (const { name, bytes } of STUCK) {
      test(`hundreds of them, ${name}: others are answered, few places are taken, and SIGTERM ends the server at once (${servers} tablet servers)`, async (t) => {
        const most = 100;
        const victim = await Victim.start(t, {
          ...TLS,
          words: [...TLS.words, '--tablet-servers', servers, '--max-connections', String(most)],
        });
        const idle = descriptorsOf(victim.process.pid);
        const crowd = new Crowd(t, victim.port, bytes());
        for (let i = 0; i < 4; i++) {
          await crowd.grow(100);
          await victim.answerOthers();
        }
        assert.ok(crowd.open > 0, 'the attack goes on');
        // those that came later took the places of the first
        while (crowd.open > most)
          await once(crowd.sockets.find((socket) => !socket.destroyed && !socket.readableEnded) as Socket, 'end');
        assert.ok(
          descriptorsOf(victim.process.pid) <= idle + most + 20,
          `${descriptorsOf(victim.process.pid)} descriptors, ${idle} before the attack`,
        );
        assert.equal(await victim.stop(), 0, victim.err);
      });
    }
  }

  test('are ended after the time that a handshake may take', async (t) => {
    const victim = await Victim.start(t, TLS);
    const crowd = new Crowd(t, victim.port, clientHello);
    await crowd.grow(200);
    await victim.answerOthersDuring(Promise.all(crowd.sockets.map((socket) => once(socket, 'close'))));
    for (const socket of crowd.sockets) if (!socket.destroyed && !socket.readableEnded) await once(socket, 'end');
    assert.equal(crowd.open, 0);
    assert.equal(await victim.stop(), 0, victim.err);
  });
});

describe('idle connections', () => {
  for (const servers of ['1', '2']) {
    test(`as many as there are descriptors: the log goes on to new segments, others are answered (${servers} tablet servers)`, async (t) => {
      // two threads that start load some hundred modules at a time here; the program that users run is one bundle
      const descriptors = 800;
      const victim = await Victim.start(t, { descriptors, words: ['--tablet-servers', servers] });
      const writer = (await victim.database()).table(OTHERS_TABLE);
      const crowd = new Crowd(t, victim.port, HELLO);
      await crowd.grow(descriptors * 2);
      const value = Buffer.alloc(2 << 20, 'x');
      // some segments of 16 MiB, and some flushes
      for (let i = 0; i < 50; i++) {
        await writer.apply(new RowMutation(`row${i}`).set('f:q', value));
        if (i % 10 === 0) {
          await crowd.grow(20);
          await victim.answerOthers();
        }
        assert.ok(descriptorsOf(victim.process.pid) < descriptors, 'some descriptors are left');
      }
      assert.ok(crowd.open > 50, `the attack goes on with ${crowd.open} connections`);
      assert.equal((await writer.get('row49'))?.get('f:q')?.value.length, value.length);
      assert.doesNotMatch(victim.err, /EMFILE|commit log failed|ends itself/);
      assert.ok((victim.err.match(/idle connections are ended/g) ?? []).length <= Number(servers), victim.err);
      assert.equal(await victim.stop(), 0, victim.err);
    });
  }
});
