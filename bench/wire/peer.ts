/**
 * A peer of HTTP/2 as small as it can be: a socket on which the preface and settings were exchanged, and one request as
 * bytes.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const INITIAL_WINDOW_SIZE = 4;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/**
 * Resolves when the server has said its settings. `windowBytes`: what it may send before it is granted more; HTTP/2's
 * default is 65,535.
 */
export async function openConnection(port: number, { windowBytes }: { windowBytes?: number }): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  await once(socket, 'connect');
  const settings = Buffer.alloc(windowBytes === undefined ? 0 : 6);
  if (windowBytes !== undefined) {
    settings.writeUInt16BE(INITIAL_WINDOW_SIZE, 0);
    settings.writeUInt32BE(windowBytes, 2);
  }
  socket.write(Buffer.concat([PREFACE, frame(4, 0, 0, settings), frame(4, 1, 0, Buffer.alloc(0))]));
  if (windowBytes !== undefined) {
    const more = Buffer.alloc(4);
    more.writeUInt32BE(windowBytes - 65_535, 0);
    socket.write(frame(8, 0, 0, more));
  }
  await once(socket, 'data');
  return socket;
}

/** A ReadRows of the whole table, on stream 1. */
export function readRowsOf(table: string): Buffer {
  const headers = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': '/google.bigtable.v2.Bigtable/ReadRows',
    ':authority': 'localhost',
    'content-type': 'application/grpc',
    te: 'trailers',
  };
  const block = Object.entries(headers).flatMap(([name, value]) => [
    Buffer.of(0, name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ]);
  const message = Buffer.concat([Buffer.of(0x0a, table.length), Buffer.from(table)]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([frame(1, 4, 1, Buffer.concat(block)), frame(0, 1, 1, Buffer.concat([prefix, message]))]);
}
