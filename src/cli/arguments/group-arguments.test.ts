import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseGroups } from './group-arguments.ts';

describe('locality groups on the command line', () => {
  test('families and options', () => {
    assert.deepEqual(parseGroups([]), {});
    assert.deepEqual(
      parseGroups([
        'meta=language,checksum:inmemory=true:bloom=row-column',
        'default=:compression=zstd/9:blocksize=4096',
        'p=c:compression=two-pass',
      ]),
      {
        meta: { families: ['language', 'checksum'], inMemory: true, bloomFilter: 'row-column' },
        default: { families: [], compression: { kind: 'zstd', level: 9 }, blockSizeBytes: 4096 },
        p: { families: ['c'], compression: { kind: 'two-pass' } },
      },
    );
  });

  test('an invalid argument is refused with a message', () => {
    assert.throws(() => parseGroups(['meta']), /"meta" must be written GROUP=FAMILY/);
    assert.throws(() => parseGroups(['=a']), /must be written/);
    assert.throws(() => parseGroups(['x=a', 'x=b']), /"x" is given twice/);
    assert.throws(
      () => parseGroups(['x=a:toString=1']),
      /option "toString=1" is not known here; known: blocksize=…, compression=…/,
    );
    assert.throws(
      () => parseGroups(['x=a:block-size=4096']),
      /"block-size=4096" is not known here \(did you mean blocksize\?\)/,
    );
    assert.throws(() => parseGroups(['x=a:inmemory']), /"inmemory" is not known/);
    assert.throws(() => parseGroups(['x=a:blocksize=0']), /above 0, not "0"/);
    assert.throws(() => parseGroups(['x=a:inmemory=yes']), /true or false/);
  });
});
