import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorkedOutput } from './corked-output.ts';
import { FrameType, frameHeader } from './frames.ts';

/** Takes writes as they come, or holds them back. */
class Sink extends Duplex {
  readonly writes: Buffer[] = [];
  held: (() => void) | undefined;
  holds = false;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#take(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#take(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  #take(bytes: Buffer, done: () => void): void {
    this.writes.push(bytes);
    if (this.holds) this.held = done;
    else done();
  }
}

function output(onWritable = () => {}) {
  const socket = new Sink();
  const turnEnd = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { socket, out: new CorkedOutput({ socket, turnEnd, onWritable }), turn: turnEnd };
}

describe('output', () => {
  test('leaves in one write a turn, in order', async () => {
    const sizes = fc.array(fc.oneof(fc.nat(50), fc.nat(10_000)), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const { socket, out, turn } = output();
        const parts = lengths.map((length, i) => Buffer.alloc(length, i + 1));
        for (const part of parts) {
          out.head(part.length, FrameType.DATA, 0, 1);
          out.write(part);
        }
        assert.equal(socket.writes.length, 0);
        await turn();
        await turn();
        assert.equal(socket.writes.length, 1);
        assert.ok(
          socket.writes[0]?.equals(
            Buffer.concat(parts.flatMap((part) => [frameHeader(part.length, FrameType.DATA, 0, 1), part])),
          ),
        );
      }),
      { numRuns: 50 },
    );
  });

  test('small parts may be reused immediately', async () => {
    const { socket, out, turn } = output();
    const part = Buffer.from('abc');
    out.write(part);
    part.fill('x');
    out.write(part);
    await turn();
    assert.equal(Buffer.concat(socket.writes).toString(), 'abcxxx');
  });

  test('is full when the machine takes nothing, and reports when there is space', async () => {
    let rooms = 0;
    const { socket, out, turn } = output(() => rooms++);
    socket.holds = true;
    out.write(Buffer.alloc(200_000));
    assert.equal(out.isFull, false);
    out.write(Buffer.alloc(200_000));
    assert.equal(out.isFull, true);
    await turn();
    assert.deepEqual([out.isFull, rooms], [true, 0]);
    socket.holds = false;
    socket.held?.();
    await turn();
    assert.deepEqual([out.isFull, rooms, out.unsentBytes], [false, 1, 0]);
  });

  test('over concurrent real sockets, whose slabs are reused: every byte arrives as it was written', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const pairs = [];
    for (const fill of [1, 2, 3]) {
      const socket = connect({ port, host: '127.0.0.1' });
      const [[peer]] = await Promise.all([once(server, 'connection') as Promise<[Socket]>, once(socket, 'connect')]);
      const received: Buffer[] = [];
      peer.on('data', (chunk: Buffer) => received.push(chunk)).pause();
      const sent: Buffer[] = [];
      pairs.push({
        fill,
        socket,
        peer,
        received,
        sent,
        out: new CorkedOutput({
          socket,
          turnEnd: () => new Promise((resolve) => setImmediate(resolve)),
          onWritable: () => {},
        }),
      });
    }
    // sizes around those of copied parts and of slabs, until the machine takes no more, and then some while all is read
    for (let turn = 0, turnsLeft = 100; turnsLeft > 0; turn++) {
      for (const { fill, out, sent } of pairs) {
        for (let part = 0; part <= turn % 7 && !out.isFull; part++) {
          const bytes = Buffer.alloc((turn * 131 + part * 977 * fill) % 5000, 16 * (turn % 16) + fill);
          sent.push(bytes);
          out.write(bytes);
        }
      }
      if (turn % 3 !== 0) await new Promise((resolve) => setImmediate(resolve));
      const wereFull = pairs.every(({ out }) => out.isFull);
      if (wereFull) for (const { peer } of pairs) peer.resume();
      if (wereFull || turnsLeft < 100) turnsLeft--;
    }
    for (const { out, peer, received, sent } of pairs) {
      const ended = once(peer, 'end');
      out.end();
      await ended;
      assert.ok(Buffer.concat(received).equals(Buffer.concat(sent)));
    }
    for (const { socket } of pairs) socket.destroy();
    server.close();
  });

  test('all written bytes go before the end, and none after it', async () => {
    const { socket, out, turn } = output();
    let ended = false;
    socket.on('finish', () => {
      ended = true;
    });
    out.write(Buffer.from('last'));
    out.end();
    out.write(Buffer.from('too late'));
    await turn();
    assert.deepEqual([Buffer.concat(socket.writes).toString(), ended], ['last', true]);
  });
});
