import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { huffmanDecode, huffmanEncode, huffmanLength } from './huffman.ts';

function encoded(text: string): Buffer {
  const out = Buffer.alloc(huffmanLength(text));
  assert.equal(huffmanEncode(text, out, 0), out.length);
  return out;
}

function decoded(bytes: Buffer): string | undefined {
  const out = Buffer.alloc(Math.ceil((bytes.length * 8) / 5));
  const length = huffmanDecode(bytes, 0, bytes.length, out);
  return length < 0 ? undefined : out.latin1Slice(0, length);
}

const bits = (text: string): Buffer => Buffer.from(text.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);

describe('Huffman code of HPACK', () => {
  test('strings of RFC 7541, appendix C', () => {
    for (const [text, hex] of [
      ['www.example.com', 'f1e3c2e5f23a6ba0ab90f4ff'],
      ['no-cache', 'a8eb10649cbf'],
      ['custom-key', '25a849e95ba97d7f'],
      ['custom-value', '25a849e95bb8e8b4bf'],
      ['302', '6402'],
      ['private', 'aec3771a4b'],
      ['Mon, 21 Oct 2013 20:13:21 GMT', 'd07abe941054d444a8200595040b8166e082a62d1bff'],
      ['https://www.example.com', '9d29ad171863c78f0b97c8e9ae82ae43d3'],
    ] as const) {
      assert.equal(encoded(text).toString('hex'), hex);
      assert.equal(decoded(Buffer.from(hex, 'hex')), text);
    }
  });

  test('codes at the edges of appendix B', () => {
    for (const [symbol, code] of [
      [0x30, '00000'],
      [0x20, '010100'],
      [0x58, '11111100'],
      [0x21, '1111111000'],
      [0x00, '1111111111000'],
      [0x5c, '1111111111111110000'],
      [0x0a, '111111111111111111111111111100'],
      [0x16, '111111111111111111111111111110'],
      [0xff, '11111111111111111111101110'],
      [0xf9, '1111111111111111111111111110'],
    ] as const) {
      const whole = code.padEnd(Math.ceil(code.length / 8) * 8, '1');
      assert.equal(
        encoded(String.fromCharCode(symbol)).toString('hex'),
        bits(whole).toString('hex'),
        `symbol ${symbol}`,
      );
    }
  });

  test('every string survives', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const text = Buffer.from(bytes).latin1Slice();
        assert.equal(decoded(encoded(text)), text);
      }),
    );
  });

  test('a broken code is refused', () => {
    assert.equal(decoded(bits('00000000')), undefined, 'padding of zeros');
    assert.equal(decoded(bits('0000011111111111')), undefined, 'padding of more than seven bits');
    assert.equal(decoded(bits('11111111')), undefined, 'nothing but padding, and too much of it');
    assert.equal(decoded(bits('11111111111111111111111111111111')), undefined, 'EOS');
    assert.equal(decoded(bits('00000110')), undefined, 'the string ends within a code');
    assert.equal(decoded(bits('00000111')), '0');
    assert.equal(decoded(Buffer.alloc(0)), '');
  });

  test('bytes that decode are the code of the decoded text', () => {
    let sound = 0;
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 6 }), (bytes) => {
        const text = decoded(Buffer.from(bytes));
        if (text === undefined) return;
        sound++;
        assert.deepEqual(encoded(text), Buffer.from(bytes));
      }),
      { numRuns: 3000 },
    );
    assert.ok(sound > 10);
  });

  test('text beyond latin1 has no code', () => {
    assert.equal(huffmanLength('\u0100'), Number.NaN);
  });
});
