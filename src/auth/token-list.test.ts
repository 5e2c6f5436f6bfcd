import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { goldenFile } from '../../test/golden/golden-file.ts';
import { Code } from '../base/index.ts';
import { isOwnToken, makeToken, TokenList } from './token-list.ts';

const ADDED = '2026-11-21T12:00:00Z';
const HASH = 'ab'.repeat(32);
const make = (name: string) => makeToken(name, ADDED, randomBytes(40));

describe('the golden file of tokens', () => {
  const tokens = [1, 2].map((seed) => makeToken(`crawler-${seed}@example.com`, ADDED, Buffer.alloc(40, seed)));

  test('is the same, byte for byte, and its tokens are still valid', () => {
    const written = new TokenList(tokens.map(({ entry }) => entry)).toString();
    const golden = goldenFile('tokens-v1.txt', Buffer.from(written)).toString();
    assert.equal(written, golden);
    const list = TokenList.parse(golden, 'tokens');
    for (const { token, entry } of tokens) assert.equal(list.principalOf(token), entry.principal);
    assert.equal(
      list.principalOf('edubba_wh8nr6rm_AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI'),
      'crawler-2@example.com',
    );
  });
});

describe('tokens', () => {
  test('a token is found in its list, and names the principal', () => {
    const [alice, bob, again] = [make('alice'), make('bob'), make('alice')];
    const list = new TokenList([alice.entry, bob.entry, again.entry]);
    assert.equal(list.principalOf(alice.token), 'alice');
    assert.equal(list.principalOf(bob.token), 'bob');
    assert.equal(list.principalOf(again.token), 'alice');
    assert.equal(list.principalOf(make('alice').token), undefined);
    assert.ok(isOwnToken(alice.token));
  });

  test('only the whole token is accepted', () => {
    const { token, entry } = make('alice');
    const list = new TokenList([entry]);
    const [, id, secret] = /^edubba_(.{8})_(.*)$/.exec(token) as unknown as [string, string, string];
    const others = [
      '',
      'edubba_',
      id,
      secret,
      `edubba_${id}_`,
      `edubba_${id}_${secret.slice(0, -1)}`,
      `${token}x`,
      ` ${token}`,
      `edubba_aaaaaaaa_${secret}`,
      `edubba_${id}_${'A'.repeat(43)}`,
      `edubba_${id}_${entry.hash.toString('base64url')}`,
    ];
    for (const other of others) assert.equal(list.principalOf(other), undefined, other);
  });

  test('the list holds the hash of the secret, and the text of the list nothing else of it', () => {
    const { token, entry } = make('alice');
    const secret = token.slice(-43);
    assert.deepEqual(entry.hash, createHash('sha256').update(secret).digest());
    assert.ok(!new TokenList([entry]).toString().includes(secret));
  });

  test('tokens differ, and use all of their randomness', () => {
    assert.equal(new Set(Array.from({ length: 100 }, () => make('a').token)).size, 100);
    const bytes = randomBytes(40);
    const { token } = makeToken('a', ADDED, bytes);
    assert.deepEqual(Buffer.from(token.slice(-43), 'base64url'), bytes.subarray(8));
    for (const all of [Buffer.alloc(40), Buffer.alloc(40, 0xff)])
      assert.match(makeToken('a', ADDED, all).token, /^edubba_[a-z0-9]{8}_[A-Za-z0-9_-]{43}$/);
  });

  test('what is written is read again', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          fc.tuple(
            fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._@+-]{0,20}$/),
            fc.uint8Array({ minLength: 40, maxLength: 40 }),
          ),
          { selector: ([, bytes]) => Buffer.from(bytes.subarray(0, 8)).toString('hex') },
        ),
        (pairs) => {
          const made = pairs.map(([name, bytes]) => makeToken(name, ADDED, Buffer.from(bytes)));
          fc.pre(new Set(made.map(({ entry }) => entry.id)).size === made.length);
          const list = TokenList.parse(new TokenList(made.map(({ entry }) => entry)).toString(), 'file');
          assert.deepEqual(
            list.entries,
            made.map(({ entry }) => entry),
          );
          for (const [i, { token }] of made.entries()) assert.equal(list.principalOf(token), pairs[i]?.[0]);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('empty lines, comments and other line ends are skipped', () => {
    const { entries } = TokenList.parse(
      `edubba-tokens 1\r\n# ours\r\n\r\nabcdefgh alice sha256:${HASH} ${ADDED}\r\n`,
      'file',
    );
    assert.deepEqual(entries, [{ id: 'abcdefgh', principal: 'alice', hash: Buffer.from(HASH, 'hex'), added: ADDED }]);
  });

  for (const [what, text, message] of [
    ['nothing', '', /not a list of tokens.*edubba token add/],
    ['another file', '-----BEGIN CERTIFICATE-----\n', /not a list of tokens/],
    ['a later version', 'edubba-tokens 2\n', /first line is not "edubba-tokens 1"/],
    ['a short hash', 'edubba-tokens 1\nabcdefgh a sha256:ab t\n', /file, line 2/],
    ['an invalid name', `edubba-tokens 1\n\nabcdefgh -a sha256:${HASH} t\n`, /file, line 3/],
    ['an id twice', `edubba-tokens 1\n${`abcdefgh a sha256:${HASH} t\n`.repeat(2)}`, /line 3: the id abcdefgh/],
  ] as const) {
    test(`${what} is refused with a message`, () => {
      assert.throws(() => TokenList.parse(text, 'file'), { code: Code.INVALID_ARGUMENT, message });
    });
  }

  test('a token that is in the file by mistake is not quoted', () => {
    const { token } = make('alice');
    assert.throws(
      () => TokenList.parse(`edubba-tokens 1\n${token}\n`, 'file'),
      (error: Error) => !error.message.includes(token),
    );
  });

  for (const name of ['', ' ', 'a b', 'a\n', '#a', 'ä', 'a'.repeat(129)]) {
    test(`${JSON.stringify(name).slice(0, 20)} is an invalid name`, () => {
      assert.throws(() => make(name), { code: Code.INVALID_ARGUMENT, message: /invalid name for a token/ });
    });
  }
});
