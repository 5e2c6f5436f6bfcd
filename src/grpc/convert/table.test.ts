import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { toBytes } from '../../base/index.ts';
import { backupPolicyOf } from '../../protocol/index.ts';
import {
  ColumnFamilySchema,
  GcRuleSchema,
  type Table,
  type Table_AutomatedBackupPolicySchema,
  Table_View as View,
  TableSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { TypeSchema } from '../generated/google/bigtable/admin/v2/types_pb.ts';
import { RowSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { cell, gcRule, rowKey, rowMessage, tableSchema } from './fixtures.ts';
import { gcRuleMessage, gcRuleOf } from './gc-rule.ts';
import { cellsOf } from './row.ts';
import {
  applyExtra,
  checkBackupPolicy,
  extraOf,
  familyMessage,
  familyOf,
  granularityOf,
  KEPT_FIELDS,
  schemaOf,
  tableMessage,
} from './table.ts';
import { valueTypeMessage, valueTypeOf } from './value-type.ts';

const invalid = { code: 3 };

function overTheWire(table: Table): Table {
  return fromBinary(TableSchema, toBinary(TableSchema, table));
}

describe('tables', () => {
  test('a schema comes back as it was, but for its id', () => {
    fc.assert(
      fc.property(
        tableSchema.filter((schema) => Object.values(schema.families).every((family) => size(family.gcRule) <= 500)),
        (schema) => assert.deepEqual(schemaOf(overTheWire(tableMessage(schema, View.SCHEMA_VIEW))), schema),
      ),
    );
  });

  test('views show what they should', () => {
    const schema = fc.sample(
      tableSchema.filter((each) => Object.keys(each.families).length > 0),
      { numRuns: 1, seed: 3 },
    )[0];
    assert.ok(schema);
    const named = { ...schema, deletionProtection: true, granularity: 'micros' as const };
    assert.deepEqual(tableMessage(named, View.NAME_ONLY), create(TableSchema, { name: named.name }));
    for (const view of [View.REPLICATION_VIEW, View.ENCRYPTION_VIEW])
      assert.deepEqual(Object.keys(tableMessage(named, view).columnFamilies), []);
    for (const view of [View.SCHEMA_VIEW, View.FULL])
      assert.notDeepEqual(Object.keys(tableMessage(named, view).columnFamilies), []);
    assert.equal(tableMessage(named, View.SCHEMA_VIEW).granularity, 2);
    assert.equal(tableMessage(named, View.SCHEMA_VIEW).deletionProtection, true);
  });

  test('fields without an effect are kept and returned', () => {
    const table = create(TableSchema, {
      automatedBackupConfig: { case: 'automatedBackupPolicy', value: { retentionPeriod: { seconds: 1n } } },
      tieredStorageConfig: { infrequentAccess: {} },
      rowKeySchema: { fields: [{ fieldName: 'user' }] },
    });
    const extra = extraOf(overTheWire(table));
    assert.deepEqual(Object.keys(extra ?? {}).sort(), [...KEPT_FIELDS].sort());
    const schema = schemaOf(table);
    const { effectiveAutomatedBackupPolicy, ...back } = tableMessage({ ...schema, name: '' }, View.SCHEMA_VIEW);
    assert.deepEqual({ ...back, granularity: 0 }, table);
    assert.deepEqual(effectiveAutomatedBackupPolicy, table.automatedBackupConfig.value);
    assert.equal(extraOf(create(TableSchema)), undefined);
    const cleared = create(TableSchema);
    assert.deepEqual(applyExtra(cleared, { row_key_schema: '', unknown: 'x' }), ['row_key_schema']);
    assert.deepEqual(cleared, create(TableSchema));
  });

  test('a backup policy is read by the master as it was set, and checked before', () => {
    const day = 86_400n;
    const tableWith = (value: MessageInitShape<typeof Table_AutomatedBackupPolicySchema>) =>
      create(TableSchema, { automatedBackupConfig: { case: 'automatedBackupPolicy', value } });
    const read = (table: Table) => {
      checkBackupPolicy(overTheWire(table));
      return backupPolicyOf(schemaOf(overTheWire(table)));
    };
    assert.equal(read(create(TableSchema)), undefined);
    assert.equal(read(tableWith({ disabled: true })), undefined);
    assert.equal(read(tableWith({ retentionPeriod: { seconds: 3n * day }, disabled: true })), undefined);
    assert.deepEqual(
      read(
        tableWith({
          retentionPeriod: { seconds: 4n * day, nanos: 5000 },
          frequency: { seconds: day },
          keepHotDuration: { seconds: day, nanos: 1000 },
          locations: ['projects/p/locations/local'],
        }),
      ),
      { retentionMicros: 4 * 86_400e6 + 5, hotMicros: 86_400e6 + 1 },
    );
    for (const wrong of [
      {},
      { retentionPeriod: { seconds: 3n * day - 1n } },
      { retentionPeriod: { seconds: 90n * day, nanos: 1 } },
      { retentionPeriod: { seconds: -3n * day } },
      { retentionPeriod: { seconds: 3n * day }, frequency: { seconds: 3600n } },
      { retentionPeriod: { seconds: 3n * day }, keepHotDuration: { seconds: day - 1n } },
      { retentionPeriod: { seconds: 3n * day }, keepHotDuration: { seconds: 4n * day } },
      { retentionPeriod: { seconds: 30n * day }, keepHotDuration: { seconds: 11n * day } },
    ])
      assert.throws(() => checkBackupPolicy(tableWith(wrong)), invalid);
  });

  test('granularities', () => {
    assert.equal(granularityOf(0), 'millis');
    assert.equal(granularityOf(1), 'millis');
    assert.equal(granularityOf(2), 'micros');
    assert.throws(() => granularityOf(9 as 1), invalid);
  });
});

function size(rule: Parameters<typeof gcRuleMessage>[0] | undefined): number {
  return rule ? toBinary(GcRuleSchema, gcRuleMessage(rule)).length : 0;
}

describe('GC rules', () => {
  test('a rule of up to 500 bytes comes back as it was, a longer one is refused', () => {
    fc.assert(
      fc.property(gcRule, (rule) => {
        const message = fromBinary(GcRuleSchema, toBinary(GcRuleSchema, gcRuleMessage(rule)));
        if (size(rule) > 500) assert.throws(() => gcRuleOf(message), { code: 3, message: /limit is 500/ });
        else assert.deepEqual(gcRuleOf(message), rule);
      }),
    );
    const long = {
      kind: 'union' as const,
      rules: Array.from({ length: 200 }, () => ({ kind: 'maxVersions' as const, versions: 7 })),
    };
    assert.ok(size(long) > 500);
    assert.throws(() => gcRuleOf(gcRuleMessage(long)), { code: 3, message: /limit is 500/ });
  });

  test('nothing set keeps everything', () => {
    assert.equal(gcRuleOf(undefined), undefined);
    assert.equal(gcRuleOf(create(GcRuleSchema)), undefined);
    assert.deepEqual(familyOf('cf', create(ColumnFamilySchema, { gcRule: {} })), { name: 'cf' });
  });

  test('ages are cut to microseconds and must be representable', () => {
    const age = (seconds: bigint, nanos: number) =>
      create(GcRuleSchema, { rule: { case: 'maxAge', value: { seconds, nanos } } });
    assert.deepEqual(gcRuleOf(age(1n, 1999)), { kind: 'maxAge', ageMicros: 1_000_001 });
    assert.throws(() => gcRuleOf(age(315_576_000_000n, 0)), { code: 3, message: /285 years/ });
    assert.throws(() => gcRuleOf(create(GcRuleSchema, { rule: { case: 'union', value: { rules: [{}] } } })), invalid);
  });
});

describe('value types', () => {
  const int64Type = {
    kind: { case: 'int64Type', value: { encoding: { encoding: { case: 'bigEndianBytes', value: {} } } } },
  } as const;

  for (const [aggregator, kind] of [
    ['sum', 'sum'],
    ['min', 'min'],
    ['max', 'max'],
    ['hllppUniqueCount', 'hll'],
  ] as const) {
    test(`${aggregator} gets its meaning and is returned as written`, () => {
      const message = create(TypeSchema, {
        kind: { case: 'aggregateType', value: { inputType: int64Type, aggregator: { case: aggregator, value: {} } } },
      });
      const type = valueTypeOf(message);
      assert.deepEqual(type?.aggregate, { kind, input: 'int64' });
      assert.deepEqual(valueTypeMessage(type), message);
      assert.deepEqual(valueTypeMessage({ aggregate: { kind, input: 'int64' } }), message);
      assert.deepEqual(familyOf('f', familyMessage({ name: 'f', valueType: type })), { name: 'f', valueType: type });
    });
  }

  test('without an input type sums take integers and unique counts bytes', () => {
    const of = (aggregator: 'sum' | 'hllppUniqueCount') =>
      valueTypeOf(
        create(TypeSchema, { kind: { case: 'aggregateType', value: { aggregator: { case: aggregator, value: {} } } } }),
      );
    assert.equal(of('sum')?.aggregate?.input, 'int64');
    assert.equal(of('hllppUniqueCount')?.aggregate?.input, 'bytes');
    assert.equal(valueTypeMessage({ aggregate: { kind: 'hll', input: 'bytes' } }).kind.case, 'aggregateType');
  });

  test('other types are kept without a meaning; inconsistent types are refused', () => {
    const message = create(TypeSchema, { kind: { case: 'stringType', value: {} } });
    assert.equal(valueTypeOf(message)?.aggregate, undefined);
    assert.deepEqual(valueTypeMessage(valueTypeOf(message) ?? {}), message);
    assert.equal(valueTypeOf(undefined), undefined);
    assert.equal(valueTypeOf(create(TypeSchema)), undefined);
    assert.throws(() => valueTypeOf(create(TypeSchema, { kind: { case: 'aggregateType', value: {} } })), invalid);
    const sumOfText = create(TypeSchema, {
      kind: {
        case: 'aggregateType',
        value: { inputType: { kind: { case: 'stringType', value: {} } }, aggregator: { case: 'sum', value: {} } },
      },
    });
    assert.throws(() => valueTypeOf(sumOfText), invalid);
    const ordered = create(TypeSchema, {
      kind: { case: 'int64Type', value: { encoding: { encoding: { case: 'orderedCodeBytes', value: {} } } } },
    });
    const inOrderedCode = (aggregator: 'sum' | 'hllppUniqueCount') =>
      create(TypeSchema, {
        kind: { case: 'aggregateType', value: { inputType: ordered, aggregator: { case: aggregator, value: {} } } },
      });
    assert.throws(() => valueTypeOf(inOrderedCode('sum')), { ...invalid, message: /big_endian_bytes/ });
    assert.deepEqual(
      valueTypeOf(inOrderedCode('hllppUniqueCount'))?.aggregate,
      { kind: 'hll', input: 'int64' },
      'a count of distinct numbers has no number for its state',
    );
  });
});

describe('rows', () => {
  test('cells come back sorted by family and column, versions in their order', () => {
    fc.assert(
      fc.property(rowKey, fc.array(cell, { maxLength: 8 }), (key, cells) => {
        const row = fromBinary(RowSchema, toBinary(RowSchema, rowMessage(key, cells)));
        assert.deepEqual(Buffer.from(row.key), toBytes(key));
        const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
        const sorted = [...cells].sort((a, b) => order(a.family, b.family) || order(a.qualifier, b.qualifier));
        assert.deepEqual(cellsOf(row).map(plain), sorted.map(plain));
        const names = row.families.map((family) => family.name);
        assert.deepEqual(names, [...new Set(names)].sort());
        for (const family of row.families)
          assert.equal(
            new Set(family.columns.map((column) => Buffer.from(column.qualifier).toString('hex'))).size,
            family.columns.length,
          );
      }),
    );
    assert.deepEqual(cellsOf(undefined), []);
  });
});

function plain(each: { value: Uint8Array }) {
  return { ...each, value: Buffer.from(each.value).toString('hex') };
}
