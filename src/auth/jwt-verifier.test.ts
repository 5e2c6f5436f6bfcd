import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { before, describe, test } from 'node:test';
import { base64url, exportJWK, SignJWT } from 'jose';
import { Code } from '../base/index.ts';
import { AUDIENCE, clockOfToday, Issuer, ISSUER } from './fixtures.ts';
import { type JwtSettings, JwtVerifier } from './jwt-verifier.ts';

let issuer: Issuer;
let stranger: Issuer;
before(async () => {
  [issuer, stranger] = await Promise.all([Issuer.make('first'), Issuer.make('first')]);
});

const inFile = (text: string): JwtSettings['keys'] => ({ text, file: 'keys.json' });
const verifier = (keys: JwtSettings['keys'] = inFile(issuer.keys), clock = clockOfToday()) =>
  new JwtVerifier({ issuer: ISSUER, audience: AUDIENCE, keys }, clock);
/** The value as a promise. */
const ask = async (jwt: JwtVerifier, token: string): Promise<string> => jwt.principalOf(token);

describe('tokens of an issuer', () => {
  test('name the principal by their subject; the second time without a promise', async () => {
    const jwt = verifier();
    const token = await issuer.sign({ sub: 'alice@example.org' });
    assert.equal(await ask(jwt, token), 'jwt:alice@example.org');
    assert.equal(jwt.principalOf(token), 'jwt:alice@example.org');
    assert.equal(await ask(jwt, await issuer.sign({ sub: 'bob', aud: ['another', AUDIENCE] })), 'jwt:bob');
  });

  for (const [what, claims, seconds, message] of [
    ['another issuer', { iss: 'https://issuer.example.org' }, 600, /claim "iss" is not/],
    ['another audience', { aud: 'another' }, 600, /claim "aud" is not/],
    ['no audience', { aud: undefined }, 600, /claim "aud" is missing/],
    ['no subject', { sub: undefined }, 600, /claim "sub" is missing/],
    ['an empty subject', { sub: '' }, 600, /"sub" is not/],
    ['no end', { exp: undefined }, 600, /claim "exp" is missing/],
    ['an end that is over', {}, -120, /has expired/],
    ['a beginning that is to come', { nbf: Math.floor(Date.now() / 1000) + 120 }, 600, /claim "nbf" is not/],
  ] as const) {
    test(`${what}: refused`, async () => {
      await assert.rejects(ask(verifier(), await issuer.sign(claims, seconds)), {
        code: Code.UNAUTHENTICATED,
        message,
      });
    });
  }

  for (const subject of [
    7,
    0,
    true,
    {},
    { name: 'alice' },
    ['alice'],
    null,
    'a\nb',
    'a\r',
    'a\u0000b',
    '\u001b[31mred',
    'a\tb',
    ' alice',
    'alice ',
    'a  b',
    'a\u202eb',
    'al\u00efce',
    'x'.repeat(256),
    'x'.repeat(8192),
  ]) {
    test(`the subject ${JSON.stringify(subject).slice(0, 30)} is invalid: refused, also the second time`, async () => {
      const jwt = verifier();
      const token = await issuer.sign({ sub: subject });
      for (let i = 0; i < 2; i++)
        await assert.rejects(ask(jwt, token), { code: Code.UNAUTHENTICATED, message: /"sub" is (not|missing)/ });
    });
  }

  test('subjects as issuers write them are accepted', async () => {
    for (const sub of [
      '110169484474386276334',
      'auth0|5f7c8ec7c33c6c004bbafe82',
      'system:serviceaccount:prod:crawler',
      'https://issuer.example/users/7',
      'CN=Alice Liddell,O=x',
      'x'.repeat(255),
    ]) {
      assert.equal(await ask(verifier(), await issuer.sign({ sub })), `jwt:${sub}`);
    }
  });

  test('clocks may differ a little', async () => {
    assert.equal(await ask(verifier(), await issuer.sign({}, -5)), 'jwt:alice');
    assert.equal(await ask(verifier(), await issuer.sign({ nbf: Math.floor(Date.now() / 1000) + 5 })), 'jwt:alice');
  });

  test('another key with the same name, a changed byte, no token at all: refused', async () => {
    const token = await issuer.sign();
    const [head, , signature] = token.split('.');
    const forged = `${head}.${base64url.encode(JSON.stringify({ iss: ISSUER, aud: AUDIENCE, sub: 'root', exp: 4e9 }))}.${signature}`;
    for (const bad of [await stranger.sign(), forged, 'a', 'a.b', 'a.b.c', '..', `${token}.`, token.slice(0, -3)]) {
      await assert.rejects(ask(verifier(), bad), { code: Code.UNAUTHENTICATED }, bad);
    }
    await assert.rejects(ask(verifier(inFile((await Issuer.make('second')).keys)), token), {
      code: Code.UNAUTHENTICATED,
      message: /no such key/,
    });
  });

  test('a signature that needs no private key is refused', async () => {
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'root', exp: 4e9 };
    const unsigned = `${base64url.encode(JSON.stringify({ alg: 'none' }))}.${base64url.encode(JSON.stringify(claims))}.`;
    await assert.rejects(ask(verifier(), unsigned), { code: Code.UNAUTHENTICATED });
    // the public key as the secret of a symmetric signature
    const secret = Buffer.from(JSON.stringify(issuer.publicKey));
    const symmetric = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'first' }).sign(secret);
    await assert.rejects(ask(verifier(), symmetric), { code: Code.UNAUTHENTICATED });
    const keys = JSON.stringify({ keys: [{ ...(await exportJWK(secret)), kid: 'first', alg: 'HS256' }] });
    await assert.rejects(ask(verifier(inFile(keys)), symmetric), { code: Code.UNAUTHENTICATED });
  });

  test('a verified token is verified again after CACHE_MS, after its end, and with other keys', async () => {
    const clock = clockOfToday();
    const jwt = verifier(undefined, clock);
    const [short, long] = [await issuer.sign({}, 60), await issuer.sign({}, 3600)];
    for (const token of [short, long]) await ask(jwt, token);
    clock.advance(59_000);
    for (const token of [short, long]) assert.equal(typeof jwt.principalOf(token), 'string');
    clock.advance(2000);
    const again = jwt.principalOf(short);
    assert.ok(again instanceof Promise);
    assert.equal(typeof jwt.principalOf(long), 'string');
    clock.advance(240_000);
    assert.ok(jwt.principalOf(long) instanceof Promise);
    await Promise.all([again, ask(jwt, long)]);
    assert.equal(typeof jwt.principalOf(long), 'string');
    jwt.replaceKeys(inFile(stranger.keys));
    await assert.rejects(ask(jwt, long), { code: Code.UNAUTHENTICATED, message: /signature is wrong/ });
  });

  test('a wall clock that is set back does not lengthen that time', async () => {
    const clock = clockOfToday();
    const jwt = verifier(undefined, clock);
    const token = await issuer.sign({}, 3600);
    await ask(jwt, token);
    clock.setRealTime(clock.nowMicros() - 1800 * 1e6);
    assert.equal(typeof jwt.principalOf(token), 'string');
    clock.advance(301_000);
    const again = jwt.principalOf(token);
    assert.ok(again instanceof Promise);
    assert.equal(await again, 'jwt:alice');
  });

  test('a verification that was in progress when the keys changed is not cached', async () => {
    const jwt = verifier();
    const token = await issuer.sign();
    const first = jwt.principalOf(token);
    jwt.replaceKeys(inFile(stranger.keys));
    await first;
    await assert.rejects(ask(jwt, token), { code: Code.UNAUTHENTICATED });
  });

  for (const [what, text] of [
    ['no JSON', 'keys'],
    ['no key set', '{}'],
    ['a list', '[]'],
  ] as const) {
    test(`${what} as keys is refused, and changes nothing`, async () => {
      assert.throws(() => verifier(inFile(text)), {
        code: Code.INVALID_ARGUMENT,
        message: /keys\.json is not a JSON web key set/,
      });
      const jwt = verifier();
      assert.throws(() => jwt.replaceKeys(inFile(text)));
      assert.equal(await ask(jwt, await issuer.sign()), 'jwt:alice');
    });
  }
});

describe('keys at a URL', () => {
  test('are fetched when they are needed, and kept', async () => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked++;
      response.setHeader('content-type', 'application/json').end(issuer.keys);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const jwt = verifier({ url });
    assert.equal(asked, 0);
    assert.equal(await ask(jwt, await issuer.sign({ sub: 'a' })), 'jwt:a');
    assert.equal(await ask(jwt, await issuer.sign({ sub: 'b' })), 'jwt:b');
    await assert.rejects(ask(jwt, await stranger.sign()), { code: Code.UNAUTHENTICATED });
    // an unknown key does not make us fetch again and again
    const unknown = await Issuer.make('unknown');
    for (let i = 0; i < 5; i++)
      await assert.rejects(ask(jwt, await unknown.sign({ jti: String(i) })), {
        code: Code.UNAUTHENTICATED,
        message: /no such key/,
      });
    assert.ok(asked <= 2, `asked ${asked} times`);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test('that cannot be read are UNAVAILABLE, which clients retry', async () => {
    const server = createServer((_request, response) => response.writeHead(500).end()).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const jwt = verifier({ url });
    const token = await issuer.sign();
    await assert.rejects(ask(jwt, token), {
      code: Code.UNAVAILABLE,
      retry: true,
      message: /keys of the tokens' issuer cannot be read/,
    });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(ask(jwt, token), { code: Code.UNAVAILABLE });
  });

  for (const url of ['http://issuer.example/keys', 'ftp://127.0.0.1/keys', '://']) {
    test(`${url} is refused`, () => {
      assert.throws(() => verifier({ url }), { code: Code.INVALID_ARGUMENT });
    });
  }
});
