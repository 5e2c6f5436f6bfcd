import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { checkAvroSchema } from './avro-schema.ts';

const check = (schema: unknown): void => checkAvroSchema(JSON.stringify(schema), 'f');
const record = (name: string, ...fields: unknown[]): object => ({ type: 'record', name, fields });

describe('an Avro schema', () => {
  test('of every form of the specification is taken', () => {
    for (const schema of [
      'string',
      { type: 'long' },
      { type: 'int', logicalType: 'date' },
      ['null', 'string'],
      { type: 'array', items: 'long' },
      { type: 'map', values: ['null', { type: 'fixed', name: 'F', size: 16 }] },
      { type: 'enum', name: 'Suit', symbols: ['SPADES', 'HEARTS'] },
      record('LongList', { name: 'value', type: 'long' }, { name: 'next', type: ['null', 'LongList'], default: null }),
      {
        ...record('a.b.Outer', { name: 'inner', type: record('Inner') }, { name: 'again', type: 'a.b.Inner' }),
        doc: 'text',
      },
      {
        ...record('R', { name: 'x', type: { ...record('S'), namespace: 'other' } }, { name: 'y', type: 'other.S' }),
        namespace: 'n',
      },
    ])
      check(schema);
  });

  test('of another form is INVALID_ARGUMENT', () => {
    for (const schema of [
      null,
      1,
      'nothing',
      {},
      { type: 'array' },
      { type: 'map', values: 7 },
      [['null'], 'string'],
      { type: 'enum', name: 'E', symbols: ['A', 'A'] },
      { type: 'enum', name: 'E', symbols: 'A' },
      { type: 'enum', symbols: [] },
      { type: 'fixed', name: 'F', size: -1 },
      { type: 'fixed', name: '1F', size: 1 },
      record('R', { name: 'x' }),
      record('R', { name: 'x', type: 'int' }, { name: 'x', type: 'int' }),
      record('R', null),
      record('R', { name: 'x', type: record('R') }),
      { type: 'record', name: 'R' },
      { ...record('R'), namespace: '9' },
      record('R', { name: '__proto__.x', type: 'int' }),
    ])
      assert.throws(() => check(schema), { code: Code.INVALID_ARGUMENT }, JSON.stringify(schema));
    assert.throws(() => checkAvroSchema('{', 'f'), { code: Code.INVALID_ARGUMENT });
  });

  test('that is nested deeply is refused, whatever it is', () => {
    const nested = (depth: number): string => `${'{"type":"array","items":'.repeat(depth)}"int"${'}'.repeat(depth)}`;
    checkAvroSchema(nested(60), 'f');
    for (const depth of [70, 10_000])
      assert.throws(() => checkAvroSchema(nested(depth), 'f'), { code: Code.INVALID_ARGUMENT });
    assert.throws(() => checkAvroSchema('['.repeat(500_000), 'f'), { code: Code.INVALID_ARGUMENT });
    assert.throws(() => checkAvroSchema(`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'f'), {
      code: Code.INVALID_ARGUMENT,
    });
  });

  test('whatever JSON comes is taken or INVALID_ARGUMENT', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        try {
          checkAvroSchema(text, 'f');
        } catch (error) {
          assert.ok(error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT, String(error));
        }
      }),
    );
  });
});
