import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { goldenFile } from '../../../test/golden/golden-file.ts';
import { BigtableError, Code, CorruptionError } from '../../base/index.ts';
import { ManualClock, PullStream } from '../../env/index.ts';
import { CellBatchBuilder } from '../../model/index.ts';
import { thrownError } from './call-messages.ts';
import { CALL_CODEC, decodeThrown, encodedCall, encodedHandler, encodedStream, encodeThrown } from '../index.ts';
import { SAMPLES } from './fixtures.ts';

interface Sample {
  readonly method: string;
  readonly direction: 'message' | 'answer';
  readonly value: unknown;
  readonly bytes: Buffer;
}

const samples: readonly Sample[] = Object.entries(SAMPLES).flatMap(([method, { messages, answers }]) => [
  ...messages.map((value) => ({
    method,
    direction: 'message' as const,
    value,
    bytes: CALL_CODEC.messageOf(method).encode(value),
  })),
  ...answers.map((value) => ({
    method,
    direction: 'answer' as const,
    value,
    bytes: CALL_CODEC.answerOf(method).encode(value),
  })),
]);

function decode({ method, direction }: Pick<Sample, 'method' | 'direction'>, bytes: Buffer): unknown {
  return direction === 'message'
    ? CALL_CODEC.messageOf(method).decode(bytes)
    : CALL_CODEC.answerOf(method).decode(bytes);
}

function encode({ method, direction }: Sample, value: unknown): Buffer {
  return direction === 'message'
    ? CALL_CODEC.messageOf(method).encode(value)
    : CALL_CODEC.answerOf(method).encode(value);
}

function bytesOf(writer: BinaryWriter): Buffer {
  return Buffer.from(writer.finish());
}

function stepsOf<T>(generator: Generator<void, T>): { readonly steps: number; readonly result: T } {
  for (let steps = 0; ; steps++) {
    const step = generator.next();
    if (step.done) return { steps, result: step.value };
  }
}

const anySample = fc.constantFrom(...samples);

function refuses(sample: Sample, bytes: Buffer, words: RegExp): void {
  assert.throws(
    () => decode(sample, bytes),
    (error) => error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT && words.test(error.message),
  );
}

describe('messages of internal calls', () => {
  test('arrive as they were sent, each of every call', () => {
    for (const sample of samples) {
      const { method, value, bytes } = sample;
      assert.deepStrictEqual(decode(sample, bytes), value, method);
    }
  });

  test('of version 1 are read for ever, and written the same', () => {
    const lines = samples.map(({ method, direction, bytes }) => `${method} ${direction} ${bytes.toString('hex')}\n`);
    const golden = goldenFile('internal-calls-v1.txt', Buffer.from(lines.join('')))
      .toString()
      .trimEnd()
      .split('\n');
    assert.equal(golden.length, samples.length);
    for (const [index, line] of golden.entries()) {
      const sample = samples[index]!;
      const [method, direction, hex = ''] = line.split(' ');
      assert.deepEqual([method, direction], [sample.method, sample.direction]);
      assert.deepStrictEqual(decode(sample, Buffer.from(hex, 'hex')), sample.value, method);
      assert.equal(sample.bytes.toString('hex'), hex, method);
    }
  });

  test('of a later version, with fields that are not known, are read as without them', () => {
    const field = fc.record({ number: fc.integer({ min: 1000, max: 2 ** 29 - 1 }), value: fc.uint8Array() });
    fc.assert(
      fc.property(anySample, fc.array(field, { minLength: 1, maxLength: 5 }), (sample, fields) => {
        const writer = new BinaryWriter();
        for (const { number, value } of fields) {
          writer.tag(number, WireType.LengthDelimited).bytes(value);
          writer.tag(number, WireType.Varint).int64(-5);
          writer.tag(number, WireType.Bit64).double(0.5);
        }
        const extended = Buffer.concat([sample.bytes, writer.finish()]);
        assert.deepStrictEqual(decode(sample, extended), sample.value);
      }),
    );
  });

  test('of many parts are the same in steps, and the steps are many', () => {
    for (const sample of samples) {
      const form =
        sample.direction === 'message' ? CALL_CODEC.messageOf(sample.method) : CALL_CODEC.answerOf(sample.method);
      assert.deepEqual(stepsOf(form.encodeInSteps(sample.value)).result, sample.bytes);
      assert.deepStrictEqual(stepsOf(form.decodeInSteps(sample.bytes)).result, sample.value);
    }
    const setCell = { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 5, value: Buffer.of(1) };
    const many = new Array<typeof setCell>(10_000).fill(setCell);
    for (const [method, value] of [
      ['mutateRow', { tableId: 't', row: 'r', mutations: many }],
      ['mutateRows', { tableId: 't', entries: [{ row: 'r', mutations: many }] }],
      ['mutateRows', { tableId: 't', entries: many.map(() => ({ row: 'r', mutations: [setCell] })) }],
      ['checkAndMutateRow', { tableId: 't', row: 'r', whenTrue: many, whenFalse: [] }],
    ] as const) {
      const form = CALL_CODEC.messageOf(method);
      assert.ok(form.isLong, method);
      const encoded = stepsOf(form.encodeInSteps(value));
      const decoded = stepsOf(form.decodeInSteps(encoded.result));
      assert.ok(encoded.steps > 300 && decoded.steps > 300, `${method}: ${encoded.steps}, ${decoded.steps}`);
      assert.deepStrictEqual(decoded.result, value);
    }
    const answers = CALL_CODEC.answerOf('mutateRows');
    assert.ok(stepsOf(answers.encodeInSteps({ outcomes: new Array(10_000).fill(undefined) })).steps > 300);
  });

  test('that are cut off are refused, or are a message to the last byte', () => {
    fc.assert(
      fc.property(anySample, fc.double({ min: 0, max: 1, noNaN: true }), (sample, share) => {
        const bytes = sample.bytes.subarray(0, Math.floor(share * sample.bytes.length));
        decodesOrRefuses(sample, bytes);
      }),
    );
  });

  test('with bytes that are not theirs are refused with words, or are another message', () => {
    fc.assert(
      fc.property(anySample, fc.uint8Array({ maxLength: 60 }), (sample, garbage) => {
        decodesOrRefuses(sample, Buffer.from(garbage));
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(anySample, fc.nat(), fc.integer({ min: 1, max: 255 }), (sample, at, change) => {
        const bytes = Buffer.from(sample.bytes);
        if (bytes.length > 0) bytes[at % bytes.length]! ^= change;
        decodesOrRefuses(sample, bytes);
      }),
      { numRuns: 5000 },
    );
  });

  test('whose lengths run over the end are refused, and nothing is allocated for them', () => {
    const status = samples.find(({ method, direction }) => method === 'status' && direction === 'message')!;
    for (const length of [2, 2 ** 31 - 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]) {
      const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).uint64(length).uint32(7);
      refuses(status, bytesOf(writer), /runs over the end|above 32 bits/);
    }
  });

  test('with numbers that a program cannot keep are refused', () => {
    const status = samples.find(({ method }) => method === 'status')!;
    for (const epoch of [2n ** 53n, 2n ** 63n - 1n, -1n]) {
      const writer = new BinaryWriter().tag(2, WireType.Varint).int64(epoch);
      refuses(status, bytesOf(writer), /field 2 is -?\d+, out of the range/);
    }
    assert.throws(() => CALL_CODEC.messageOf('status').encode({ masterEpoch: 2 ** 53 }), { code: Code.INTERNAL });
    assert.throws(() => CALL_CODEC.messageOf('status').encode({ masterEpoch: 1.5 }), { code: Code.INTERNAL });
  });

  test('without a field that they must have are refused, and named', () => {
    for (const sample of samples) {
      if (sample.method === 'deleteTable' && sample.direction === 'message')
        refuses(sample, Buffer.alloc(0), /DeleteTableRequest lacks its field name$/);
      if (sample.method === 'checkAndMutateRow' && sample.direction === 'answer')
        refuses(sample, Buffer.alloc(0), /CheckAndMutateRowAnswer lacks its field value$/);
    }
    assert.throws(() => CALL_CODEC.messageOf('deleteTable').encode({}), /DeleteTableRequest has its field name/);
  });

  test('of kinds that are not known are refused', () => {
    const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(Buffer.of(0x1a, 0));
    const commit = samples.find(({ method, direction }) => method === 'commit' && direction === 'answer')!;
    refuses(commit, bytesOf(writer), /CommitOutcome is of no kind that this version knows/);
  });

  test('are nested as deep as a caller may nest filters, and no bytes exhaust the stack', () => {
    const read = samples.find(({ method }) => method === 'read')!;
    let bytes: Buffer = Buffer.alloc(0);
    const within = (field: number): Buffer =>
      bytesOf(new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes));
    for (let depth = 0; depth < 20_000; depth++) bytes = within(1);
    refuses(read, within(3), /nested more than 100 deep/);
  });

  test('carry the cells of a request as its mutations', () => {
    const bytes = Buffer.from('fqvalue');
    const builder = new CellBatchBuilder(bytes);
    builder.toColumn(0, 1, 1, 2);
    builder.addColumn('f', 1);
    builder.add(5, 2, 7);
    builder.add(undefined, 2, 3);
    const sent = { tableId: '0000001f', row: 'r', mutations: builder.runFrom(0) };
    const received = CALL_CODEC.messageOf('mutateRow').decode(CALL_CODEC.messageOf('mutateRow').encode(sent));
    assert.deepStrictEqual(received, {
      tableId: '0000001f',
      row: 'r',
      mutations: [
        { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 5, value: Buffer.from('value') },
        { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: undefined, value: Buffer.from('v') },
      ],
    });
  });
});

describe('calls over bytes', () => {
  const endless = {} as never;
  const clock = new ManualClock();

  test('are answered by a handler of plain data', async () => {
    const handler = encodedHandler(
      {
        call: async (method, message) => {
          assert.deepEqual([method, message], ['mergeTablets', { name: 't', row: 'm' }]);
          return undefined;
        },
        async *stream(_, message) {
          assert.deepEqual(message, SAMPLES.passedRead.messages[0]);
          yield* SAMPLES.passedRead.answers;
        },
      },
      CALL_CODEC,
      clock,
    );
    const send = (bytes: Buffer): Promise<unknown> => handler.call('mergeTablets', bytes, endless);
    assert.equal(await encodedCall(CALL_CODEC, clock, 'mergeTablets', { name: 't', row: 'm' }, send), undefined);
    const parts = encodedStream(CALL_CODEC, 'passedRead', SAMPLES.passedRead.messages[0], (bytes) =>
      handler.stream('passedRead', bytes, endless),
    );
    const seen: unknown[] = [];
    for await (const part of parts) seen.push(part);
    assert.deepEqual(seen, SAMPLES.passedRead.answers);
  });

  test('are refused before they begin if their message cannot be read, or their name is not known', async () => {
    const handler = encodedHandler({ call: assert.fail, stream: assert.fail }, CALL_CODEC, clock);
    await assert.rejects(handler.call('deleteTable', Buffer.alloc(0), endless), {
      code: Code.INVALID_ARGUMENT,
      message:
        /^the message of the internal call deleteTable cannot be read: .* DeleteTableRequest lacks its field name$/,
    });
    await assert.rejects(handler.call('toString', Buffer.alloc(0), endless), { code: Code.UNIMPLEMENTED });
    assert.throws(() => handler.stream('read', Buffer.alloc(0), endless), { code: Code.INVALID_ARGUMENT });
  });

  test('a stream with an item that cannot be read fails, and ends at its source', async () => {
    let ended = 0;
    class Source extends PullStream<Buffer> {
      pull(): Buffer {
        return Buffer.of(0xff);
      }
      end(): void {
        ended++;
      }
    }
    const parts = encodedStream(CALL_CODEC, 'passedRead', SAMPLES.passedRead.messages[0], () => new Source());
    assert.throws(() => parts.pull(), { code: Code.INTERNAL });
    assert.equal(ended, 1);
  });

  test('errors arrive with their code, details and kind', () => {
    const error = new BigtableError(Code.ABORTED, 'x', { retry: false, details: { a: 1, b: { c: [true] } } });
    const back = decodeThrown(encodeThrown(error));
    assert.deepEqual([back.code, back.message, back.retry, back.details], [Code.ABORTED, 'x', false, error.details]);
    const corrupt = decodeThrown(encodeThrown(new CorruptionError('a.sst', 7, 'bad')));
    assert.ok(corrupt instanceof CorruptionError && corrupt.file === 'a.sst' && corrupt.offset === 7);
    assert.equal(decodeThrown(encodeThrown(new TypeError('oops'))).code, Code.INTERNAL);
    assert.equal(decodeThrown(Buffer.of(1, 2, 3)).code, Code.UNAVAILABLE);
  });

  test('errors arrive whatever their details are', () => {
    const itself: Record<string, unknown> = { a: 1 };
    itself['self'] = itself;
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 100_000; i++) deep = { deep };
    const giant = { text: 'x'.repeat(10_000_000) };
    const kept = JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as Record<string, unknown>;
    for (const details of [itself, deep, giant, { f: () => 1 }, { s: Symbol('s') }, kept]) {
      const error = new BigtableError(Code.ABORTED, 'x'.repeat(10_000_000), { details });
      const bytes = encodeThrown(error);
      assert.ok(bytes.length <= 8192, String(bytes.length));
      const back = decodeThrown(bytes);
      assert.equal(back.code, Code.ABORTED);
      assert.deepEqual(Object.keys(back.details), details === kept ? ['__proto__', 'constructor'] : []);
      assert.equal(back.details['polluted'], undefined);
      const outcome = { code: error.code, message: 'x', retry: false, details };
      const answers = CALL_CODEC.answerOf('load');
      if (details !== giant) answers.decode(answers.encode([undefined, outcome]));
    }
  });

  test('an error without a code is none of success', () => {
    const plain = { name: 'BigtableError', code: Code.OK, message: 'x', retry: false, details: {}, stack: '' };
    assert.equal(decodeThrown(thrownError.encode(plain)).code, Code.UNKNOWN);
  });
});

/** Either a value that can be sent again, or an error of ours: nothing else, whatever the bytes are. */
function decodesOrRefuses(sample: Sample, bytes: Buffer): void {
  let value: unknown;
  try {
    value = decode(sample, bytes);
  } catch (error) {
    assert.ok(error instanceof BigtableError, String(error));
    assert.ok(error.code === Code.INVALID_ARGUMENT || error.code === Code.DATA_LOSS, error.message);
    return;
  }
  const again = decode(sample, encode(sample, value));
  assert.deepStrictEqual(again, value);
}
