/**
 * Attacks of hostile callers on a server, each a loop that goes on until its process is ended. Load goes to loopback
 * only; an attack's own process bounds it in time.
 */
import { connect as connectSocket, type Socket } from 'node:net';
import { connect } from '../../src/boot/index.ts';
import { type Database, overService, type RowFilter, RowMutation } from '../../src/embedded/index.ts';
import { message } from '../../test/bad-input/protobuf.ts';
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
} from '../../test/wire/raw-frames.ts';
import { RawPeer } from '../../test/wire/raw-peer.ts';

export interface Attack {
  /** Arguments of `edubba serve`. */
  readonly words?: readonly string[];
  readonly isTls?: boolean;
  /** The limit of descriptors of the server's process. */
  readonly descriptors?: number;
  /** Makes what the attack needs by honest calls. */
  readonly prepare?: (database: Database) => Promise<void>;
  /** Goes on for ever. */
  readonly run: (address: string) => Promise<void>;
}

const TABLE = 'attacked';
const TABLE_PATH = `projects/local/instances/local/tables/${TABLE}`;
const HEALTH = '/grpc.health.v1.Health/Check';
const READ_ROWS = '/google.bigtable.v2.Bigtable/ReadRows';
const READ_MODIFY_WRITE = '/google.bigtable.v2.Bigtable/ReadModifyWriteRow';
const MIB = 1024 * 1024;
const MAX_FRAME_BYTES = 16_384;
const MAX_MESSAGE_BYTES = 256 * MIB;
const forever = new Promise<never>(() => {});
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1));

async function database(address: string): Promise<Database> {
  const { service, env, close } = await connect(address);
  return overService(service, env, close);
}

/** Makes the call again and again, `atOnce` at a time. What it is answered does not matter. */
async function repeat(address: string, atOnce: number, call: (of: Database) => Promise<unknown>): Promise<void> {
  const caller = await database(address);
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (;;) await call(caller).catch(() => pause(1));
    }),
  );
}

const scanWith =
  (filter: RowFilter) =>
  async (of: Database): Promise<void> => {
    for await (const _ of of.table(TABLE).scan({ filter }));
  };

function requestHeaders(streamId: number, path: string, flags: number = Flag.END_HEADERS): Buffer {
  return frame(FrameType.HEADERS, flags, streamId, callHeaders(path));
}

/** A whole call, its message in as many frames as it needs. */
function call(streamId: number, path: string, body: Buffer): Buffer {
  const bytes = Buffer.concat([messagePrefix(body.length), body]);
  const frames = [requestHeaders(streamId, path)];
  for (let at = 0; at < bytes.length; at += MAX_FRAME_BYTES) {
    const isLast = at + MAX_FRAME_BYTES >= bytes.length;
    frames.push(
      frame(FrameType.DATA, isLast ? Flag.END_STREAM : 0, streamId, bytes.subarray(at, at + MAX_FRAME_BYTES)),
    );
  }
  return Buffer.concat(frames);
}

/** Keeps `count` connections open that `greet` has spoken on; those that the server closes are opened again. */
async function keepConnections(
  address: string,
  count: number,
  greet: (peer: RawPeer) => Promise<void>,
): Promise<never> {
  const port = portOf(address);
  const keep = async (): Promise<never> => {
    for (;;) {
      const peer = await RawPeer.connect(port).catch(() => undefined);
      if (peer) {
        await greet(peer);
        await new Promise<void>((resolve) =>
          peer.isClosed ? resolve() : peer.socket.once('close', () => resolve()).once('end', () => resolve()),
        );
        peer.destroy();
      }
      await pause(20);
    }
  };
  await Promise.all(Array.from({ length: count }, keep));
  return forever;
}

/** Raw TCP, also to a TLS port: `bytes` and then nothing more. */
async function silentSockets(address: string, count: number, bytes: (i: number) => Buffer): Promise<never> {
  const open = (i: number): Socket => {
    const socket = connectSocket({ host: '127.0.0.1', port: portOf(address) });
    socket.on('connect', () => socket.write(bytes(i)));
    socket.on('error', () => {});
    socket.on('close', () => setTimeout(() => open(i), 100));
    return socket;
  };
  for (let i = 0; i < count; i++) {
    open(i);
    if (i % 100 === 99) await pause(20);
  }
  return forever;
}

/** Announces a message of 256 MiB on each new stream, and sends a byte of it now and then. */
const announceLarge =
  (path: string, streams: number) =>
  async (peer: RawPeer): Promise<void> => {
    await peer.send(HELLO);
    for (let i = 0; i < streams; i++)
      await peer.send(
        Buffer.concat([
          requestHeaders(2 * i + 1, path),
          frame(FrameType.DATA, 0, 2 * i + 1, messagePrefix(MAX_MESSAGE_BYTES)),
        ]),
      );
    const timer = setInterval(() => peer.isClosed || void peer.send(frame(FrameType.DATA, 0, 1, Buffer.of(0))), 1000);
    peer.socket.once('close', () => clearInterval(timer));
  };

/** A stream window of 0 for answers, so that none is ever sent. */
const readNothing =
  (calls: readonly Buffer[]) =>
  async (peer: RawPeer): Promise<void> => {
    await peer.send(Buffer.concat([HELLO, settingsFrame([[INITIAL_WINDOW_SIZE, 0]]), ...calls]));
  };

const flood =
  (bytes: Buffer) =>
  async (peer: RawPeer): Promise<void> => {
    await peer.send(HELLO);
    void (async () => {
      while (!peer.isClosed && !peer.socket.writableEnded && peer.end === undefined) await peer.send(bytes);
      peer.destroy();
    })();
  };

const passAll: RowFilter = { kind: 'passAll' } as RowFilter;
const interleaves = (links: number, branches: number, ...last: RowFilter[]): RowFilter =>
  ({
    kind: 'chain',
    filters: [
      ...Array.from({ length: links }, () => ({
        kind: 'interleave',
        filters: Array.from({ length: branches }, () => passAll),
      })),
      ...last,
    ],
  }) as RowFilter;

async function makeTable(of: Database): Promise<void> {
  await of.createTable(TABLE, { families: { f: {} } });
  await of.table(TABLE).apply(new RowMutation('r').set('f:q', 'value', 1000));
}

async function writeLarge(of: Database, sizeBytes: number, count = 1): Promise<void> {
  await makeTable(of);
  for (let i = 0; i < count; i++)
    await of.table(TABLE).apply(new RowMutation(`large${i}`).set('f:q', Buffer.alloc(sizeBytes, 'a'), 1000));
}

const SLOW_REGEX = `${'.{0,900}'.repeat(50)}b`;
const readLarge = message({ 1: TABLE_PATH });
const appendToLarge = message({ 1: TABLE_PATH, 2: 'large0', 3: [message({ 1: 'f', 2: 'q', 3: 'x' })] });
const STREAMS = 80;
const oddStreams = (count: number, make: (streamId: number) => Buffer): Buffer[] =>
  Array.from({ length: count }, (_, i) => make(2 * i + 1));

export const ATTACKS: Readonly<Record<string, Attack>> = {
  nobody: { run: () => forever },
  '30 interleaves of 40 in a chain': {
    prepare: makeTable,
    run: (address) => repeat(address, 4, scanWith(interleaves(30, 40))),
  },
  '64 interleaves of 2, nothing passes': {
    prepare: makeTable,
    run: (address) => repeat(address, 4, scanWith(interleaves(64, 2, { kind: 'valueRegex', regex: 'no' }))),
  },
  'interleaves of 8 on 100,000 cells': {
    prepare: async (of) => {
      await makeTable(of);
      const wide = new RowMutation('wide');
      for (let i = 0; i < 100_000; i++) wide.set(`f:${i}`, 'v', 1000);
      await of.table(TABLE).apply(wide);
    },
    run: (address) => repeat(address, 2, scanWith(interleaves(1, 8, { kind: 'valueRegex', regex: 'no' }))),
  },
  'a slow pattern on a value of 4 MB': {
    prepare: (of) => writeLarge(of, 4 * MIB),
    run: (address) => repeat(address, 2, scanWith({ kind: 'valueRegex', regex: SLOW_REGEX })),
  },
  'a slow pattern on a key of 60 KB': {
    prepare: async (of) => {
      await makeTable(of);
      await of.table(TABLE).apply(new RowMutation('a'.repeat(60_000)).set('f:q', 'value', 1000));
    },
    run: (address) => repeat(address, 2, scanWith({ kind: 'rowKeyRegex', regex: SLOW_REGEX })),
  },
  '1,000,000 row keys in a read': {
    prepare: makeTable,
    run: async (address) => {
      const rows = Array.from({ length: 1_000_000 }, (_, i) => `key${(i * 7919) % 1_000_003}`);
      await repeat(address, 1, async (of) => {
        for await (const _ of of.table(TABLE).scan({ rows }));
      });
    },
  },
  'Health/Check of 256 MiB, announced': { run: (address) => keepConnections(address, 2, announceLarge(HEALTH, 1)) },
  'writes of 256 MiB, announced': {
    run: (address) => keepConnections(address, 4, announceLarge('/google.bigtable.v2.Bigtable/MutateRows', STREAMS)),
  },
  '320 readers that read nothing, and writes of 4 MB': {
    prepare: (of) => writeLarge(of, MIB, 8),
    run: async (address) => {
      void keepConnections(address, 4, readNothing(oddStreams(STREAMS, (id) => call(id, READ_ROWS, readLarge))));
      await repeat(address, 2, (of) =>
        of.table(TABLE).apply(new RowMutation('other').set('f:q', Buffer.alloc(4 * MIB), 1000)),
      );
    },
  },
  '40 unread answers of 40 MB': {
    prepare: (of) => writeLarge(of, 40 * MIB),
    run: (address) =>
      keepConnections(address, 2, readNothing(oddStreams(20, (id) => call(id, READ_MODIFY_WRITE, appendToLarge)))),
  },
  '2,000 TLS handshakes that stop': {
    isTls: true,
    run: (address) => silentSockets(address, 2000, (i) => Buffer.of(0x16, 3, 1).subarray(0, i % 2 === 0 ? 3 : 0)),
  },
  '400 idle connections, 256 descriptors': {
    descriptors: 256,
    run: (address) => keepConnections(address, 400, (peer) => peer.send(HELLO)),
  },
  'a flood of WINDOW_UPDATEs': {
    run: (address) =>
      keepConnections(address, 4, flood(Buffer.concat(Array.from({ length: 2000 }, () => windowUpdateFrame(0, 1))))),
  },
  'a flood of PINGs': {
    run: (address) =>
      keepConnections(
        address,
        4,
        flood(Buffer.concat(Array.from({ length: 2000 }, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))))),
      ),
  },
};
