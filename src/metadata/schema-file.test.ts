import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorruptionError } from '../base/index.ts';
import type { FamilySchema, GcRule, LocalityGroup, TableSchema } from '../model/index.ts';
import { encodeDocument } from './plain-json.ts';
import { decodeSchema, encodeSchema, schemaPath } from './schema-file.ts';

const plain = { noNullPrototype: true } as const;
const { rule } = fc.letrec<{ rule: GcRule }>((tie) => ({
  rule: fc.oneof(
    { maxDepth: 4 },
    fc.record({ kind: fc.constant('maxVersions' as const), versions: fc.integer({ min: 1, max: 2 ** 31 - 1 }) }, plain),
    // 10,000 years in microseconds are beyond 2^53
    fc.record(
      {
        kind: fc.constant('maxAge' as const),
        ageMicros: fc.constantFrom(1000, 864e8, 2 ** 53 - 1, 315_576_000_000 * 1e6),
      },
      plain,
    ),
    fc.record(
      {
        kind: fc.constantFrom('union' as const, 'intersection' as const),
        rules: fc.array(tie('rule'), { maxLength: 3 }),
      },
      plain,
    ),
  ),
}));
const familyName = fc.oneof(
  fc.stringMatching(/^[-_.a-zA-Z0-9]{1,20}$/),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'f'),
);
const family = (name: string): fc.Arbitrary<FamilySchema> =>
  fc.record(
    {
      name: fc.constant(name),
      generation: fc.nat(),
      group: fc.stringMatching(/^[-_.a-zA-Z0-9]{1,8}$/),
      quotaBytes: fc.maxSafeNat(),
      gcRule: rule,
      valueType: fc.oneof(
        fc.record({ encoded: fc.base64String() }, plain),
        fc.record(
          {
            aggregate: fc.record(
              {
                kind: fc.constantFrom('sum' as const, 'min' as const, 'max' as const, 'hll' as const),
                input: fc.constantFrom('int64' as const, 'bytes' as const),
              },
              plain,
            ),
          },
          plain,
        ),
      ),
    },
    { requiredKeys: ['name'], noNullPrototype: true },
  );
const record = <T>(entries: readonly (readonly [string, T])[]): Record<string, T> => {
  const out: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) out[name] = value;
  return out;
};
const group: fc.Arbitrary<LocalityGroup> = fc.record(
  {
    blockSizeBytes: fc.nat(),
    compression: fc.record(
      {
        kind: fc.constantFrom(
          'none' as const,
          'lz4' as const,
          'zstd' as const,
          'zstd-dict' as const,
          'two-pass' as const,
        ),
        level: fc.nat(19),
      },
      { requiredKeys: ['kind'], ...plain },
    ),
    bloomFilter: fc.constantFrom('none' as const, 'row' as const, 'row-column' as const),
    inMemory: fc.boolean(),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const families = fc
  .uniqueArray(familyName, { maxLength: 5 })
  .chain((names) => fc.tuple(...names.map(family)))
  .map((all) => record(all.map((one) => [one.name, one] as const)));
const schema: fc.Arbitrary<TableSchema> = fc.record(
  {
    name: fc.string({ minLength: 1 }),
    id: fc.integer({ min: 0, max: 0xffff_ffff }).map((id) => id.toString(16).padStart(8, '0')),
    granularity: fc.constantFrom('millis' as const, 'micros' as const),
    families,
    deletionProtection: fc.boolean(),
    quotaBytes: fc.maxSafeNat(),
    groups: fc.uniqueArray(fc.tuple(familyName, group), { maxLength: 3, selector: ([name]) => name }).map(record),
    nextGenerations: fc.array(fc.tuple(familyName, fc.nat()), { maxLength: 3 }).map(record),
    extra: fc.array(fc.tuple(fc.string(), fc.base64String()), { maxLength: 3 }).map(record),
  },
  { requiredKeys: ['name', 'id', 'granularity', 'families', 'deletionProtection'], noNullPrototype: true },
);

describe('schema files', () => {
  test('schemas come back, families of any name among them', () => {
    fc.assert(fc.property(schema, (table) => assert.deepEqual(decodeSchema('schemas/x', encodeSchema(table)), table)));
  });

  test('a missing family is not found in the prototype', () => {
    const table = decodeSchema(
      'schemas/x',
      encodeSchema({ name: 'x', id: '00000010', granularity: 'micros', families: {}, deletionProtection: false }),
    );
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty'])
      assert.equal(table.families[name], undefined);
  });

  test('the path is the name', () => {
    assert.equal(schemaPath('projects/p/instances/i/tables/t'), 'schemas/projects/p/instances/i/tables/t');
  });

  const good = {
    format: 1,
    requires: 0,
    name: 't',
    id: '00000010',
    granularity: 'micros',
    families: { f: { name: 'f' } },
    deletionProtection: false,
  };
  const bad: [string, unknown, RegExp][] = [
    ['an id of another form', { ...good, id: '10' }, /id should be eight hexadecimal digits/],
    ['another granularity', { ...good, granularity: 'nanos' }, /granularity should be one of millis, micros/],
    ['a family under another name', { ...good, families: { f: { name: 'g' } } }, /family g is stored under f/],
    [
      'protection that is not a boolean',
      { ...good, deletionProtection: 0 },
      /deletionProtection should be true or false/,
    ],
    [
      'an unknown rule',
      { ...good, families: { f: { name: 'f', gcRule: { kind: 'never' } } } },
      /kind should be one of/,
    ],
    [
      'an unknown aggregate',
      { ...good, families: { f: { name: 'f', valueType: { aggregate: { kind: 'avg', input: 'int64' } } } } },
      /kind should be one of sum/,
    ],
    ['a quota below nothing', { ...good, quotaBytes: -1 }, /quotaBytes should be a count/],
    [
      'a quota that is no number',
      { ...good, families: { f: { name: 'f', quotaBytes: '5' } } },
      /quotaBytes should be a count/,
    ],
    ['a later format', { ...good, format: 9 }, /format 9/],
    ['unknown features', { ...good, requires: 2 ** 30 }, /needs features 0x40000000/],
    ['no object', [], /an object/],
  ];
  for (const [what, document, message] of bad) {
    test(`${what} is refused with a message`, () => {
      const bytes = Buffer.from(JSON.stringify(document));
      assert.throws(
        () => decodeSchema('schemas/t', bytes),
        (error) =>
          error instanceof CorruptionError && error.file.startsWith('schemas/t') && message.test(error.message),
      );
    });
  }

  test('rules nested without end are refused', () => {
    let rules: unknown = { kind: 'maxVersions', versions: 1 };
    for (let i = 0; i < 100; i++) rules = { kind: 'union', rules: [rules] };
    const bytes = Buffer.from(JSON.stringify({ ...good, families: { f: { name: 'f', gcRule: rules } } }));
    assert.throws(() => decodeSchema('schemas/t', bytes), /nested at most 64 deep/);
  });

  test('cut and flipped bytes yield an error or another schema, never a crash', () => {
    const bytes = encodeSchema(decodeSchema('x', Buffer.from(JSON.stringify(good))));
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.boolean(), (at, value, cut) => {
        const damaged = cut ? bytes.subarray(0, at) : Buffer.from(bytes);
        if (!cut) damaged[at] = value;
        try {
          decodeSchema('x', damaged);
        } catch (error) {
          assert.ok(error instanceof CorruptionError, String(error));
        }
      }),
    );
  });

  test('a document that this program could not read again is not written', () => {
    assert.throws(() => encodeDocument({}, 1 << 20), /a document needs features that this program can read/);
    assert.throws(() => encodeDocument({ format: 2 }), /the fields of a document leave its version visible/);
    const families = { a: { name: 'b' } };
    assert.throws(
      () => encodeSchema({ name: 't', id: '00000010', granularity: 'micros', families, deletionProtection: false }),
      /a column family is written under its own name/,
    );
  });
});
