import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { MessageReader, messagePrefix } from './message-framing.ts';

function reader(maxMessageBytes = 1_000_000) {
  const messages: [string, boolean][] = [];
  const lengths: number[] = [];
  const it = new MessageReader({
    maxMessageBytes,
    onLength: (bytes) => lengths.push(bytes),
    onMessage: (bytes, compressed) => messages.push([bytes.toString('hex'), compressed]),
  });
  return { it, messages, lengths };
}

const framed = (message: Uint8Array, compressed = false): Buffer =>
  Buffer.concat([messagePrefix(message.length, compressed), message]);

describe('messages in a stream', () => {
  test('come out as they went in, however the stream is cut', () => {
    const anyMessage = fc.record({ bytes: fc.uint8Array({ maxLength: 50 }), compressed: fc.boolean() });
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 6 }), fc.array(fc.nat(30), { maxLength: 30 }), (sent, cuts) => {
        const stream = Buffer.concat(sent.map(({ bytes, compressed }) => framed(bytes, compressed)));
        const { it, messages, lengths } = reader();
        let at = 0;
        for (const cut of cuts) {
          it.push(stream.subarray(at, at + cut));
          at = Math.min(at + cut, stream.length);
        }
        it.push(stream.subarray(at));
        assert.deepEqual(
          messages,
          sent.map(({ bytes, compressed }) => [Buffer.from(bytes).toString('hex'), compressed]),
        );
        assert.deepEqual(
          lengths,
          sent.map(({ bytes }) => bytes.length),
        );
        assert.equal(it.isInside, false);
      }),
    );
  });

  test('large ones in small pieces', () => {
    const message = Buffer.alloc(700_000, 'abc');
    const { it, messages } = reader();
    const stream = framed(message);
    for (let at = 0; at < stream.length; at += 16_384) {
      assert.equal(messages.length, 0);
      it.push(stream.subarray(at, at + 16_384));
    }
    assert.equal(messages[0]?.[0], message.toString('hex'));
  });

  test('a length is reported before the message, and a claim costs nothing more', () => {
    const { it, lengths } = reader(2 ** 31);
    const before = process.memoryUsage().arrayBuffers;
    it.push(messagePrefix(2 ** 30, false));
    it.push(Buffer.alloc(1000));
    assert.deepEqual([lengths, it.isInside], [[2 ** 30], true]);
    assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
  });

  test('a small message does not keep the large buffer that it came in', () => {
    let kept: ArrayBufferLike | undefined;
    const it = new MessageReader({
      maxMessageBytes: 100_000,
      onMessage: (bytes) => {
        kept = bytes.buffer;
      },
    });
    const chunk = Buffer.alloc(65_536);
    framed(Buffer.alloc(100)).copy(chunk);
    it.push(chunk.subarray(0, 105));
    assert.notEqual(kept, chunk.buffer);
    framed(Buffer.alloc(30_000)).copy(chunk);
    it.push(chunk.subarray(0, 30_005));
    assert.equal(kept, chunk.buffer);
  });

  for (const [what, bytes, code] of [
    ['a first byte that is neither 0 nor 1', Buffer.from([2, 0, 0, 0, 0]), Code.INTERNAL],
    ['a length above the limit', messagePrefix(101, false), Code.RESOURCE_EXHAUSTED],
    ['the largest possible length', messagePrefix(0xffffffff, false), Code.RESOURCE_EXHAUSTED],
  ] as const) {
    test(`${what} is refused`, () => {
      assert.throws(
        () => reader(100).it.push(bytes),
        (error: unknown) => error instanceof BigtableError && error.code === code,
      );
    });
  }
});
