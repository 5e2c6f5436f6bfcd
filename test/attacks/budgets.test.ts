/**
 * Callers who take the server's memory and give nothing for it: lengths that are announced and never sent, requests
 * that come byte by byte, answers that are not read. While each goes on, other callers are answered, and the server's
 * memory stays bounded.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { BigtableError, type Code } from '../../src/base/index.ts';
import { connect, openDatabase } from '../../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../../src/embedded/index.ts';
import { ByteBudget, type Clock, clockOf, requestContext } from '../../src/env/index.ts';
import { systemClock, systemRandom } from '../../src/platform/index.ts';
import { startServer } from '../../src/server/index.ts';
import { WireClient } from '../../src/wire/index.ts';
import {
  Flag,
  FrameType,
  frame,
  HELLO,
  callHeaders,
  INITIAL_WINDOW_SIZE,
  messagePrefix,
  settingsFrame,
  windowUpdateFrame,
} from '../wire/raw-frames.ts';
import { RawPeer } from '../wire/raw-peer.ts';
import { Victim } from './victim.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const HEALTH = '/grpc.health.v1.Health/Check';
const DATA = '/google.bigtable.v2.Bigtable/';
const NO_WINDOW = settingsFrame([[INITIAL_WINDOW_SIZE, 0]]);

const headers = (streamId: number, path: string): Buffer =>
  frame(FrameType.HEADERS, Flag.END_HEADERS, streamId, callHeaders(path));
const data = (streamId: number, bytes: Buffer, flags = 0): Buffer => frame(FrameType.DATA, flags, streamId, bytes);
/** Announces a message, and sends some of it. */
const announce = (streamId: number, path: string, length: number, bytes: number): Buffer => {
  const body = Buffer.concat([messagePrefix(length), Buffer.alloc(bytes)]);
  const frames: Buffer[] = [headers(streamId, path)];
  for (let at = 0; at < body.length; at += 16_384) frames.push(data(streamId, body.subarray(at, at + 16_384)));
  return Buffer.concat(frames);
};
const call = (streamId: number, path: string, message: Buffer): Buffer =>
  Buffer.concat([
    headers(streamId, path),
    data(streamId, Buffer.concat([messagePrefix(message.length), message]), Flag.END_STREAM),
  ]);
const times = (count: number, make: (i: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(i)));
const odd = (i: number): number => 2 * i + 1;
/** A field of bytes in a protobuf message, below 128 of them. */
const field = (number: number, bytes: Buffer | string): Buffer =>
  Buffer.concat([Buffer.of((number << 3) | 2, bytes.length), Buffer.from(bytes)]);

/** An attack that goes on until it is stopped; every step is awaited. */
function goesOn(step: () => Promise<unknown>): { readonly ended: Promise<void>; stop(): void } {
  let isStopped = false;
  const loop = async (): Promise<void> => {
    while (!isStopped) await step();
  };
  return { ended: loop(), stop: () => void (isStopped = true) };
}

describe('a server in another process', () => {
  for (const [connections, words] of [
    [1, []],
    [2, []],
    [4, ['--tablet-servers', '2']],
  ] as const) {
    test(`health checks that announce 256 MiB, on ${connections} connections ${words.join(' ')}`, async (t) => {
      const victim = await Victim.start(t, { words });
      const peers = await Promise.all(Array.from({ length: connections }, () => victim.raw()));
      for (const peer of peers) await peer.send(HELLO);
      let streams = 0;
      const announceAgain = async (): Promise<void> => {
        const streamId = odd(streams++);
        for (const peer of peers) await peer.send(announce(streamId, HEALTH, 256 * MIB, 0));
        while (peers.some((peer) => peer.end === undefined && peer.statusOf(streamId) === undefined))
          await systemClock.yield();
        for (const peer of peers)
          assert.equal(
            peer.statusOf(streamId),
            'status 8',
            `a request of 256 MiB is refused by its length (${peer.end})`,
          );
        await systemClock.yield();
      };
      const attack = goesOn(announceAgain);
      attack.ended.catch(() => {});
      await victim.answerOthersDuring(attack.ended);
      attack.stop();
      await attack.ended;
      assert.ok(streams > 0);
    });
  }

  test('many connections, each with many requests that are announced and begun: memory is bounded, others are answered', async (t) => {
    const victim = await Victim.start(t);
    const before = await victim.memory();
    const peers = await Promise.all(Array.from({ length: 60 }, () => victim.raw()));
    // some 900 KiB on each connection, of 300 MiB that are announced on each
    for (const peer of peers)
      await peer.send(
        Buffer.concat([HELLO, times(30, (i) => announce(odd(i), `${DATA}MutateRows`, 10 * MIB, 30 * KIB))]),
      );
    const attack = goesOn(() => systemClock.yield());
    await victim.answerOthersDuring(attack.ended);
    attack.stop();
    const { peakRssBytes } = await victim.memory();
    assert.ok(
      peakRssBytes - before.rssBytes < 256 * MIB,
      `the server grew by ${(peakRssBytes - before.rssBytes) / MIB} MiB`,
    );
  });
});

describe('a server with a budget of 16 MiB', () => {
  const LIMIT = 16 * MIB;
  const VALUE = Buffer.alloc(64 * KIB, 'v');
  const CELL = Buffer.alloc(4 * MIB, 'c');
  let budget: ByteBudget;
  let address: string;
  let client: Database;
  let tableName: string;
  const stops: (() => Promise<void>)[] = [];
  let peers: RawPeer[] = [];
  let maxUsed = 0;
  /** The server's clock runs so far ahead of the machine's. */
  let lateMs = 0;

  before(async () => {
    const clock: Clock = clockOf({ ...bound(systemClock), monotonicMs: () => systemClock.monotonicMs() + lateMs });
    const { service, env, close } = await openDatabase({ memory: true, clock, settings: { requestBytes: LIMIT } });
    const server = await startServer({ service, env, address: '127.0.0.1:0' });
    const connection = await connect(server.address);
    budget = env.requestBudget;
    address = server.address;
    client = overService(connection.service, connection.env, connection.close);
    stops.push(
      () => client.close(),
      () => server.close(),
      close,
    );
    const table = await client.createTable('t', { families: { f: {} } });
    tableName = table.fullName;
    for (let i = 0; i < 32; i++) await table.apply(new RowMutation(`row ${i}`).set('f:q', VALUE));
    await table.apply(new RowMutation('z').set('f:q', CELL));
  });

  after(async () => {
    for (const stop of stops) await stop();
  });

  beforeEach(() => {
    maxUsed = 0;
    peers = [];
  });

  async function attackers(count: number, hello = HELLO): Promise<RawPeer[]> {
    const port = Number(address.slice(address.lastIndexOf(':') + 1));
    peers = await Promise.all(Array.from({ length: count }, () => RawPeer.connect(port)));
    for (const peer of peers) await peer.send(hello);
    return peers;
  }

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      maxUsed = Math.max(maxUsed, budget.usedBytes);
      await systemClock.yield();
    }
  }

  async function health(): Promise<void> {
    const errorOf = ({ code, message }: { code: Code; message: string }): BigtableError =>
      new BigtableError(code, message);
    const wire = new WireClient({ address, clock: systemClock, random: systemRandom, errorOf });
    const context = requestContext({ budget: new ByteBudget(KIB), deadlineMs: systemClock.monotonicMs() + 60_000 });
    await wire.unary(HEALTH, new Uint8Array(0), context);
    wire.close();
  }

  /**
   * All are answered while the attackers' connections are open: a large write, and small calls before and during it.
   */
  async function othersAreServed(): Promise<void> {
    const table = client.table('t');
    const small = async (): Promise<void> => {
      await Promise.all([health(), table.get('row 1'), table.apply(new RowMutation('small').set('f:q', 'x'))]);
    };
    let isDone = false;
    const large = table.apply(new RowMutation('zz').set('f:q', CELL)).then(() => (isDone = true));
    await small();
    await until(() => isDone);
    await large;
    await small();
    assert.ok(maxUsed <= LIMIT, `${maxUsed} bytes of ${LIMIT} were used`);
    assert.ok(
      peers.every((peer) => !peer.isClosed),
      'the attackers are still there',
    );
  }

  async function leave(): Promise<void> {
    for (const peer of peers) peer.destroy();
    await until(() => budget.usedBytes === 0 && budget.waiting === 0);
  }

  test('readers that open no window hold what the budget has, and others are served', async () => {
    const readers = await attackers(4, Buffer.concat([HELLO, NO_WINDOW]));
    for (const peer of readers) await peer.send(times(80, (i) => call(odd(i), `${DATA}ReadRows`, field(1, tableName))));
    await until(() => budget.usedBytes > LIMIT / 2);
    await othersAreServed();
    const ended = readers
      .flatMap((peer) => Array.from({ length: 80 }, (_, i) => peer.statusOf(odd(i))))
      .filter((status) => status !== undefined);
    assert.ok(
      ended.length > 0 && ended.every((status) => status === 'status 14'),
      `ended with ${[...new Set(ended)]}: clients go on after UNAVAILABLE`,
    );
    await leave();
  });

  test('readers that take a byte now and then do not keep others from their memory', async () => {
    const readers = await attackers(4, Buffer.concat([HELLO, NO_WINDOW]));
    for (const peer of readers) await peer.send(times(80, (i) => call(odd(i), `${DATA}ReadRows`, field(1, tableName))));
    await until(() => budget.usedBytes > LIMIT / 2);
    const attack = goesOn(async () => {
      for (const peer of readers) await peer.send(times(80, (i) => windowUpdateFrame(odd(i), 1)));
      for (let i = 0; i < 200; i++) await systemClock.yield();
    });
    await othersAreServed();
    attack.stop();
    await attack.ended;
    await leave();
  });

  test('answers of writes that are not read: what is held is bounded, and what is refused is not written', async () => {
    const table = client.table('t');
    await table.apply(new RowMutation('grows').set('f:q', CELL));
    const append = Buffer.concat([
      field(1, tableName),
      field(2, 'grows'),
      field(3, Buffer.concat([field(1, 'f'), field(2, 'q'), field(3, 'x')])),
    ]);
    const writers = await attackers(2, Buffer.concat([HELLO, NO_WINDOW]));
    for (const peer of writers) await peer.send(times(10, (i) => call(odd(i), `${DATA}ReadModifyWriteRow`, append)));
    const statuses = (): string[] =>
      writers
        .flatMap((peer) => Array.from({ length: 10 }, (_, i) => peer.statusOf(odd(i)) ?? ''))
        .filter((status) => status !== '');
    const answered = (): number =>
      writers.reduce((sum, peer) => sum + peer.frames.filter(({ type }) => type === FrameType.HEADERS).length, 0);
    await until(() => answered() >= 20);
    const refused = statuses().filter((status) => status === 'status 8').length;
    assert.ok(refused >= 15, `${refused} of 20 were refused`);
    await othersAreServed();
    const [row] = [await table.get('grows')];
    assert.equal(row?.get('f:q')?.value.length, CELL.length + 20 - refused);
    await leave();
  });

  test('what is announced and not sent costs nothing', async () => {
    const writers = await attackers(4);
    for (const peer of writers) await peer.send(times(100, (i) => announce(odd(i), `${DATA}MutateRows`, 200 * MIB, 0)));
    await until(() => budget.usedBytes >= 4 * 100 * 5);
    await health();
    assert.ok(budget.usedBytes < MIB, `${budget.usedBytes} bytes are held`);
    await othersAreServed();
    await leave();
  });

  test('requests that come byte by byte hold little more than came', async () => {
    const writers = await attackers(8);
    for (const peer of writers) await peer.send(times(50, (i) => announce(odd(i), `${DATA}MutateRows`, 10 * MIB, 1)));
    const attack = goesOn(async () => {
      for (const peer of writers) await peer.send(times(50, (i) => data(odd(i), Buffer.of(1))));
      for (let i = 0; i < 20; i++) await systemClock.yield();
    });
    await until(() => budget.usedBytes > 0);
    await othersAreServed();
    attack.stop();
    await attack.ended;
    await leave();
  });

  test('large requests that stop after a good beginning are ended for those who wait', async () => {
    const writers = await attackers(4);
    for (const peer of writers)
      await peer.send(times(4, (i) => announce(odd(i), `${DATA}MutateRows`, 10 * MIB, 65 * KIB)));
    await until(() => budget.waiting > 0);
    await othersAreServed();
    await leave();
  });

  test('if no call waits, a reader that has stopped is left alone', async () => {
    const [peer] = await attackers(1, Buffer.concat([HELLO, NO_WINDOW]));
    await (peer as RawPeer).send(call(1, `${DATA}ReadRows`, field(1, tableName)));
    await until(() => budget.usedBytes > 0);
    lateMs += 20_000;
    await client.table('t').apply(new RowMutation('zz').set('f:q', CELL));
    assert.equal((peer as RawPeer).statusOf(1), undefined);
    await leave();
  });
});

function bound(clock: Clock): Clock {
  return clockOf({
    nowMicros: () => clock.nowMicros(),
    monotonicMs: () => clock.monotonicMs(),
    timer: (delayMs, wake) => clock.timer(delayMs, wake),
    yield: () => clock.yield(),
  });
}
