import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import {
  AssertionError,
  assert as assertInvariant,
  BigtableError,
  Code,
  CorruptionError,
  codeName,
  invalidArgument,
  notFound,
  toBigtableError,
  unavailable,
} from './errors.ts';

describe('errors', () => {
  test('say if a retry may help: by default as the code does', () => {
    for (const code of Object.values(Code)) {
      assert.equal(
        new BigtableError(code, 'x').retry,
        code === Code.UNAVAILABLE || code === Code.ABORTED,
        codeName(code),
      );
    }
    assert.equal(new BigtableError(Code.UNAVAILABLE, 'x', { retry: false }).retry, false);
    assert.equal(new BigtableError(Code.INTERNAL, 'x', { retry: true }).retry, true);
  });

  test("have gRPC's numbers and names", () => {
    assert.equal(codeName(0), 'OK');
    assert.equal(codeName(Code.INVALID_ARGUMENT), 'INVALID_ARGUMENT');
    assert.equal(codeName(16), 'UNAUTHENTICATED');
    assert.deepEqual(
      Object.values(Code),
      Array.from({ length: 17 }, (_, i) => i),
    );
  });

  test('are errors with a name, details and a cause', () => {
    const cause = new Error('below');
    const error = new BigtableError(Code.NOT_FOUND, 'no table t', { details: { table: 't' }, cause });
    assert.ok(error instanceof Error);
    assert.equal(String(error), 'BigtableError: no table t');
    assert.deepEqual(error.details, { table: 't' });
    assert.equal(error.cause, cause);
    assert.equal('cause' in new BigtableError(Code.NOT_FOUND, 'x'), false);
    assert.deepEqual(new BigtableError(Code.NOT_FOUND, 'x').details, {});
  });

  test('print their code by name, and details only where there are some', () => {
    const plain = inspect(new BigtableError(Code.ALREADY_EXISTS, 'x'));
    assert.match(plain, /^BigtableError: x\n/);
    assert.match(plain, /code: 6,\s+codeName: 'ALREADY_EXISTS',\s+retry: false\s*\}$/);
    assert.match(
      inspect(new BigtableError(Code.NOT_FOUND, 'x', { details: { table: 't' } })),
      /details: \{ table: 't' \}/,
    );
    assert.deepEqual(JSON.parse(JSON.stringify(notFound('x'))), {
      name: 'BigtableError',
      message: 'x',
      code: 5,
      codeName: 'NOT_FOUND',
      retry: false,
    });
    assert.deepEqual(JSON.parse(JSON.stringify(new CorruptionError('f', 7, 'x'))), {
      name: 'CorruptionError',
      message: 'f: corrupt at byte 7: x',
      code: 15,
      codeName: 'DATA_LOSS',
      retry: false,
      details: { file: 'f', offset: 7 },
      file: 'f',
      offset: 7,
    });
  });

  test('corruption names the file and the offset', () => {
    const error = new CorruptionError('sst/0001', 4096, 'block checksum is 1, not 2');
    assert.ok(error instanceof BigtableError);
    assert.equal(error.code, Code.DATA_LOSS);
    assert.equal(error.retry, false);
    assert.equal(error.name, 'CorruptionError');
    assert.equal(error.message, 'sst/0001: corrupt at byte 4096: block checksum is 1, not 2');
    assert.deepEqual([error.file, error.offset, error.details], ['sst/0001', 4096, { file: 'sst/0001', offset: 4096 }]);
  });

  test('shorthands', () => {
    assert.equal(invalidArgument('x').code, Code.INVALID_ARGUMENT);
    assert.deepEqual(invalidArgument('x', { limit: 5 }).details, { limit: 5 });
    assert.equal(notFound('x').code, Code.NOT_FOUND);
    const cause = new Error('below');
    assert.equal(unavailable('x', cause).code, Code.UNAVAILABLE);
    assert.equal(unavailable('x', cause).cause, cause);
  });

  test('any thrown value becomes one', () => {
    const own = notFound('x');
    assert.equal(toBigtableError(own), own);
    const other = new TypeError('not a function');
    const wrapped = toBigtableError(other);
    assert.deepEqual([wrapped.code, wrapped.message, wrapped.cause], [Code.INTERNAL, 'not a function', other]);
    assert.equal(toBigtableError('text').message, 'text');
    assert.equal(toBigtableError(undefined).message, 'undefined');
  });
});

describe('assert', () => {
  test('passes what holds and names a broken invariant', () => {
    assertInvariant(1 < 2, 'order');
    assert.throws(
      () => assertInvariant(0, 'keys ascend'),
      (thrown) =>
        thrown instanceof AssertionError &&
        thrown.code === Code.INTERNAL &&
        thrown.message === 'invariant broken: keys ascend',
    );
  });
});

test('a value without text becomes an error, too', () => {
  for (const thrown of [{ toString: [] }, Object.create(null), Symbol('s'), undefined, null]) {
    const error = toBigtableError(thrown);
    assert.equal(error.code, Code.INTERNAL);
    assert.equal(typeof error.message, 'string');
  }
});
