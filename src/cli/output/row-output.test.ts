/** The form of a value depends on the schema and on the reader's options, never on its bytes; and no byte is lost. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fromBytes } from '../../base/index.ts';
import { Row } from '../../embedded/index.ts';
import type { TableSchema } from '../../model/index.ts';
import { keyJson, rowJson, rowText } from './row-output.ts';
import { ValueKinds } from './value-kinds.ts';

const SCHEMA: TableSchema = {
  name: 'projects/p/instances/i/tables/t',
  id: '00000010',
  granularity: 'micros',
  deletionProtection: false,
  families: {
    plain: { name: 'plain' },
    sum: { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
    least: { name: 'least', valueType: { aggregate: { kind: 'min', input: 'int64' } } },
    distinct: { name: 'distinct', valueType: { aggregate: { kind: 'hll', input: 'bytes' } } },
    text: { name: 'text', valueType: { encoded: 'EgQKAhIA' } },
  },
};

interface CellDocument {
  readonly qualifier?: string;
  readonly qualifierBase64?: string;
  readonly timestamp: string;
  readonly value?: string | number;
  readonly valueBase64?: string;
}

interface RowDocument {
  readonly key?: string;
  readonly keyBase64?: string;
  readonly cells: readonly [CellDocument];
}

function rowOf(key: Buffer, family: string, qualifier: Buffer, value: Buffer): Row {
  return new Row(fromBytes(key), [{ family, qualifier: fromBytes(qualifier), timestamp: 5, value, labels: [] }]);
}

function bytesOf(text: string | undefined, base64: string | undefined): Buffer {
  assert.ok((text === undefined) !== (base64 === undefined), 'exactly one of the two fields is there');
  if (text !== undefined) assert.equal(typeof text, 'string');
  return text === undefined ? Buffer.from(base64 as string, 'base64') : Buffer.from(text);
}

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 12 }).map((some) => Buffer.from(some)),
  fc.uint8Array({ minLength: 8, maxLength: 8 }).map((some) => Buffer.from(some)),
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => Buffer.from(text)),
);

describe('rows as JSON', () => {
  test('a field has one type, whatever the bytes are, and the bytes can be restored', () => {
    const kinds = new ValueKinds(SCHEMA, 'plain:number');
    fc.assert(
      fc.property(
        bytes,
        bytes,
        bytes,
        fc.constantFrom('plain', 'text', 'distinct'),
        (key, qualifier, value, family) => {
          if (family === 'plain' && qualifier.toString() === 'number') return;
          const row = rowOf(key, family, qualifier, value);
          const json = JSON.parse(rowJson(row, kinds)) as RowDocument;
          const [cell] = json.cells;
          assert.deepEqual(bytesOf(json.key, json.keyBase64), key);
          assert.deepEqual(bytesOf(cell.qualifier, cell.qualifierBase64), qualifier);
          assert.equal(cell.timestamp, '5');
          assert.deepEqual(bytesOf(cell.value as string | undefined, cell.valueBase64), value);
          if (family === 'distinct') assert.equal(cell.value, undefined, 'a sketch is never text');
          assert.deepEqual({ ...(JSON.parse(keyJson(row)) as object), cells: json.cells }, json);
        },
      ),
    );
  });

  test('the number of an aggregate, or of a column that the reader names, is a number with all its digits', () => {
    const columns: readonly [string, string][] = [
      ['sum', 'q'],
      ['least', ''],
      ['plain', 'number'],
    ];
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.constantFrom(...columns),
        (number, [family, qualifier]) => {
          const value = Buffer.alloc(8);
          value.writeBigInt64BE(number);
          const row = rowOf(Buffer.from('r'), family, Buffer.from(qualifier), value);
          const kinds = new ValueKinds(SCHEMA, 'plain:number');
          const line = rowJson(row, kinds);
          assert.equal(typeof (JSON.parse(line) as RowDocument).cells[0].value, 'number');
          assert.match(line, new RegExp(`"value":${number}}]}\n$`));
          assert.ok(rowText(row, kinds).endsWith(`\n    ${number}\n`));
        },
      ),
    );
  });

  test('a value of another length in a column of numbers is base64, not text', () => {
    const row = rowOf(Buffer.from('r'), 'plain', Buffer.from('n'), Buffer.from('abc'));
    const [cell] = (JSON.parse(rowJson(row, new ValueKinds(SCHEMA, 'plain:'))) as RowDocument).cells;
    assert.deepEqual([cell.value, cell.valueBase64], [undefined, 'YWJj']);
    assert.match(rowText(row, new ValueKinds(SCHEMA, 'plain:')), /\n {4}"abc"\n$/);
  });
});

test('int64= names columns and whole families of the table, and nothing else', () => {
  const kinds = new ValueKinds(SCHEMA, 'plain:größe,text:');
  const cases: readonly [string, string, string][] = [
    ['plain', 'größe', 'int64'],
    ['plain', 'q', 'text'],
    ['text', 'q', 'int64'],
    ['sum', 'q', 'int64'],
    ['distinct', 'q', 'sketch'],
    ['unknown', 'q', 'text'],
  ];
  for (const [family, qualifier, kind] of cases)
    assert.equal(kinds.of(family, Buffer.from(qualifier)), kind, `${family}:${qualifier}`);
  assert.throws(() => new ValueKinds(SCHEMA, 'plain'), /int64=: "plain" must be FAMILY:COLUMN/);
  assert.throws(() => new ValueKinds(SCHEMA, ':q'), /must be FAMILY:COLUMN/);
  assert.throws(() => new ValueKinds(SCHEMA, 'other:q'), /no family "other"/);
  assert.throws(() => new ValueKinds(SCHEMA, 'toString:q'), /no family "toString"/);
  assert.throws(() => new ValueKinds(SCHEMA, 'distinct:q'), /sketches/);
});
