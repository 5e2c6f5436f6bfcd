import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code } from '../../base/index.ts';
import { HpackDecoder } from '../hpack/decoder.ts';
import { ANSWER_HEADERS, GZIP_ANSWER_HEADERS, httpHeaders, OK_TRAILERS, statusTrailers } from './answer-blocks.ts';
import { decodeBinary, decodeMessage, encodeBinary, encodeMessage, headerValue } from './metadata.ts';
import { formatTimeout, parseTimeout } from './timeout.ts';

const decode = (block: Buffer): string[] =>
  new HpackDecoder({ maxTableBytes: 4096, maxHeaderBytes: 100_000 }).decode(block);

describe('grpc-timeout', () => {
  test('all units', () => {
    const expected = {
      '1H': 3_600_000,
      '2M': 120_000,
      '3S': 3000,
      '4m': 4,
      '5u': 0.005,
      '99999999n': 99.999999,
      '0S': 0,
    };
    for (const [header, ms] of Object.entries(expected)) assert.equal(parseTimeout(header), ms);
  });

  for (const header of ['', 'S', '1', '-1S', '1s', '123456789S', '1.5S', ' 1S', '1S ']) {
    test(`${JSON.stringify(header)} is invalid`, () =>
      assert.throws(() => parseTimeout(header), { code: Code.INTERNAL }));
  }

  test('what is written is read, never shorter and hardly longer', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (ms) => {
        const back = parseTimeout(formatTimeout(ms));
        assert.ok(back >= ms - 1e-6 && back <= ms * 1.001 + 0.002, `${ms} ${back}`);
      }),
    );
    assert.equal(formatTimeout(-5), '0u');
    assert.equal(formatTimeout(1e300), '99999999H');
  });
});

describe('texts and bytes in headers', () => {
  test('any text survives, in printable ASCII', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => {
        const header = encodeMessage(text);
        assert.match(header, /^[\x20-\x7e]*$/);
        assert.equal(decodeMessage(header), Buffer.from(text, 'utf8').toString('utf8'));
      }),
    );
  });

  test('a long text is cut at the end of a character', () => {
    assert.equal(encodeMessage('aé', 6), 'a');
    assert.equal(encodeMessage('aé', 7), 'a%C3%A9');
    assert.equal(encodeMessage('x'.repeat(5000)).length, 4096);
    assert.ok(encodeMessage('é'.repeat(5000)).length <= 4096);
  });

  test('invalid percent-encoding stays', () => assert.equal(decodeMessage('100% of %zz'), '100% of %zz'));

  test('any bytes survive, with and without padding', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
        const header = encodeBinary(bytes);
        assert.ok(!header.includes('='));
        assert.deepEqual([...decodeBinary(header)], [...bytes]);
        assert.deepEqual([...decodeBinary(Buffer.from(bytes).toString('base64'))], [...bytes]);
      }),
    );
  });

  test('the first value of a name', () => {
    assert.equal(headerValue(['b', 'a', 'a', '1', 'a', '2'], 'a'), '1');
    assert.equal(headerValue(['b', 'a'], 'a'), undefined);
  });
});

describe('answers', () => {
  test('are the headers that they should be', () => {
    const start = [':status', '200', 'content-type', 'application/grpc'];
    const accepts = ['grpc-accept-encoding', 'identity,gzip'];
    assert.deepEqual(decode(ANSWER_HEADERS), [...start, ...accepts]);
    assert.deepEqual(decode(GZIP_ANSWER_HEADERS), [...start, 'grpc-encoding', 'gzip', ...accepts]);
    assert.deepEqual(decode(OK_TRAILERS), ['grpc-status', '0']);
    assert.deepEqual(decode(httpHeaders(415, 7)).slice(0, 2), [':status', '415']);
    const status = { code: Code.NOT_FOUND, message: 'no é', details: Buffer.of(1, 2) };
    assert.deepEqual(decode(statusTrailers(status, true)), [
      ...start,
      ...accepts,
      'grpc-status',
      '5',
      'grpc-message',
      'no %C3%A9',
      'grpc-status-details-bin',
      'AQI',
    ]);
    assert.deepEqual(decode(statusTrailers({ code: Code.ABORTED, message: '', details: undefined }, false)), [
      'grpc-status',
      '10',
    ]);
  });

  test('the longest status fits a frame', () => {
    for (const length of [126, 127, 128, 254, 255, 256, 2000, 100_000]) {
      const message = 'x'.repeat(length);
      const headers = decode(statusTrailers({ code: Code.INTERNAL, message, details: Buffer.alloc(3072) }, true));
      assert.equal(headerValue(headers, 'grpc-message'), message.slice(0, 4096));
      assert.equal(headerValue(headers, 'grpc-status-details-bin')?.length, 4096);
    }
  });
});
