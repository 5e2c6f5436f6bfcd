import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { pageOfRow, parsePageUrl, resolveLink, reversedHost, rowOf, urlOf } from './page-url.ts';

describe('page names', () => {
  test('a row is the host in reverse, then the path', () => {
    assert.equal(rowOf({ host: 'maps.google.com', path: 'index.html' }), 'com.google.maps/index.html');
    assert.equal(reversedHost('WWW.CNN.com'), 'com.cnn.www');
    assert.equal(rowOf({ host: 'localhost', path: '' }), 'localhost/');
  });

  test('a URL, with its scheme or without', () => {
    assert.deepEqual(parsePageUrl('https://www.example.com/a/b.html?q=1#part'), {
      host: 'www.example.com',
      path: 'a/b.html',
    });
    assert.deepEqual(parsePageUrl('WWW.Example.com/A%20b.html'), { host: 'www.example.com', path: 'A b.html' });
    assert.deepEqual(parsePageUrl('example.com:8080/x'), { host: 'example.com', path: 'x' });
    for (const bad of ['', 'ftp://example.com/x', 'http://', 'example.com/%zz'])
      assert.equal(parsePageUrl(bad), undefined, bad);
  });

  test('links are resolved as a browser does', () => {
    const base = 'http://www.example.com/docs/api/a.html';
    const to = (href: string) => resolveLink(href, base);
    assert.deepEqual(to('b.html#x'), { host: 'www.example.com', path: 'docs/api/b.html' });
    assert.deepEqual(to('../index.html?old'), { host: 'www.example.com', path: 'docs/index.html' });
    assert.deepEqual(to('../../../../up.html'), { host: 'www.example.com', path: 'up.html' });
    assert.deepEqual(to('/root.html'), { host: 'www.example.com', path: 'root.html' });
    assert.deepEqual(to('//other.org/x'), { host: 'other.org', path: 'x' });
    assert.deepEqual(to('#here'), { host: 'www.example.com', path: 'docs/api/a.html' });
    assert.deepEqual(to(''), { host: 'www.example.com', path: 'docs/api/a.html' });
    for (const none of ['mailto:a@b.c', 'javascript:void(0)', 'http://[', 'data:text/html,x'])
      assert.equal(to(none), undefined, none);
  });

  test('whatever the path, its URL and its row lead back to it', () => {
    const part = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
      .filter((text) => !/[/\\\0\t\r\n]/.test(text) && !/^(\.|%2e){1,2}$/i.test(text));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
        const name = { host: 'www.example.com', path: parts.join('/') };
        assert.deepEqual(parsePageUrl(urlOf(name)), name);
        assert.deepEqual(pageOfRow(rowOf(name)), name);
      }),
    );
  });

  test('what is no row of a page', () => {
    assert.equal(pageOfRow('no slash'), undefined);
    assert.equal(pageOfRow('/path alone'), undefined);
  });
});
