import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Http2Error } from './frames.ts';
import { HeaderReader } from './header-rules.ts';

const PLAIN = [
  ':method',
  'POST',
  ':scheme',
  'http',
  ':path',
  '/a/B',
  ':authority',
  'h',
  'content-type',
  'application/grpc',
  'te',
  'trailers',
  'grpc-timeout',
  '1S',
];

function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    assert.ok(error instanceof Http2Error);
    return error.message;
  }
}

/** Lists as requests of one connection are: each is the one before with a few changes. */
const names = fc.constantFrom(
  ':method',
  ':path',
  ':authority',
  'content-type',
  'content-length',
  'te',
  'grpc-timeout',
  'traceparent',
  'connection',
  'Upper',
  ':odd',
);
const values = fc.constantFrom('POST', '', '/', 'application/grpc', 'trailers', '7', 'x', 'a\nb', 'a\0', '\r', '\x01é');
const change = fc.record({
  kind: fc.constantFrom('value', 'name', 'add', 'drop'),
  at: fc.nat(30),
  name: names,
  value: values,
});

function changed(
  list: readonly string[],
  {
    kind,
    at,
    name,
    value,
  }: { readonly kind: string; readonly at: number; readonly name: string; readonly value: string },
): string[] {
  const next = [...list];
  const field = list.length === 0 ? 0 : 2 * (at % (list.length / 2));
  if (kind === 'value' && list.length > 0) next[field + 1] = value;
  else if (kind === 'name' && list.length > 0) next[field] = name;
  else if (kind === 'add') next.splice(field, 0, name, value);
  else next.splice(field, 2);
  return next;
}

describe('headers of requests', () => {
  test('a request that differs little from the one before is checked as it would be alone', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        let list: string[] = PLAIN;
        const reader = new HeaderReader();
        reader.read(PLAIN, 1);
        for (const each of changes) {
          const next = changed(list, each);
          const alone = outcome(() => new HeaderReader().read(next, 1));
          assert.deepEqual(
            outcome(() => reader.read(next, 1)),
            alone,
          );
          if (typeof alone === 'string') continue;
          list = next;
        }
      }),
      { numRuns: 500 },
    );
  });

  test('the wire reads its own headers', () => {
    const { method, path, contentType, contentLength } = new HeaderReader().read([...PLAIN, 'content-length', '7'], 1);
    assert.deepEqual(
      { method, path, contentType, contentLength },
      { method: 'POST', path: '/a/B', contentType: 'application/grpc', contentLength: 7 },
    );
  });

  for (const value of ['a\0', '\r', 'b\nc']) {
    test(`a value that holds ${JSON.stringify(value)} is refused, also where all else is as before`, () => {
      const reader = new HeaderReader();
      reader.read(PLAIN, 1);
      const list = [...PLAIN.slice(0, -1), value];
      assert.throws(() => reader.read(list, 3), { message: /grpc-timeout holds a forbidden byte/, streamId: 3 });
    });
  }
});
