import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownOf } from './record.ts';

test('a record returns its own properties, whatever their names', () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];
  for (const name of names) {
    assert.equal(ownOf({ other: 1 }, name), undefined);
    assert.equal(ownOf(Object.create(null), name), undefined);
    assert.equal(ownOf(undefined, name), undefined);
    assert.equal(ownOf(Object.fromEntries(names.map((one, i) => [one, i])), name), names.indexOf(name));
  }
});
