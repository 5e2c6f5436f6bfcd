import assert from 'node:assert/strict';
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

function output(onRoom = () => {}) {
  const socket = new Sink();
  const turnEnd = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { socket, out: new CorkedOutput({ socket, turnEnd, onRoom }), turn: turnEnd };
}

describe('output', () => {
  test('leaves in one write a turn, in order', async () => {
    const sizes = fc.array(fc.oneof(fc.nat(50), fc.nat(10_000)), { minLength: 1, maxLength: 20 });
    await fc.assert(fc.asyncProperty(sizes, async (lengths) => {
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
      assert.ok(socket.writes[0]?.equals(Buffer.concat(parts.flatMap((part) => [frameHeader(part.length, FrameType.DATA, 0, 1), part]))));
    }), { numRuns: 50 });
  });

  test('small parts may be used again at once', async () => {
    const { socket, out, turn } = output();
    const part = Buffer.from('abc');
    out.write(part);
    part.fill('x');
    out.write(part);
    await turn();
    assert.equal(Buffer.concat(socket.writes).toString(), 'abcxxx');
  });

  test('is full when the machine takes nothing, and says when there is room', async () => {
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

  test('what is there goes before the end, and nothing after it', async () => {
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
