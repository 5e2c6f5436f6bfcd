/** Limits of addresses, which this machine's own connections do not meet: sockets that say where they come from. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { clockOf, ManualClock } from '../../env/index.ts';
import { systemClock } from '../../platform/index.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { Sockets, type SocketLimits } from './sockets.ts';

const LIMITS: SocketLimits = {
  maxConnections: 100,
  maxConnectionsPerAddress: 3,
  handshakeMs: 5000,
  maxHandshakes: 1000,
  keepAliveMs: 1e9,
  keepAliveTimeoutMs: 1e9,
  maxIdleMs: 1e9,
  maxCertificateAgeMs: 1e9,
  drainMs: 1e9,
};

/** A socket for its admission alone: no bytes come from it. */
class SilentSocket extends EventEmitter {
  readonly remoteAddress: string | undefined;
  isDestroyed = false;

  constructor(remoteAddress: string | undefined) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.isDestroyed = true;
    queueMicrotask(() => this.emit('close'));
  }
}

function server(limits: Partial<SocketLimits> = {}) {
  const clock = new ManualClock();
  const env = testEnv(
    1 << 20,
    clockOf({
      ...systemClock,
      monotonicMs: () => clock.monotonicMs(),
      timer: (ms, wake) => clock.timer(ms, wake),
    }),
  );
  const sockets = new Sockets({ env, limits: { ...LIMITS, ...limits } });
  sockets.start();
  const open = (address: string | undefined): SilentSocket => {
    const socket = new SilentSocket(address);
    sockets.accept(socket as unknown as Socket);
    return socket;
  };
  return { clock, env, sockets, open };
}

describe('sockets of an address', () => {
  test('are limited from the accept on, until they end', async () => {
    const { clock, env, sockets, open } = server();
    const taken = [0, 1, 2].map(() => open('192.0.2.1'));
    for (let i = 0; i < 2; i++) assert.ok(open('192.0.2.1').isDestroyed);
    assert.ok(taken.every(({ isDestroyed }) => !isDestroyed));
    assert.equal(open('192.0.2.2').isDestroyed, false);
    assert.deepEqual([env.metrics.get('wire.refusedConnections'), env.metrics.get('wire.replacedConnections')], [2, 0]);
    assert.match(env.warnings.join(), /^connections are refused .*"192\.0\.2\.1"/);
    clock.advance(6000);
    assert.ok(taken.every(({ isDestroyed }) => isDestroyed));
    assert.deepEqual([sockets.size, env.metrics.get('wire.lateHandshakes')], [0, 4]);
    assert.equal(open('192.0.2.1').isDestroyed, false);
  });

  test('of one IPv6 network are those of one address; this machine has no limit', () => {
    const { open } = server();
    for (let i = 0; i < 5; i++) assert.equal(open(`2001:db8:0:1::${i + 1}`).isDestroyed, i >= 3);
    assert.equal(open('2001:db8:0:2::1').isDestroyed, false);
    for (const own of ['127.0.0.1', '::1', '::ffff:127.0.0.2'])
      for (let i = 0; i < 5; i++) assert.equal(open(own).isDestroyed, false);
  });

  test('a crowded address does not end the connections of others', () => {
    const { open } = server({ maxConnections: 4 });
    const others = [open('192.0.2.7'), ...[0, 1, 2].map(() => open('192.0.2.1'))];
    for (let i = 0; i < 5; i++) assert.ok(open('192.0.2.1').isDestroyed);
    assert.ok(others.every(({ isDestroyed }) => !isDestroyed));
    assert.equal(open('192.0.2.9').isDestroyed, false);
    assert.deepEqual(
      others.map(({ isDestroyed }) => isDestroyed),
      [true, false, false, false],
    );
  });

  test('at the limit of handshakes replace the oldest one of the network that has most of them', () => {
    const { env, sockets, open } = server({ maxHandshakes: 5, maxConnectionsPerAddress: 100 });
    const ended = (of: readonly SilentSocket[]): number[] =>
      of.flatMap(({ isDestroyed }, i) => (isDestroyed ? [i] : []));
    const [one, two] = [open('192.0.2.1'), open('192.0.2.2')];
    const strangers = Array.from({ length: 20 }, () => open('192.0.2.99'));
    assert.deepEqual(ended([one, two]), [], 'a flood from one network ends its own alone');
    assert.deepEqual(ended(strangers), [...Array(17).keys()]);
    const others = ['192.0.2.3', '192.0.2.4'].map(open);
    assert.deepEqual([ended([one, two, ...others]), ended(strangers).length], [[], 19]);
    assert.equal(sockets.size, 5);
    assert.equal(env.metrics.get('wire.refusedConnections'), 19);
    assert.match(env.warnings.join(), /"192\.0\.2\.99".*limitOfHandshakes|limitOfHandshakes.*"192\.0\.2\.99"/);
  });

  test('in a handshake that make way are among the oldest, however many there are', () => {
    const { open } = server({ maxHandshakes: 1000, maxConnections: 2000, maxConnectionsPerAddress: 2000 });
    const many = Array.from({ length: 1000 }, (_, i) => open(`198.51.${100 + (i >> 8)}.${i & 255}`));
    const crowd = Array.from({ length: 3 }, () => open('192.0.2.99'));
    assert.equal([...many, ...crowd].filter(({ isDestroyed }) => isDestroyed).length, 3);
    assert.ok(many.slice(0, 3).every(({ isDestroyed }) => isDestroyed));
  });

  test('one that has closed before it is accepted is refused', () => {
    const { sockets, open } = server();
    assert.ok(open(undefined).isDestroyed);
    assert.equal(sockets.size, 0);
  });
});
