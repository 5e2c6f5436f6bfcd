import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { notReached } from '../../env/index.ts';
import { consequenceOf, errorOfBreach, errorOfStatus } from './etcd-errors.ts';

const status = (code: Code, message: string) => errorOfStatus('a:1', { code, message, details: undefined });

describe('errors of etcd', () => {
  test('name the member, and the way out where it is known', () => {
    for (const [code, message, wanted, form] of [
      [Code.INVALID_ARGUMENT, 'etcdserver: user name is empty', Code.UNAUTHENTICATED, /it needs a user/],
      [
        Code.INVALID_ARGUMENT,
        'etcdserver: authentication failed, invalid user ID or password',
        Code.UNAUTHENTICATED,
        /check user and password/,
      ],
      [Code.PERMISSION_DENIED, 'etcdserver: permission denied', Code.PERMISSION_DENIED, /keys of the prefix/],
      [Code.INVALID_ARGUMENT, 'etcdserver: request is too large', Code.INVALID_ARGUMENT, /--max-request-bytes/],
      [Code.FAILED_PRECONDITION, 'etcdserver: lease already exists', Code.ALREADY_EXISTS, /exists/],
      [Code.NOT_FOUND, 'etcdserver: requested lease not found', Code.NOT_FOUND, /not found$/],
    ] as const) {
      const error = status(code, message);
      assert.equal(error.code, wanted, message);
      assert.match(error.message, new RegExp(`^etcd at a:1: ${message}`));
      assert.match(error.message, form);
    }
  });

  test('tell if the call may have happened', () => {
    for (const [code, message, consequence] of [
      [Code.UNAVAILABLE, 'etcdserver: leader changed', 'unknown'],
      [Code.UNAVAILABLE, 'etcdserver: request timed out', 'unknown'],
      [Code.DEADLINE_EXCEEDED, 'context deadline exceeded', 'unknown'],
      [Code.UNKNOWN, 'a proxy does not know', 'unknown'],
      [Code.INTERNAL, 'a member panics', 'unknown'],
      [Code.RESOURCE_EXHAUSTED, 'etcdserver: too many requests', 'not done'],
      [Code.RESOURCE_EXHAUSTED, 'etcdserver: mvcc: database space exceeded', 'refused'],
      [Code.UNAUTHENTICATED, 'etcdserver: invalid auth token', 'signed out'],
      [Code.INVALID_ARGUMENT, 'etcdserver: auth: revision in header is old', 'signed out'],
      [Code.INVALID_ARGUMENT, 'etcdserver: user name is empty', 'refused'],
      [Code.OUT_OF_RANGE, 'etcdserver: mvcc: required revision has been compacted', 'refused'],
    ] as const)
      assert.equal(consequenceOf(status(code, message)), consequence, message);
  });

  test('of calls without a status leave the outcome open, unless they were not reached', () => {
    for (const [error, code, consequence] of [
      [new BigtableError(Code.INTERNAL, 'the server reset the call'), Code.UNAVAILABLE, 'unknown'],
      [new BigtableError(Code.CANCELLED, 'the server reset the call'), Code.UNAVAILABLE, 'unknown'],
      [new BigtableError(Code.RESOURCE_EXHAUSTED, 'a message of 1 GB'), Code.RESOURCE_EXHAUSTED, 'refused'],
      [notReached('GOAWAY'), Code.UNAVAILABLE, 'not done'],
    ] as const) {
      const known = errorOfBreach('a:1', error);
      assert.deepEqual([known.code, consequenceOf(known)], [code, consequence]);
    }
  });
});
