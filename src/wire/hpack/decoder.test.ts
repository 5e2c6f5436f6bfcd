import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HeaderListTooLarge, HpackDecoder, HpackError } from './decoder.ts';

const decoderOf = (maxHeaderBytes = 65_536, maxTableBytes = 4096): HpackDecoder =>
  new HpackDecoder({ maxTableBytes, maxHeaderBytes });
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const literal = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.of(0x40, name.length),
    Buffer.from(name),
    Buffer.of(0x7f, ...varint(value.length - 127)),
    Buffer.from(value),
  ]);

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)];
}

/** Blocks of one connection, each with the fields that it decodes to. */
function check(decoder: HpackDecoder, blocks: readonly (readonly [string, readonly string[]])[]): void {
  for (const [block, headers] of blocks) assert.deepEqual(decoder.decode(hex(block)), headers);
}

const REQUEST = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com'];
const SECOND = [...REQUEST, 'cache-control', 'no-cache'];
const THIRD = [
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
const DATE = 'Mon, 21 Oct 2013 20:13:21 GMT';
const LOCATION = 'https://www.example.com';
const answer = (status: string): string[] => [
  ':status',
  status,
  'cache-control',
  'private',
  'date',
  DATE,
  'location',
  LOCATION,
];
const LAST_ANSWER = [
  ':status',
  '200',
  'cache-control',
  'private',
  'date',
  'Mon, 21 Oct 2013 20:13:22 GMT',
  'location',
  LOCATION,
  'content-encoding',
  'gzip',
  'set-cookie',
  'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
];

describe('vectors of RFC 7541, appendix C', () => {
  test('C.2: single fields', () => {
    check(decoderOf(), [
      ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', ['custom-key', 'custom-header']],
      ['be', ['custom-key', 'custom-header']],
    ]);
    check(decoderOf(), [['040c 2f73 616d 706c 652f 7061 7468', [':path', '/sample/path']]]);
    check(decoderOf(), [['1008 7061 7373 776f 7264 0673 6563 7265 74', ['password', 'secret']]]);
    check(decoderOf(), [['82', [':method', 'GET']]]);
  });

  test('C.3: requests', () => {
    check(decoderOf(), [
      ['8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d', REQUEST],
      ['8286 84be 5808 6e6f 2d63 6163 6865', SECOND],
      ['8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65', THIRD],
    ]);
  });

  test('C.4: requests in Huffman code', () => {
    check(decoderOf(), [
      ['8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff', REQUEST],
      ['8286 84be 5886 a8eb 1064 9cbf', SECOND],
      ['8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf', THIRD],
    ]);
  });

  test('C.5: answers, with entries evicted from a table of 256 bytes', () => {
    check(decoderOf(), [
      [
        '3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        answer('302'),
      ],
      ['4803 3330 37c1 c0bf', answer('307')],
      [
        '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49' +
          '553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
        LAST_ANSWER,
      ],
    ]);
  });

  test('C.6: the same in Huffman code', () => {
    check(decoderOf(), [
      [
        '3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
        answer('302'),
      ],
      ['4883 640e ffc1 c0bf', answer('307')],
      [
        '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed' +
          '4ee5 b106 3d50 07',
        LAST_ANSWER,
      ],
    ]);
  });
});

describe('a decoder refuses', () => {
  const cases: readonly (readonly [name: string, block: string])[] = [
    ['index 0', '80'],
    ['index 62 of an empty table', 'be'],
    ['an index far after the table', 'ffff ff7f'],
    ['the name of a missing index', '7f0001 61'],
    ['an integer that does not end', '7f80 8080 8080 8080 8001'],
    ['an integer of 32 bits', 'ffff ffff ff0f'],
    ['an integer cut off', 'ff'],
    ['an integer cut off later', 'ffff'],
    ['a field without a string', '40'],
    ['a field without a value', '400161'],
    ['a string that is cut off', '4003 6162'],
    ['a string of 256 MB', '407f 8080 807f'],
    ['Huffman padding of zeros', '4001 6181 00'],
    ['Huffman padding of eight bits', '4001 6182 07ff'],
    ['EOS in a string', '4001 6184 ffff ffff'],
    ['a table above the limit', '3fe2 1f'],
    ['a table resized after a field', '8220'],
    ['a table resized more often than a peer has cause for', '20202082'],
  ];
  for (const [name, block] of cases) {
    test(name, () => {
      assert.throws(() => decoderOf().decode(hex(block)), HpackError);
    });
  }

  test('a table of the limit itself is accepted, and two changes in a row', () => {
    check(decoderOf(), [
      ['3fe1 1f', []],
      ['20 3fe1 1f 82', [':method', 'GET']],
    ]);
  });

  test('a table of 0 bytes holds nothing', () => {
    const decoder = decoderOf();
    check(decoder, [
      ['4001 6101 62', ['a', 'b']],
      ['20', []],
    ]);
    assert.throws(() => decoder.decode(hex('be')), HpackError);
    check(decoder, [['4001 6101 62', ['a', 'b']]]);
    assert.throws(() => decoder.decode(hex('be')), HpackError);
  });

  test('an entry larger than the table empties it', () => {
    const decoder = decoderOf();
    check(decoder, [
      ['4001 6101 62', ['a', 'b']],
      ['3f04', []],
    ]);
    assert.deepEqual(decoder.decode(hex('4001 6102 6262')), ['a', 'bb']);
    check(decoder, [['be', ['a', 'bb']]]);
    assert.deepEqual(decoder.decode(hex('4001 6103 626262')), ['a', 'bbb']);
    assert.throws(() => decoder.decode(hex('be')), HpackError);
  });
});

describe('lists above the limit', () => {
  test('are refused after their last field, which the table has learned', () => {
    const decoder = decoderOf(100);
    assert.throws(() => decoder.decode(hex('4001 6101 62 4001 6301 64 4001 6501 66')), HeaderListTooLarge);
    check(decoder, [
      ['be bf', ['e', 'f', 'c', 'd']],
      ['c0', ['a', 'b']],
    ]);
  });

  test('at the limit are accepted', () => {
    assert.deepEqual(decoderOf(34).decode(hex('4001 6101 62')), ['a', 'b']);
    assert.throws(() => decoderOf(33).decode(hex('4001 6101 62')), HeaderListTooLarge);
  });

  test('a bomb of references says how large it would be, and costs nothing', () => {
    const decoder = decoderOf(16_384);
    const value = 'v'.repeat(3000);
    assert.deepEqual(decoder.decode(literal('bomb', value)), ['bomb', value]);
    const bomb = Buffer.alloc(16_000, 0xbe);
    assert.throws(() => decoder.decode(bomb), {
      message: `a header list of ${16_000 * 3036} bytes; the limit is 16384`,
    });
  });
});

describe('any bytes', () => {
  test('decode, or are refused in one of the two ways', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 80 }), { maxLength: 4 }), (blocks) => {
        const decoder = decoderOf(500, 256);
        try {
          for (const block of blocks) {
            const headers = decoder.decode(Buffer.from(block));
            assert.equal(headers.length % 2, 0);
          }
        } catch (error) {
          assert.ok(error instanceof HpackError || error instanceof HeaderListTooLarge, String(error));
        }
      }),
      { numRuns: 5000 },
    );
  });
});
