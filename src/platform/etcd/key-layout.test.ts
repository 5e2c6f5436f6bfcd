import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { toBytes } from '../../base/index.ts';
import { KeyLayout } from './key-layout.ts';

const layout = new KeyLayout('c');
const anyText = fc.string({ unit: 'binary' });
/** True when the range holds the key. */
const holds = (range: { from: string; to: string } | undefined, key: Buffer): boolean =>
  range !== undefined && Buffer.compare(toBytes(range.from), key) <= 0 && Buffer.compare(key, toBytes(range.to)) < 0;

describe('keys of the lock service in etcd', () => {
  test('are UTF-8 under the prefix', () => {
    assert.equal(layout.file('servers/ä').toString('utf8'), 'c/files/servers/ä');
    assert.equal(layout.lock('master').toString('utf8'), 'c/locks/master');
    assert.equal(layout.session('abc').toString('utf8'), 'c/sessions/abc');
    assert.equal(layout.format.toString('utf8'), 'c/format');
  });

  test('tell what they stand for', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        assert.deepEqual(layout.meaningOf(layout.file(text)), { kind: 'file', path: text });
        assert.deepEqual(layout.meaningOf(layout.lock(text)), { kind: 'lock', path: text });
        assert.deepEqual(layout.meaningOf(layout.session(text)), { kind: 'session', sessionId: text });
      }),
    );
    for (const key of [layout.format, Buffer.from('c/other/x'), Buffer.from('d/files/x')])
      assert.equal(layout.meaningOf(key), undefined);
  });

  test('of files are in the order of their paths', () => {
    const unit = fc.constantFrom(
      'a',
      '/',
      '\0',
      '\x7f',
      'é',
      '\u07ff',
      '\u0800',
      '\ue000',
      '\uffff',
      '😀',
      '\u{10ffff}',
    );
    const path = fc.string({ unit, maxLength: 5 });
    fc.assert(
      fc.property(path, path, (a, b) => {
        const order = Buffer.compare(layout.file(a), layout.file(b));
        assert.equal(order, a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });

  test('a range holds the files that start with a prefix and are above another one', () => {
    const path = fc.string({ unit: fc.constantFrom('a', 'b', '/', '😀'), maxLength: 4 });
    fc.assert(
      fc.property(path, path, path, (prefix, after, file) => {
        assert.equal(holds(layout.files(prefix, after), layout.file(file)), file.startsWith(prefix) && file > after);
      }),
    );
  });

  test('the range of all holds each of them, and none of another cluster', () => {
    for (const key of [layout.file('\uffff'), layout.lock('a'), layout.session('s'), layout.format])
      assert.ok(holds(layout.all, key));
    for (const other of ['b', 'c0', 'cc', 'd']) assert.ok(!holds(layout.all, new KeyLayout(other).file('a')));
  });
});
