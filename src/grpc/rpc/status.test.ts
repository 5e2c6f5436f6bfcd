import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { BigtableError, Code, CorruptionError, invalidArgument } from '../../base/index.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../generated/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../generated/google/rpc/status_pb.ts';
import { errorOfAnswer, errorOfStatus } from './error-of-status.ts';
import { statusBytes, wireStatus } from './status.ts';

describe('statuses', () => {
  test('code and message arrive unchanged, every code', () => {
    for (const code of Object.values(Code)) {
      const { message, details, code: sent } = wireStatus(new BigtableError(code, 'why'));
      assert.deepEqual([sent, message, details], [code, 'why', undefined]);
      const back = errorOfStatus(code, 'why');
      assert.equal(back?.code, code === Code.OK ? undefined : code);
    }
    assert.equal(errorOfStatus(99, 'odd')?.code, Code.UNKNOWN);
  });

  test('a field that is at fault becomes a BadRequest', () => {
    const { details } = wireStatus(invalidArgument('too long', { field: 'row_key' }));
    const any = fromBinary(StatusSchema, details ?? Buffer.alloc(0)).details[0];
    assert.ok(any);
    const request = anyUnpack(any, BadRequestSchema);
    assert.deepEqual(
      request?.fieldViolations.map(({ field, description }) => [field, description]),
      [['row_key', 'too long']],
    );
  });

  test('other facts become an ErrorInfo', () => {
    const any = fromBinary(
      StatusSchema,
      wireStatus(new CorruptionError('sst-7', 512, 'bad checksum')).details ?? Buffer.alloc(0),
    ).details[0];
    assert.ok(any);
    const info = anyUnpack(any, ErrorInfoSchema);
    assert.equal(info?.reason, 'DATA_LOSS');
    assert.deepEqual(info?.metadata, { file: 'sst-7', offset: '512' });
  });

  test('facts come back as text', () => {
    const back = (error: BigtableError): BigtableError => errorOfAnswer(wireStatus(error));
    assert.deepEqual(back(invalidArgument('too long', { field: 'row_key' })).details, { field: 'row_key' });
    assert.deepEqual(back(new CorruptionError('sst-7', 512, 'bad')).details, { file: 'sst-7', offset: '512' });
    const plain = back(new BigtableError(Code.ABORTED, 'again'));
    assert.deepEqual([plain.code, plain.message, plain.details, plain.retry], [Code.ABORTED, 'again', {}, true]);
    const odd = Object.fromEntries([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
    assert.deepEqual(
      back(new BigtableError(Code.ABORTED, 'again', { details: odd })).details,
      odd,
      'names that every object has',
    );
    assert.deepEqual(
      errorOfAnswer({ code: Code.INTERNAL, message: 'x', details: Buffer.from('\xff\xff', 'latin1') }).details,
      {},
      'bytes that are not a status',
    );
  });

  test('facts that are not plain values are left out', () => {
    assert.equal(
      wireStatus(new BigtableError(Code.ABORTED, 'x', { details: { nested: { a: 1 } } })).details,
      undefined,
    );
  });

  test('any thrown value becomes a status that a header can carry', () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        const status = wireStatus(thrown);
        assert.equal(status.code, Code.INTERNAL);
        encodeURI(status.message);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 5000 }), (message) => {
        const { length } = encodeURI(wireStatus(new Error(`${message}\ud800`)).message);
        assert.ok(length > 0 && wireStatus(new Error(message)).message.length <= 2049);
      }),
    );
    const long = wireStatus(invalidArgument('x'.repeat(100_000), { field: 'f', other: 'y'.repeat(100_000) }));
    assert.equal(long.message.length, 2049);
    assert.ok((long.details?.length ?? 0) <= 3072);
  });

  test('entries of a batch carry the same', () => {
    const status = fromBinary(StatusSchema, statusBytes(invalidArgument('no', { field: 'f' })));
    assert.deepEqual([status.code, status.message, status.details.length], [3, 'no', 1]);
  });
});
