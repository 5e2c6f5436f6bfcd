import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, CorruptionError } from '../../base/index.ts';
import { fromPlainThrown, toPlainThrown } from './plain-error.ts';

/** Clones the value as between threads. */
function cross(thrown: unknown): BigtableError {
  return fromPlainThrown(structuredClone(toPlainThrown(thrown)));
}

describe('errors as plain data', () => {
  test('code, message, retry and details survive', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(Code)),
        fc.string(),
        fc.boolean(),
        fc.dictionary(fc.string(), fc.integer()),
        (code, message, retry, details) => {
          const error = cross(new BigtableError(code, message, { retry, details: { ...details } }));
          assert.ok(error instanceof BigtableError && !(error instanceof CorruptionError));
          assert.deepEqual(
            [error.code, error.message, error.retry, { ...error.details }],
            [code, message, retry, { ...details }],
          );
        },
      ),
    );
  });

  test('corruption stays corruption, also after several crossings', () => {
    const error = cross(cross(new CorruptionError('a/b', 12, 'checksum')));
    assert.ok(error instanceof CorruptionError);
    assert.deepEqual(
      [error.file, error.offset, error.message, error.code],
      ['a/b', 12, 'a/b: corrupt at byte 12: checksum', Code.DATA_LOSS],
    );
  });

  test('other errors become INTERNAL, and the other side’s stack is kept as cause', () => {
    const error = cross(new RangeError('too far'));
    assert.deepEqual([error.code, error.message], [Code.INTERNAL, 'too far']);
    assert.ok(error.cause instanceof Error && /plain-error\.test/.test(error.cause.stack ?? ''));
    assert.equal(cross('text').message, 'text');
  });

  test('details that cannot be cloned are omitted', () => {
    const error = cross(new BigtableError(Code.ABORTED, 'x', { details: { callback: () => 1 } }));
    assert.deepEqual([error.code, error.details], [Code.ABORTED, {}]);
  });
});
