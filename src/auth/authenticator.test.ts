import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { type CallCredentials, Authenticator } from './authenticator.ts';
import { AUDIENCE, clockOfToday, Issuer, ISSUER } from './fixtures.ts';
import { JwtVerifier } from './jwt-verifier.ts';
import { makeToken, TokenList } from './token-list.ts';

const { token, entry } = makeToken('alice', '2026-11-21T12:00:00Z', randomBytes(40));
const tokens = new TokenList([entry]);
const SUBJECT = 'O=Tablet House,CN=bob';

function credentials(authorization?: string, certificate?: string): CallCredentials {
  return { header: (name) => (name === 'authorization' ? authorization : undefined), certificate };
}

describe('the principal of a call', () => {
  test('is anonymous where no credentials are configured', () => {
    const authenticator = new Authenticator({ certificates: false });
    assert.equal(authenticator.principalOf(credentials(`Bearer ${token}`, SUBJECT)), 'anonymous');
  });

  test('is that of the certificate where clients show one and no tokens are configured', () => {
    const authenticator = new Authenticator({ certificates: true });
    assert.equal(authenticator.principalOf(credentials(undefined, SUBJECT)), `cert:${SUBJECT}`);
    assert.throws(() => authenticator.principalOf(credentials(`Bearer ${token}`)), { code: Code.UNAUTHENTICATED });
  });

  test('is never that of a certificate whose subject a log cannot distinguish from another', () => {
    const authenticator = new Authenticator({ certificates: true });
    assert.equal(
      authenticator.principalOf(credentials(undefined, 'CN=J\u00fcrgen,O=\u65e5\u672c')),
      'cert:CN=J\u00fcrgen,O=\u65e5\u672c',
    );
    for (const subject of [
      '',
      'CN=a\nb',
      'CN=a\u0000',
      'CN=\u202etxt',
      'CN=a\u200bb',
      'CN=a\u2028b',
      'x'.repeat(1025),
    ]) {
      assert.throws(
        () => authenticator.principalOf(credentials(undefined, subject)),
        { code: Code.UNAUTHENTICATED, message: /subject/ },
        JSON.stringify(subject),
      );
    }
  });

  test('is that of the token, and a certificate does not replace it', () => {
    const authenticator = new Authenticator({ tokens, certificates: true });
    assert.equal(authenticator.principalOf(credentials(`Bearer ${token}`, SUBJECT)), 'token:alice');
    assert.throws(() => authenticator.principalOf(credentials(undefined, SUBJECT)), {
      code: Code.UNAUTHENTICATED,
      message: /authorization: Bearer TOKEN/,
    });
  });

  test('the word Bearer may have any case; no other scheme is accepted', () => {
    const authenticator = new Authenticator({ tokens, certificates: false });
    for (const good of [`Bearer ${token}`, `bearer ${token}`, `BEARER  ${token}`])
      assert.equal(authenticator.principalOf(credentials(good)), 'token:alice');
    for (const bad of [
      '',
      token,
      `Basic ${token}`,
      `Bearer${token}`,
      `Bearer ${token} x`,
      'Bearer ',
      `Bearer ${'a'.repeat(20_000)}`,
    ]) {
      assert.throws(
        () => authenticator.principalOf(credentials(bad)),
        { code: Code.UNAUTHENTICATED },
        bad.slice(0, 40),
      );
    }
  });

  test('a list that was emptied admits no caller', () => {
    const authenticator = new Authenticator({ tokens, certificates: false });
    authenticator.tokens = new TokenList([]);
    assert.throws(() => authenticator.principalOf(credentials(`Bearer ${token}`)), {
      code: Code.UNAUTHENTICATED,
      message: /unknown bearer token/,
    });
  });

  test('both kinds of tokens are accepted together, and neither is taken for the other', async () => {
    const issuer = await Issuer.make('key');
    const jwt = new JwtVerifier(
      { issuer: ISSUER, audience: AUDIENCE, keys: { text: issuer.keys, file: 'keys' } },
      clockOfToday(),
    );
    const signed = await issuer.sign({ sub: 'alice' });
    const both = new Authenticator({ tokens, jwt, certificates: false });
    assert.equal(await both.principalOf(credentials(`Bearer ${token}`)), 'token:alice');
    assert.equal(await both.principalOf(credentials(`Bearer ${signed}`)), 'jwt:alice');
    const list = new Authenticator({ tokens, certificates: false });
    assert.throws(() => list.principalOf(credentials(`Bearer ${signed}`)), { code: Code.UNAUTHENTICATED });
    const issued = new Authenticator({ jwt, certificates: false });
    assert.throws(() => issued.principalOf(credentials(`Bearer ${token}`)), {
      code: Code.UNAUTHENTICATED,
      message: /unknown bearer token/,
    });
  });
});
