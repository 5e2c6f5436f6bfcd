import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KeyLayout } from './key-layout.ts';
import { changeOf, concerns } from './watch-events.ts';

const layout = new KeyLayout('c');
const put = (key: Buffer) => ({ kv: { key, modRevision: 7 } });
const deleted = (key: Buffer, before?: string) => ({
  type: 1,
  kv: { key, modRevision: 7 },
  ...(before !== undefined && { previous: { key, value: Buffer.from(before) } }),
});

describe('events of etcd', () => {
  test('of files are changes and deletions, whatever they were before', () => {
    assert.deepEqual(changeOf(layout, put(layout.file('a/b'))), { kind: 'changed', path: 'a/b', version: 7 });
    assert.deepEqual(changeOf(layout, deleted(layout.file('a/b'))), { kind: 'deleted', path: 'a/b' });
    assert.deepEqual(changeOf(layout, deleted(layout.file('a/b'), 'x')), { kind: 'deleted', path: 'a/b' });
  });

  test('of locks are losses of the session that had them', () => {
    assert.equal(changeOf(layout, put(layout.lock('l'))), undefined);
    assert.deepEqual(changeOf(layout, deleted(layout.lock('l'), 's')), {
      kind: 'lock-lost',
      path: 'l',
      sessionId: 's',
    });
    assert.equal(changeOf(layout, deleted(layout.lock('l'))), 'unclear');
  });

  test('of sessions are expiries, unless their owner has closed them', () => {
    assert.equal(changeOf(layout, put(layout.session('s'))), undefined);
    assert.deepEqual(changeOf(layout, deleted(layout.session('s'), 'open')), {
      kind: 'session-expired',
      sessionId: 's',
    });
    assert.equal(changeOf(layout, deleted(layout.session('s'), 'closed')), undefined);
    assert.equal(changeOf(layout, deleted(layout.session('s'))), 'unclear');
  });

  test('of other keys are none', () => {
    for (const event of [{}, put(layout.format), deleted(Buffer.from('c/later/x'), 'y'), put(Buffer.from('d/files/a'))])
      assert.equal(changeOf(layout, event), undefined);
  });

  test('concern those who watch the path; the end of a session concerns all', () => {
    assert.equal(concerns({ kind: 'deleted', path: 'servers/a' }, 'servers/'), true);
    assert.equal(concerns({ kind: 'deleted', path: 'servers/a' }, 'schemas/'), false);
    assert.equal(concerns({ kind: 'session-expired', sessionId: 's' }, 'schemas/'), true);
  });
});
