/**
 * Whoever reaches the port with metrics and probes takes nothing of the server: its callers are answered meanwhile, and
 * so are those who look after it.
 */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/platform/index.ts';
import { Victim } from './victim.ts';

async function victim(
  t: TestContext,
  words: readonly string[] = [],
): Promise<{ victim: Victim; port: number; page: () => Promise<string> }> {
  const started = await Victim.start(t, { words });
  const port = Number(/^metrics: http:\/\/127\.0\.0\.1:(\d+)\//m.exec(started.out)?.[1]);
  assert.ok(port > 0, started.out);
  return { victim: started, port, page: () => pageAt(port) };
}

/** The page, as soon as there is space for the request: within a second after a flood. */
async function pageAt(port: number): Promise<string> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: 'close' } }).catch(
      () => undefined,
    );
    if (answer !== undefined) return answer.text();
    await systemClock.yield();
  }
}

/** Connections that are opened anew as soon as they end, each with these bytes, until it is stopped. */
function flood(
  t: TestContext,
  port: number,
  connections: number,
  bytes: string | Buffer,
): { readonly ended: Promise<void>; readonly opened: () => number; stop(): void } {
  let [isStopped, opened] = [false, 0];
  const sockets = new Set<Socket>();
  const one = async (): Promise<void> => {
    while (!isStopped) {
      const socket = connect(port, '127.0.0.1');
      sockets.add(socket);
      opened++;
      await new Promise<void>((resolve) => {
        socket.on('error', () => {}).once('close', () => resolve());
        // what comes back is not read
        socket.once('connect', () => void socket.pause().write(bytes));
      });
      sockets.delete(socket);
      await systemClock.yield();
    }
  };
  const stop = (): void => {
    isStopped = true;
    for (const socket of sockets) socket.destroy();
  };
  t.after(stop);
  return { ended: Promise.all(Array.from({ length: connections }, one)).then(() => {}), opened: () => opened, stop };
}

const REQUEST = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';
const ATTACKS: readonly (readonly [string, number, string | Buffer, readonly string[]])[] = [
  ['pages that are requested all the time and not read', 30, REQUEST.repeat(5000), []],
  ['the same, with two tablet servers', 30, REQUEST.repeat(5000), ['--tablet-servers', '2']],
  ['connections that say nothing', 300, '', []],
  ['headers that do not end', 50, `GET /metrics HTTP/1.1\r\n${'x: y\r\n'.repeat(500)}`, []],
  [
    'bodies that do not end',
    50,
    `POST /metrics HTTP/1.1\r\nHost: a\r\ncontent-length: 1000000000\r\n\r\n${'x'.repeat(100_000)}`,
    [],
  ],
  ['bytes that are no HTTP', 50, Buffer.alloc(200_000, 0xfe), []],
];

for (const [what, connections, bytes, words] of ATTACKS) {
  test(what, async (t) => {
    const { victim: server, port, page } = await victim(t, words);
    const before = await server.memory();
    const attack = flood(t, port, connections, bytes);
    while (attack.opened() < connections) await systemClock.yield();
    await server.answerOthersDuring(attack.ended);
    const { peakRssBytes } = await server.memory();
    assert.ok(
      peakRssBytes - before.rssBytes < 128 * 1024 * 1024,
      `the server grew by ${(peakRssBytes - before.rssBytes) / 1024 / 1024} MiB`,
    );
    attack.stop();
    await attack.ended;
    assert.match(await page(), /^edubba_calls_total/m);
    assert.equal(await server.stop(), 0, server.err);
  });
}
