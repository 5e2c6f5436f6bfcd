import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TimeAccount } from './posix-time-account.ts';

describe('an account of time', () => {
  test('has a burst of 20 ms at first', () => {
    const account = new TimeAccount(1 / 10, 100);
    account.spend(19);
    assert.equal(account.isSpent, false);
    account.spend(1);
    assert.equal(account.isSpent, true);
  });

  test('earns its share of the time, after what is missing', () => {
    const account = new TimeAccount(1 / 10, 100);
    account.spend(50);
    account.earn(100 + 300);
    assert.equal(account.isSpent, true, '30 ms were missing');
    account.earn(100 + 301);
    assert.equal(account.isSpent, false);
  });

  test('saves no more than a burst', () => {
    const account = new TimeAccount(1 / 2, 0);
    account.earn(1_000_000);
    account.spend(20);
    assert.equal(account.isSpent, true);
  });

  test('refuses a time before its last one', () => {
    const account = new TimeAccount(1 / 2, 100);
    assert.throws(() => account.earn(99), /the time of an account ascends/);
  });
});
