import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseHead } from './request-head.ts';

const GET = { method: 'GET', target: '/healthz', hasBody: false, isLast: false };

test('method, target, body and keep-alive are read', () => {
  const cases: readonly [string, Partial<typeof GET>][] = [
    ['GET /healthz HTTP/1.1\r\nHost: a', {}],
    ['HEAD /healthz?x=1 HTTP/1.1\r\nhost:', { method: 'HEAD', target: '/healthz?x=1' }],
    ['GET http://a:1/healthz HTTP/1.1\r\nHost: a:1', {}],
    ['GET http://a:1 HTTP/1.1\r\nHost: a:1', { target: '/' }],
    ['GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, Close', { isLast: true }],
    ['GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nconnection: close', { isLast: true }],
    ['GET /healthz HTTP/1.0', { isLast: true }],
    ['GET /healthz HTTP/1.0\r\nConnection: Keep-Alive', {}],
    ['GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 0 ', {}],
    ['GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0', { hasBody: true }],
    ['GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: x', { hasBody: true }],
    ['GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity', { hasBody: true }],
  ];
  for (const [text, differs] of cases) assert.deepEqual(parseHead(text), { ...GET, ...differs }, text);
});

test('an invalid request is refused', () => {
  const texts = [
    '',
    'GET',
    'GET /',
    'GET / HTTP/1.1',
    'GET / HTTP/2.0',
    'GET /  HTTP/1.1\r\nHost: a',
    'GET /\tHTTP/1.1\r\nHost: a',
    'PRI * HTTP/2.0',
    ' GET / HTTP/1.1\r\nHost: a',
    'GET / HTTP/1.1\nHost: a',
    'GET / HTTP/1.1\r\nHost: a\nx: y',
    'GET / HTTP/1.1\r\nHost: a\r\n folded',
    'GET / HTTP/1.1\r\nHost: a\r\nno colon',
    'GET / HTTP/1.1\r\nHost : a',
    'GET / HTTP/1.1\r\nHost: a\r\nHost: a',
    'GET / HTTP/1.1\r\nHost: a\0',
    'GET /\u00ff HTTP/1.1\r\nHost: a',
    'G(T / HTTP/1.1\r\nHost: a',
  ];
  for (const text of texts) assert.equal(parseHead(text), undefined, text);
});

test('any text is read or refused', () => {
  const word = fc.constantFrom(
    'GET',
    ' ',
    '/',
    'HTTP/1.1',
    '\r\n',
    '\n',
    'Host',
    ':',
    'a',
    '\0',
    'Connection: close',
    'Content-Length: 5',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(word).map((words) => words.join('')),
      ),
      (text) => {
        const head = parseHead(text);
        assert.ok(head === undefined || /^\S+$/.test(head.target));
      },
    ),
  );
});
