import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LiveServer } from './live-server.ts';

const server = (): LiveServer => new LiveServer({ name: 's', address: 'here' });
const tabletsOf = ({ tablets }: LiveServer): [string, number][] => [...tablets].sort();

describe('the tablets of a server', () => {
  test('are those of its last answer', () => {
    const one = server();
    one.requested();
    one.answered([
      { key: 'a', epoch: 1 },
      { key: 'b', epoch: 2 },
    ]);
    one.requested();
    one.answered([{ key: 'b', epoch: 3 }]);
    assert.deepEqual(tabletsOf(one), [['b', 3]]);
  });

  test('an answer that was on its way undoes nothing that was learnt since it was requested', () => {
    const one = server();
    one.serves({ key: 'released', epoch: 1 });
    one.requested();
    one.drop('released');
    one.serves({ key: 'loaded', epoch: 5 });
    one.answered([
      { key: 'released', epoch: 1 },
      { key: 'other', epoch: 2 },
    ]);
    assert.deepEqual(tabletsOf(one), [
      ['loaded', 5],
      ['other', 2],
    ]);
    one.requested();
    one.notAnswered();
    one.requested();
    one.answered([]);
    assert.deepEqual(tabletsOf(one), []);
  });

  test('one that is being given is its own until the outcome is known, whatever it answers', () => {
    const one = server();
    one.give('a');
    one.give('a');
    one.give('b');
    one.requested();
    one.answered([]);
    assert.deepEqual(tabletsOf(one), [
      ['a', 0],
      ['b', 0],
    ]);
    assert.equal(one.given, 2);
    one.serves({ key: 'a', epoch: 4 });
    one.drop('b');
    assert.deepEqual([tabletsOf(one), one.given], [[['a', 4]], 0]);
  });

  test('are requested once at a time', () => {
    const one = server();
    assert.throws(() => one.answered([]), /an answer was requested/);
    one.requested();
    assert.throws(() => one.requested(), /once at a time/);
  });
});
