import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { cellArgument, checkText, namedArguments, positiveNumber, truth } from './arguments.ts';

function refused(work: () => unknown, message: RegExp): void {
  assert.throws(
    work,
    (error) => error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT && message.test(error.message),
  );
}

describe('named arguments', () => {
  test('are taken by name; a value may hold anything, = too', () => {
    assert.deepEqual(namedArguments(['start=a=b', 'end=='], ['start', 'end', 'count']), { start: 'a=b', end: '=' });
    assert.deepEqual(namedArguments([], ['start']), {});
  });

  test('an unknown one is refused, and the known ones are listed', () => {
    refused(() => namedArguments(['begin=a'], ['start', 'end']), /"begin=a" is not known here; known: start=…, end=…/);
    refused(
      () => namedArguments(['prefx=a'], ['start', 'prefix']),
      /"prefx=a" is not known here \(did you mean prefix\?\); known: start=…, prefix=…/,
    );
    refused(() => namedArguments(['start'], ['start']), /"start" is not known here \(did you mean start=…\?\)/);
    refused(() => namedArguments(['start=a', 'start=b'], ['start']), /"start=" is given twice/);
    refused(() => namedArguments(['__proto__=a'], ['start']), /not known/);
    refused(() => namedArguments(['start=a', 'end='], ['start', 'end']), /"end=" has no value; leave it out/);
  });

  test('numbers and booleans are parsed', () => {
    assert.equal(positiveNumber('12', 'count'), 12);
    for (const text of ['0', '-1', '1.5', '1e3', '0x10', '', ' 1', '9007199254740993', 'ten'])
      refused(() => positiveNumber(text, 'count'), /count must be a whole number above 0/);
    assert.deepEqual([truth('true', 'x'), truth('false', 'x'), truth(undefined, 'x')], [true, false, false]);
    refused(() => truth('yes', 'reversed'), /reversed must be true or false, not "yes"/);
  });
});

describe('cells', () => {
  const CASES: readonly [string, string, string, bigint | undefined][] = [
    ['f:q=v', 'f:q', 'v', undefined],
    ['f:=v', 'f:', 'v', undefined],
    ['f:q=', 'f:q', '', undefined],
    ['f:q=v@12', 'f:q', 'v', 12n],
    ['f:q=v@-12', 'f:q', 'v', -12n],
    ['f:q=@12', 'f:q', '', 12n],
    ['f:q=a@b', 'f:q', 'a@b', undefined],
    ['f:q=a@1@2', 'f:q', 'a@1', 2n],
    ['f:q=a@1x', 'f:q', 'a@1x', undefined],
    ['f:q=a=b:c', 'f:q', 'a=b:c', undefined],
    ['f:a:b=c', 'f:a:b', 'c', undefined],
    ['f:q=two\nlines@3', 'f:q', 'two\nlines', 3n],
    ['f:q=v@9223372036854775807', 'f:q', 'v', 9223372036854775807n],
  ];
  for (const [word, column, value, timestamp] of CASES) {
    test(JSON.stringify(word), () => assert.deepEqual(cellArgument(word), { column, value, timestamp }));
  }

  test('anything else is refused, with the form it must have', () => {
    for (const word of ['f', 'f=v', 'f:q', ':q=v', '=v', ''])
      refused(() => cellArgument(word), /must be written family:column=value/);
  });
});

test('words that are not UTF-8 are refused, as they would name something else', () => {
  checkText(['set', 't', 'Šipka ☃', '']);
  refused(() => checkText(['set', 't', 'a\ufffd']), /"a\ufffd" has bytes that are not UTF-8/);
});
