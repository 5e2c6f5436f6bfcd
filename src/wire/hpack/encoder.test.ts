import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HpackDecoder } from './decoder.ts';
import { HpackEncoder } from './encoder.ts';

const REQUEST = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com'];
const decoderOf = (maxTableBytes = 65_536): HpackDecoder =>
  new HpackDecoder({ maxTableBytes, maxHeaderBytes: 1 << 20 });
const hexOf = (encoder: HpackEncoder, headers: readonly string[]): string => encoder.encode(headers).toString('hex');

describe('HpackEncoder', () => {
  test('C.4 of RFC 7541: requests', () => {
    const encoder = new HpackEncoder();
    assert.equal(hexOf(encoder, REQUEST), '828684418cf1e3c2e5f23a6ba0ab90f4ff');
    assert.equal(hexOf(encoder, [...REQUEST, 'cache-control', 'no-cache']), '828684be5886a8eb10649cbf');
    const third = [
      ':method',
      'GET',
      ':scheme',
      'https',
      ':path',
      '/index.html',
      ':authority',
      'www.example.com',
      'custom-key',
      'custom-value',
    ];
    assert.equal(hexOf(encoder, third), '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf');
  });

  test('C.6 of RFC 7541: answers that evict, in a table of 256 bytes', () => {
    const encoder = new HpackEncoder();
    encoder.setPeerTableSize(256);
    const answer = (status: string): string[] => [
      ':status',
      status,
      'cache-control',
      'private',
      'date',
      'Mon, 21 Oct 2013 20:13:21 GMT',
      'location',
      'https://www.example.com',
    ];
    assert.equal(
      hexOf(encoder, answer('302')),
      '3fe101' +
        '488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3',
    );
    assert.equal(
      hexOf(encoder, answer('307')),
      '4803333037c1c0bf',
      '307 is no shorter in Huffman code, so it stays plain',
    );
  });

  test('the same again is a byte a field', () => {
    const encoder = new HpackEncoder();
    const headers = [
      ':path',
      '/google.bigtable.v2.Bigtable/MutateRow',
      'user-agent',
      'edubba',
      'x-goog-request-params',
      'table_name=t',
    ];
    assert.ok(encoder.encode(headers).length > 50);
    assert.equal(encoder.encode(headers).length, 3);
  });

  test('secrets are marked, and never come from a table', () => {
    const encoder = new HpackEncoder();
    for (let round = 0; round < 2; round++) {
      const block = encoder.encode(['authorization', 'Bearer x']);
      assert.equal(block.subarray(0, 2).toString('hex'), '1f08', 'never indexed, the name of entry 23');
      assert.ok(block.length > 8);
    }
    assert.equal((encoder.encode(['cookie', ''])[0] as number) & 0xf0, 0x10);
  });

  test('fields that change with each call, and huge ones, evict no others', () => {
    const encoder = new HpackEncoder();
    encoder.encode(['kept', 'value']);
    encoder.encode(['grpc-timeout', '1S', 'huge', 'x'.repeat(3000)]);
    assert.equal(hexOf(encoder, ['kept', 'value']), 'be');
  });

  test('sizes that were changed between two blocks: the smallest, then the last', () => {
    const encoder = new HpackEncoder({ maxTableBytes: 8192 });
    encoder.encode(['a', 'b']);
    encoder.setPeerTableSize(0);
    encoder.setPeerTableSize(64);
    encoder.setPeerTableSize(8192);
    assert.equal(hexOf(encoder, []), '20' + '3fe13f');
    assert.equal(hexOf(encoder, []), '');
    encoder.setPeerTableSize(1 << 30);
    assert.equal(hexOf(encoder, []), '', 'more than we keep ourselves');
  });

  test('a smaller table of our own is announced first', () => {
    assert.equal(hexOf(new HpackEncoder({ maxTableBytes: 0 }), ['a', 'b']), '20' + '0001610162');
  });

  test('a header beyond latin1 is a bug of the caller', () => {
    assert.throws(() => new HpackEncoder().encode(['a', '\u0100']), /a header holds latin1 only/);
  });
});

describe('both sides', () => {
  const text = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).latin1Slice());
  const name = fc.oneof(
    fc.constantFrom(':path', ':status', 'a', 'b', 'authorization', 'grpc-timeout', 'content-type'),
    text,
  );
  const value = fc.oneof(
    fc.constantFrom('', '200', '/', 'same'),
    text,
    fc.nat(6000).map((length) => 'v'.repeat(length)),
  );
  const step = fc.record({
    sizes: fc.array(fc.oneof(fc.constantFrom(0, 31, 32, 33, 4096, 65_536), fc.nat(400)), { maxLength: 3 }),
    headers: fc.array(fc.tuple(name, value), { maxLength: 12 }).map((fields) => fields.flat()),
  });

  test('headers survive, through evictions and changes of size', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.constantFrom(0, 100, 4096, 65_536), (steps, maxTableBytes) => {
        const encoder = new HpackEncoder({ maxTableBytes });
        const decoder = decoderOf();
        for (const { sizes, headers } of steps) {
          for (const size of sizes) encoder.setPeerTableSize(size);
          assert.deepEqual(decoder.decode(encoder.encode(headers)), headers);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('many distinct fields over one connection', () => {
    const encoder = new HpackEncoder();
    const decoder = decoderOf();
    for (let i = 0; i < 2000; i++) {
      const headers = [':path', `/service/${i % 70}`, `name-${i % 31}`, `value-${i}`, 'fixed', 'same'];
      assert.deepEqual(decoder.decode(encoder.encode(headers)), headers);
    }
  });
});
