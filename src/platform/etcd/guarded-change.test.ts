import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { GuardedChange } from './guarded-change.ts';
import { KeyLayout } from './key-layout.ts';
import type { KeyValue, TxnAnswer } from './messages.ts';
import { deleteKey } from './transactions.ts';

const layout = new KeyLayout('c');
const lock = { path: 'l', sessionId: 's', epoch: 5 };
const value = (text: string): Buffer => Buffer.from(text);
/** A refusal that has found these. */
const found = (...keys: (KeyValue | undefined)[]): TxnAnswer => ({
  responses: keys.map((kv) => ({ range: { kvs: kv === undefined ? [] : [kv] } })),
});
const HELD = { createRevision: 5, value: value('s') };
const OPEN = { createRevision: 4, value: value('open') };

describe('a change of a file', () => {
  test('is conditional on its version and on its guards', () => {
    const change = new GuardedChange(layout, 'a', { version: 7, lock, sessionId: 's' });
    const { compare, success, failure } = change.request(7, deleteKey(layout.file('a')));
    assert.deepEqual(
      compare.map(({ key, modRevision, createRevision, value: wanted }) => [
        Buffer.from(key).toString(),
        modRevision ?? createRevision ?? Buffer.from(wanted ?? '').toString(),
      ]),
      [
        ['c/files/a', 7],
        ['c/locks/l', 5],
        ['c/locks/l', 's'],
        ['c/sessions/s', 'open'],
      ],
    );
    // a removal is counted in its directory
    assert.equal(success.length, 2);
    assert.equal(failure.length, 4);
    assert.equal(new GuardedChange(layout, 'a', {}).request(0, deleteKey(layout.file('a'))).compare.length, 1);
  });

  test('is refused by the first guard that does not hold', () => {
    const change = new GuardedChange(layout, 'a', { version: 7, lock, sessionId: 's' });
    for (const [answer, code, form] of [
      [found({ modRevision: 8 }, undefined, undefined), Code.ABORTED, /version 7 was expected, it is 8/],
      [found(undefined, HELD, OPEN), Code.ABORTED, /version 7 was expected, it is 0/],
      [found({ modRevision: 7 }, undefined, OPEN), Code.ABORTED, /"l" is no longer held in epoch 5/],
      [found({ modRevision: 7 }, { ...HELD, createRevision: 6 }, OPEN), Code.ABORTED, /no longer held/],
      [found({ modRevision: 7 }, { ...HELD, value: value('t') }, OPEN), Code.ABORTED, /no longer held/],
      [found({ modRevision: 7 }, HELD, undefined), Code.FAILED_PRECONDITION, /session "s" has ended/],
      [found({ modRevision: 7 }, HELD, { ...OPEN, value: value('closed') }), Code.FAILED_PRECONDITION, /has ended/],
    ] as const) {
      const refusal = change.refusalOf(answer);
      assert.equal(refusal?.code, code);
      assert.match(refusal?.message ?? '', form);
    }
    assert.equal(change.refusalOf(found({ modRevision: 7 }, HELD, OPEN)), undefined);
  });

  test('that creates a file is conditional on the removals in its directory', () => {
    const change = new GuardedChange(layout, 'd/a', { version: 0, noRemovalAfter: 6 });
    const { compare } = change.request(0, { put: { key: layout.file('d/a'), value: value('x') } });
    const { key, modRevision } = compare.at(-1)!;
    assert.deepEqual([Buffer.from(key).toString(), modRevision], ['c/removals/d', 7], 'less than');
    const none = [undefined, undefined, undefined] as const;
    assert.match(change.refusalOf(found(...none, { modRevision: 7 }))?.message ?? '', /"d\/a" was removed since/);
    for (const removals of [{ modRevision: 6 }, undefined])
      assert.equal(change.refusalOf(found(...none, removals)), undefined);
  });

  test('without guards is refused by a change meanwhile alone', () => {
    const change = new GuardedChange(layout, 'a', {});
    assert.equal(change.refusalOf(found({ modRevision: 9 })), undefined);
    assert.equal(change.fileOf(found({ modRevision: 9 }))?.modRevision, 9);
    assert.equal(change.fileOf(found(undefined)), undefined);
  });
});
