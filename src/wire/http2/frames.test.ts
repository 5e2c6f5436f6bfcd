import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  ErrorCode,
  errorCodeName,
  FrameReader,
  FrameType,
  frame,
  frameHeader,
  goAwayFrame,
  Http2Error,
  rstStreamFrame,
  settingsFrame,
  windowUpdateFrame,
} from './frames.ts';

type Seen = readonly [type: number, flags: number, streamId: number, payload: string];

function reader(maxFrameBytes = 16_384): { seen: Seen[]; push(chunk: Buffer): void } {
  const seen: Seen[] = [];
  const frames = new FrameReader(maxFrameBytes, (type, flags, streamId, payload) =>
    seen.push([type, flags, streamId, payload.toString('hex')]),
  );
  return { seen, push: (chunk) => frames.push(chunk) };
}

describe('frames', () => {
  test('a head is nine bytes, big-endian, with 31 bits of stream id', () => {
    assert.equal(frameHeader(0x010203, FrameType.PING, 0x05, 0x7fffffff).toString('hex'), '01020306057fffffff');
    assert.equal(rstStreamFrame(3, ErrorCode.CANCEL).toString('hex'), '000004030000000003' + '00000008');
    assert.equal(windowUpdateFrame(0, 0x7fffffff).toString('hex'), '000004080000000000' + '7fffffff');
    assert.equal(
      settingsFrame([
        [3, 1000],
        [4, 0xffffffff],
      ]).toString('hex'),
      '00000c040000000000' + '0003000003e8' + '0004ffffffff',
    );
    assert.equal(
      goAwayFrame(5, ErrorCode.NO_ERROR, 'bye').toString('hex'),
      '00000b070000000000' + '00000005' + '00000000' + '627965',
    );
  });

  test('what is written is read, however it is cut', () => {
    const anyFrame = fc.record({
      type: fc.nat(255),
      flags: fc.nat(255),
      streamId: fc.nat(0x7fffffff),
      payload: fc.uint8Array({ maxLength: 60 }),
    });
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 8 }), fc.array(fc.nat(40), { maxLength: 40 }), (frames, cuts) => {
        const bytes = Buffer.concat(
          frames.map(({ type, flags, streamId, payload }) => frame(type, flags, streamId, payload)),
        );
        const { seen, push } = reader(60);
        let at = 0;
        for (const cut of cuts) {
          push(bytes.subarray(at, at + cut));
          at = Math.min(at + cut, bytes.length);
        }
        push(bytes.subarray(at));
        assert.deepEqual(
          seen,
          frames.map(({ type, flags, streamId, payload }) => [
            type,
            flags,
            streamId,
            Buffer.from(payload).toString('hex'),
          ]),
        );
      }),
    );
  });

  test('a reader that must stop does so after a frame, and continues with the rest', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(60), { maxLength: 40 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
        fc.nat(500),
        (lengths, answers, cut) => {
          const frames = lengths.map((length, i) => frame(i % 10, 0, i, Buffer.alloc(length, i)));
          const bytes = Buffer.concat(frames);
          const ends = new Set(frames.map((_, i) => Buffer.concat(frames.slice(0, i + 1)).length));
          const seen: number[] = [];
          const reader = new FrameReader(60, (_type, _flags, streamId) => seen.push(streamId));
          let asked = 0;
          let at = 0;
          for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
            for (let from = 0; from < part.length; ) {
              const readBytes = reader.push(part.subarray(from), () => answers[asked++ % answers.length] === true);
              from += readBytes;
              at += readBytes;
              assert.ok(from === part.length || ends.has(at), 'it stopped within a frame');
              assert.ok(readBytes > 0, 'it continues');
            }
          }
          assert.deepEqual(
            seen,
            lengths.map((_, i) => i),
          );
          assert.ok(asked >= Math.floor((lengths.length - 2) / 4), 'it checks every few frames');
        },
      ),
    );
  });

  test('byte by byte', () => {
    const bytes = Buffer.concat([
      frame(0, 1, 1, Buffer.from('abc')),
      frame(4, 0, 0, Buffer.alloc(0)),
      frame(9, 4, 2, Buffer.from('z')),
    ]);
    const { seen, push } = reader();
    for (const byte of bytes) push(Buffer.from([byte]));
    assert.deepEqual(seen, [
      [0, 1, 1, '616263'],
      [4, 0, 0, ''],
      [9, 4, 2, '7a'],
    ]);
  });

  test('the reserved bit is not part of the stream id', () => {
    const { seen, push } = reader();
    push(Buffer.from('000000060080000001', 'hex'));
    assert.deepEqual(seen, [[6, 0, 1, '']]);
  });

  test('a payload within one chunk is a view of it', () => {
    const chunk = frame(FrameType.DATA, 0, 1, Buffer.alloc(100, 7));
    let payload: Buffer | undefined;
    new FrameReader(16_384, (_type, _flags, _streamId, bytes) => {
      payload = bytes;
    }).push(chunk);
    assert.equal(payload?.buffer, chunk.buffer);
  });

  for (const cut of [3, 5, 9, 12]) {
    test(`a frame above the limit is refused at its head, even if the head is cut at ${cut}`, () => {
      const { seen, push } = reader(100);
      const bytes = Buffer.concat([frameHeader(101, FrameType.DATA, 0, 1), Buffer.alloc(10)]);
      assert.throws(
        () => {
          push(bytes.subarray(0, cut));
          push(bytes.subarray(cut));
        },
        (error: unknown) =>
          error instanceof Http2Error && error.code === ErrorCode.FRAME_SIZE_ERROR && error.streamId === 0,
      );
      assert.deepEqual(seen, []);
    });
  }

  test('any bytes at all end in frames or in a frame size error', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (chunks) => {
        const { push } = reader(50);
        try {
          for (const chunk of chunks) push(Buffer.from(chunk));
        } catch (error) {
          assert.ok(error instanceof Http2Error && error.code === ErrorCode.FRAME_SIZE_ERROR);
        }
      }),
    );
  });

  test('codes have names, unknown ones too', () => {
    assert.equal(errorCodeName(ErrorCode.ENHANCE_YOUR_CALM), 'ENHANCE_YOUR_CALM');
    assert.equal(errorCodeName(99), 'error 99');
  });
});
