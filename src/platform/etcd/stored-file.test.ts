import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code } from '../../base/index.ts';
import { SeededRandom } from '../../env/index.ts';
import { drawSessionId, leaseOfSession, sessionOfLease } from './session-id.ts';
import { decodeStoredFile, encodeStoredFile, isWrittenBy } from './stored-file.ts';

const CALL = '00112233445566778899aabbccddeeff';

describe('a file as a value of etcd', () => {
  test('has the bytes of docs/formats/etcd.md', () => {
    assert.equal(encodeStoredFile(CALL, Buffer.from('abc')).toString('hex'), `01${CALL}616263`);
  });

  test('is read back, with the session of its lease', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (contents) => {
        const value = encodeStoredFile(CALL, contents);
        assert.deepEqual(decodeStoredFile('a', { value, modRevision: 7 }), { path: 'a', contents, version: 7 });
        assert.equal(decodeStoredFile('a', { value, modRevision: 7, lease: 0xabc }).sessionId, '000000000000abc');
        assert.equal(isWrittenBy(CALL, { value }), true);
        assert.equal(isWrittenBy(CALL.replace('0', '1'), { value }), false);
      }),
    );
  });

  test('of another format is refused', () => {
    for (const value of [undefined, Buffer.alloc(0), Buffer.alloc(16, 1), Buffer.alloc(20, 2)])
      assert.throws(() => decodeStoredFile('a', { ...(value && { value }) }), { code: Code.DATA_LOSS });
  });
});

describe('an id of a session', () => {
  test('is that of its lease', () => {
    const random = new SeededRandom(1);
    for (let i = 0; i < 1000; i++) {
      const id = drawSessionId(random);
      const lease = leaseOfSession(id);
      assert.ok(lease !== undefined && lease > 0n && lease < 1n << 60n);
      assert.equal(sessionOfLease(lease), id);
    }
    for (const id of ['', 'no such session', '0'.repeat(15), 'A'.repeat(15), '1'.repeat(16)])
      assert.equal(leaseOfSession(id), undefined, id);
    assert.equal(sessionOfLease(0), undefined);
  });
});
