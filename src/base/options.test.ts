import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from './errors.ts';
import { checkOptions, describeValue, type OptionTable } from './options.ts';

interface Options {
  readonly prefix?: string;
  readonly reverse?: boolean;
}
const TABLE = { prefix: 'bound', reverse: 'free' } satisfies OptionTable<Options>;

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe('options', () => {
  test('known names with values pass, and free ones may be undefined', () => {
    for (const given of [
      {},
      { prefix: '' },
      { prefix: 'a', reverse: true },
      { reverse: undefined },
      { reverse: null },
      Object.create({ prefix: 'a' }),
    ]) {
      checkOptions(given, TABLE, 'scan');
    }
  });

  const refused: readonly [string, unknown, RegExp][] = [
    [
      'a misspelt name',
      { preffix: 'a' },
      /^scan: unknown option "preffix" \(did you mean prefix\?\); there are prefix, reverse$/,
    ],
    ['a misspelt name next to a correct one', { prefix: 'a', revers: true }, /"revers"/],
    ['an inherited misspelt name', Object.create({ preffix: 'a' }), /"preffix"/],
    ['a name in other letters', { Reverse: true }, /did you mean reverse\?/],
    ['a name like none', { nothing: 1 }, /"nothing"; there are/],
    ["a name of Object's own", { toString: 1 }, /"toString"/],
    ['a bound that is undefined', { prefix: undefined }, /^scan: option prefix must not be undefined; leave it out/],
    ['a bound that is null', { prefix: null }, /prefix must not be null/],
    ['an inherited bound that is undefined', Object.create({ prefix: undefined }), /prefix must not be undefined/],
    ['nothing', undefined, /^scan must be an object with any of prefix, reverse, not undefined$/],
    ['null', null, /not null$/],
    ['text', 'a', /not string "a"$/],
    ['an array', ['prefix'], /not an array of 1$/],
    ['a Map', new Map([['prefix', 'a']]), /not Map$/],
    ['a Date', new Date(0), /not Date$/],
    ['a function', () => {}, /not a function$/],
    ['a promise', Promise.resolve({}), /not a promise \(is an await missing\?\)$/],
    [
      'a getter that throws',
      {
        get prefix() {
          throw new Error('no');
        },
      },
      /^scan cannot be read: no$/,
    ],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no');
          },
        },
      ),
      /^scan cannot be read: no$/,
    ],
    ['a proxy that is revoked', revoked(), /an object that cannot be read$/],
  ];
  for (const [name, given, says] of refused) {
    test(`${name} is refused`, () =>
      assert.throws(() => checkOptions(given, TABLE, 'scan'), { code: Code.INVALID_ARGUMENT, message: says }));
  }

  test('a noun of its own', () =>
    assert.throws(() => checkOptions({ x: 1 }, TABLE, 'open', 'setting'), { message: /unknown setting "x"/ }));
});

test('every value has a short description', () => {
  const bare: unknown = Object.create(null);
  const shown = [null, undefined, 1, 1n, 'a"b', true, Symbol('s'), {}, bare, [1, 2], new Date(0), Buffer.alloc(3)].map(
    describeValue,
  );
  assert.deepEqual(shown, [
    'null',
    'undefined',
    'number 1',
    'bigint 1',
    'string "a\\"b"',
    'boolean true',
    'symbol Symbol(s)',
    'an object',
    'an object',
    'an array of 2',
    'Date',
    'Buffer',
  ]);
  assert.ok(describeValue('x'.repeat(1e6)).length < 100);
});
