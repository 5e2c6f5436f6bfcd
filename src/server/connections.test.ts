/** A server's limits of time and number for connections reach its sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { describe, test, type TestContext } from 'node:test';
import { ByteBudget, clockOf, ManualClock, Metrics, silentLogger } from '../env/index.ts';
import { systemClock } from '../platform/index.ts';
import type { Service } from '../service/index.ts';
import { type ServerOptions, startServer } from './server.ts';

const LONG_MS = 1e8;

/** A connection without calls to a server on a clock that stands still. */
async function idleConnection(
  t: TestContext,
  options: Partial<ServerOptions>,
): Promise<{ clock: ManualClock; session: ClientHttp2Session }> {
  const manual = new ManualClock();
  const clock = clockOf({
    ...systemClock,
    monotonicMs: () => manual.monotonicMs(),
    timer: (ms, wake) => manual.timer(ms, wake),
  });
  const env = {
    clock,
    random: { float: () => 0, uniqueName: () => '0' },
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(1 << 20),
  };
  const server = await startServer({
    service: {} as Service,
    env,
    address: '127.0.0.1:0',
    graceMs: 0,
    keepAliveMs: LONG_MS,
    keepAliveTimeoutMs: LONG_MS,
    maxIdleMs: LONG_MS,
    ...options,
  });
  const session = connect(`http://${server.address}`);
  session.on('error', () => {});
  t.after(async () => {
    session.destroy();
    await server.close();
  });
  await once(session, 'remoteSettings');
  // answered once the server has our settings, and so the whole handshake
  await new Promise((resolve) => session.ping(resolve));
  return { clock: manual, session };
}

describe('connections without calls', () => {
  test('stay before any of their times is over', async (t) => {
    const { clock, session } = await idleConnection(t, {});
    session.on('goaway', () => assert.fail('drained')).on('ping', () => assert.fail('pinged'));
    clock.advance(LONG_MS / 10);
    await new Promise((resolve) => session.ping(resolve));
    assert.ok(!session.closed);
  });

  test('end after maxIdleMs', async (t) => {
    const { clock, session } = await idleConnection(t, { maxIdleMs: 5000 });
    const ended = once(session, 'goaway');
    clock.advance(10_000);
    await ended;
  });

  test('are pinged after keepAliveMs', async (t) => {
    const { clock, session } = await idleConnection(t, { keepAliveMs: 5000 });
    const asked = once(session, 'ping');
    clock.advance(7000);
    await asked;
  });

  test('are cut off when they do not answer within keepAliveTimeoutMs', async (t) => {
    const { clock, session } = await idleConnection(t, { keepAliveMs: 5000, keepAliveTimeoutMs: 3000 });
    const closed = once(session, 'close');
    // all in one turn: no answer can come in between
    clock.advance(20_000);
    await closed;
  });
});

describe('numbers of connections', () => {
  const env = {
    clock: systemClock,
    random: { float: () => 0, uniqueName: () => '0' },
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(1 << 20),
  };
  for (const name of [
    'maxConnections',
    'maxConnectionsPerAddress',
    'keepAliveMs',
    'keepAliveTimeoutMs',
    'maxIdleMs',
  ] as const) {
    for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      test(`${name} ${value} is refused`, async () => {
        const starting = startServer({ service: {} as Service, env, address: '127.0.0.1:0', [name]: value });
        await assert.rejects(starting, {
          code: 3,
          message: `invalid ${name} ${value}: expected a whole number above 0`,
        });
      });
    }
  }
});
