import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { parseEtcdAddress } from './address.ts';

describe('addresses of etcd', () => {
  test('name members and a prefix; port and prefix have defaults', () => {
    for (const [text, endpoints, prefix] of [
      ['etcd://a:1', ['a:1'], 'edubba'],
      ['etcd://a', ['a:2379'], 'edubba'],
      ['etcd://a/', ['a:2379'], 'edubba'],
      ['etcd://a:1,b,[::1]:3,[::1]/west-1', ['a:1', 'b:2379', '[::1]:3', '[::1]:2379'], 'west-1'],
    ] as const)
      assert.deepEqual(parseEtcdAddress(text), { endpoints, prefix }, text);
  });

  test('of another form are refused, and the message says why', () => {
    for (const [text, why] of [
      ['a:2379', /does not begin with etcd:\/\//],
      ['http://a:2379', /does not begin with/],
      ['etcd://', /"" is not HOST:PORT/],
      ['etcd://a:x', /"a:x" is not HOST:PORT/],
      ['etcd://a,,b', /"" is not HOST:PORT/],
      ['etcd://a:2379,a', /named twice/],
      ['etcd://user:secret@a', /user and password/],
      ['etcd://a/b/c', /the prefix "b\/c"/],
      ['etcd://a/b c', /the prefix "b c"/],
    ] as const)
      assert.throws(
        () => parseEtcdAddress(text),
        (error: Error & { code?: unknown }) => error.code === Code.INVALID_ARGUMENT && why.test(error.message),
        text,
      );
  });
});
