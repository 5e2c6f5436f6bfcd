import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { goldenFile } from '../../test/golden/golden-file.ts';
import {
  AssertionError,
  BigtableError,
  Code,
  CorruptionError,
  fromBytes,
  INT64_MAX,
  INT64_MIN,
  type Int64,
  int64,
} from '../base/index.ts';
import {
  intersectRanges,
  isCellRun,
  isEmptyRange,
  type Mutation,
  mutationList,
  type Mutations,
  rangeContains,
  type RowRange,
} from '../model/index.ts';
import { AppendDecoder } from './append-decoder.ts';
import { ManualClock, Pacer } from '../env/index.ts';
import { AppendEncoder, encodeRows } from './append-encoder.ts';
import type { AppendHeader } from './append-format.ts';
import {
  type EncodedRecord,
  type LogRecord,
  type NewRecord,
  Origin,
  type RecordBody,
  type RedoRecord,
} from './record.ts';

const LARGE = 32 << 10;

function encode(
  records: readonly NewRecord[],
  header: Partial<AppendHeader> = {},
  encoder = new AppendEncoder(),
): Buffer {
  for (const record of records) encoder.add(record);
  const parts = encoder.finish({ previous: 0, firstSequence: 1, lowWater: 0, ...header, count: encoder.count });
  return Buffer.concat(parts as Uint8Array[]);
}

function decode(bytes: Buffer): { header: AppendHeader; records: LogRecord[] } {
  const decoder = new AppendDecoder('log', { position: 4096, bytes });
  const records: LogRecord[] = [];
  for (let record = decoder.next(); record; record = decoder.next()) records.push(record);
  return { header: decoder.header, records };
}

/** In the form that the decoder returns. */
function numbered(records: readonly NewRecord[], firstSequence = 1): LogRecord[] {
  return records.map((record, i) => ({ ...record, body: listed(record.body), sequence: firstSequence + i }));
}

function listed(body: RecordBody<Mutations>): RecordBody {
  return body.kind === 'rows'
    ? { ...body, rows: body.rows.map(({ row, mutations }) => ({ row, mutations: mutationList(mutations) })) }
    : body;
}

function record(...mutations: Mutation[]): NewRecord {
  return {
    tableId: '0000002a',
    epoch: 7,
    commitMicros: 1_700_000_000_000_000,
    origin: Origin.user,
    body: { kind: 'rows', rows: [{ row: 'row', mutations }] },
  };
}

function setCell(value: Uint8Array, timestamp: Int64 = 1000): Mutation {
  return { kind: 'setCell', family: 'f', qualifier: 'q', timestamp, value };
}

const TWO_53 = 2n ** 53n;
const EDGES = [
  INT64_MIN,
  INT64_MAX,
  TWO_53 - 1n,
  TWO_53,
  TWO_53 + 1n,
  -TWO_53 + 1n,
  -TWO_53,
  -TWO_53 - 1n,
  0n,
  -1n,
].map(int64);

/** Plain objects, as the decoder makes them. */
const PLAIN = { noNullPrototype: true } as const;

function valueOf(mutation: Mutation | undefined): Uint8Array {
  assert.ok(mutation?.kind === 'setCell');
  return mutation.value;
}

const int64s = fc.oneof(
  fc.bigInt(INT64_MIN, INT64_MAX).map((value) => int64(value)),
  fc.constantFrom<Int64>(0, -1, 1, 2 ** 32, -(2 ** 32), ...EDGES),
);
const keys = fc.uint8Array({ maxLength: 40 }).map(fromBytes);
const families = fc.oneof(
  fc.string({ minLength: 1, maxLength: 8, unit: 'binary-ascii' }),
  fc.constantFrom('größe', '列族', '🏺'),
);
const values = fc.oneof(
  { weight: 9, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.nat(3 * LARGE).map((length) => Buffer.alloc(length, length % 251)) },
);
const cell = { family: families, qualifier: keys, timestamp: int64s };
const ranges = fc.oneof(
  fc.record({ start: int64s }, PLAIN),
  fc.record({ end: int64s }, PLAIN),
  fc.record({ start: int64s, end: int64s }, PLAIN),
);
const mutations: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant('setCell' as const), ...cell, value: values }, PLAIN),
  fc.record({ kind: fc.constant('addToCell' as const), ...cell, input: fc.oneof(int64s, values) }, PLAIN),
  fc.record({ kind: fc.constant('mergeToCell' as const), ...cell, state: values }, PLAIN),
  fc.record(
    { kind: fc.constant('deleteFromColumn' as const), family: families, qualifier: keys, range: ranges },
    PLAIN,
  ),
  fc.record({ kind: fc.constant('deleteFromColumn' as const), family: families, qualifier: keys }, PLAIN),
  fc.record({ kind: fc.constant('deleteFromFamily' as const), family: families }, PLAIN),
  fc.constant({ kind: 'deleteFromRow' as const }),
);
const rows = fc.record({ row: keys, mutations: fc.array(mutations, { maxLength: 6 }) }, PLAIN);
const rowRanges = fc.record({ start: keys, end: fc.option(keys, { nil: undefined }) }, PLAIN);
const bodies: fc.Arbitrary<RecordBody> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('rows' as const), rows: fc.array(rows, { maxLength: 3 }) }, PLAIN),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('dropRows' as const), range: rowRanges }, PLAIN) },
);
const records: fc.Arbitrary<NewRecord> = fc
  .record(
    {
      tableId: families,
      epoch: fc.maxSafeNat(),
      commitMicros: int64s,
      origin: fc.constantFrom(...Object.values(Origin)),
      token: fc.option(values, { nil: undefined }),
      body: bodies,
    },
    PLAIN,
  )
  .map(({ token, ...rest }) => (token ? { ...rest, token } : rest));

/** Ranges that begin and end at rows of the records. */
function rangesAmong(appended: readonly NewRecord[]): RowRange[] {
  const rows = appended
    .flatMap(({ body }) => (body.kind === 'rows' ? body.rows.map(({ row }) => row) : [body.range.start]))
    .sort();
  return [
    { start: '', end: undefined },
    ...rows.map((start, i) => ({ start, end: rows[i + 2] })),
    ...rows.map((end) => ({ start: '', end })),
  ];
}

/** The record, with lists for rows that were encoded as runs of cells; asserts that those can be runs. */
function withLists(record: RedoRecord): LogRecord {
  const { body } = record;
  if (body.kind === 'dropRows') return { ...record, body };
  const rows = body.rows.map(({ row, mutations }) => {
    const list = mutationList(mutations);
    assert.equal(isCellRun(mutations), list.length > 0 && list.every(({ kind }) => kind === 'setCell'));
    return { row, mutations: list };
  });
  return { ...record, body: { kind: 'rows', rows } };
}

describe('records of an append', () => {
  test('can be decoded in any order, and name their table and epoch beforehand', () => {
    fc.assert(
      fc.property(fc.array(records, { minLength: 1, maxLength: 8 }), (appended) => {
        const ranges = rangesAmong(appended);
        const decoder = new AppendDecoder('log', { position: 0, bytes: encode(appended) });
        const found: EncodedRecord[] = [];
        for (let one = decoder.nextEncoded(); one; one = decoder.nextEncoded()) {
          found.push(one);
          if (found.length % 2 === 0) one.decode();
        }
        assert.deepEqual(
          found.map((one) => one.decode()).reverse(),
          found.reverse().map((one) => one.decode()),
        );
        found.reverse();
        assert.deepEqual(
          found.map((one) => one.decode()),
          numbered(appended),
        );
        assert.deepEqual(
          found.map((one) => withLists(one.redo())),
          numbered(appended),
        );
        for (const [i, { tableId, epoch, body }] of appended.entries()) {
          const one = found[i] as EncodedRecord;
          assert.deepEqual([one.tableId, one.epoch, one.sequence], [tableId, epoch, i + 1]);
          for (const range of ranges) {
            const touches =
              body.kind === 'rows'
                ? body.rows.some(({ row }) => rangeContains(range, row))
                : !isEmptyRange(intersectRanges(body.range, range));
            assert.equal(one.touches(range), touches);
          }
        }
      }),
    );
  });

  test('whatever is encoded is decoded, with one encoder reused for all', () => {
    const encoder = new AppendEncoder();
    fc.assert(
      fc.property(
        fc.array(records, { minLength: 1, maxLength: 20 }),
        fc.maxSafeNat(),
        fc.maxSafeNat(),
        (appended, lowWater, large) => {
          const firstSequence = Math.floor(large / 2);
          const header = { previous: 5, firstSequence, lowWater };
          encoder.reset();
          const decoded = decode(encode(appended, header, encoder));
          assert.deepEqual(decoded, {
            header: { ...header, count: appended.length },
            records: numbered(appended, firstSequence),
          });
        },
      ),
      { numRuns: 300 },
    );
  });

  test('every int64 as timestamp, commit time and counter, exactly', () => {
    for (const value of EDGES) {
      const written: NewRecord = {
        ...record(
          setCell(Buffer.from('x'), value),
          { kind: 'addToCell', family: 'f', qualifier: '', timestamp: value, input: value },
          { kind: 'deleteFromColumn', family: 'f', qualifier: '', range: { start: value, end: value } },
        ),
        commitMicros: value,
      };
      assert.deepEqual(decode(encode([written])).records, numbered([written]));
    }
  });

  test('an empty range of a column is no range', () => {
    const [decoded] = decode(
      encode([record({ kind: 'deleteFromColumn', family: 'f', qualifier: 'q', range: {} })]),
    ).records;
    assert.deepEqual(decoded, { ...record({ kind: 'deleteFromColumn', family: 'f', qualifier: 'q' }), sequence: 1 });
  });

  test('sizes are counted as they grow, over many slabs', () => {
    const encoder = new AppendEncoder();
    const appended = Array.from({ length: 3000 }, (_, i) => record(setCell(Buffer.alloc(i, i))));
    let before = 0;
    for (const [i, one] of appended.entries()) {
      encoder.add(one);
      assert.ok(
        encoder.sizeBytes - before > i && encoder.sizeBytes - before < i + 60,
        `record ${i}: ${encoder.sizeBytes - before}`,
      );
      before = encoder.sizeBytes;
    }
    const parts = encoder.finish({ previous: 0, count: 3000, firstSequence: 1, lowWater: 0 });
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    assert.equal(total - (parts[0] as Uint8Array).length, before);
    assert.deepEqual(decode(Buffer.concat(parts as Uint8Array[])).records, numbered(appended));
  });

  test('a large value is a part of its own, not a copy', () => {
    const value = Buffer.alloc(100_000_000);
    const encoder = new AppendEncoder();
    encoder.add(record(setCell(Buffer.from('before')), setCell(value), setCell(Buffer.from('after'))));
    const parts = encoder.finish({ previous: 0, count: 1, firstSequence: 1, lowWater: 0 });
    assert.equal(parts.filter((part) => part === value).length, 1);
    assert.ok(parts.reduce((sum, part) => sum + part.length, 0) - value.length < 300);
    const decoded = decode(Buffer.concat(parts as Uint8Array[])).records[0]?.body;
    assert.ok(decoded?.kind === 'rows');
    assert.equal(valueOf(decoded.rows[0]?.mutations[1]).length, value.length);
  });

  test('a record that cannot be encoded leaves the encoder as it was', () => {
    const good = record(setCell(Buffer.alloc(200_000, 1)), setCell(Buffer.from('x')));
    const bad: NewRecord[] = [
      // without a timestamp, after large and small parts
      record(setCell(Buffer.alloc(5000)), setCell(Buffer.alloc(200_000)), {
        kind: 'setCell',
        family: 'f',
        qualifier: 'q'.repeat(9e5),
        value: Buffer.of(1),
      }),
      { ...good, epoch: -1 },
      { ...good, epoch: 2 ** 60 },
      { ...good, epoch: 1.5 },
    ];
    const encoder = new AppendEncoder();
    encoder.add(good);
    const { sizeBytes } = encoder;
    for (const one of bad) {
      assert.throws(() => encoder.add(one), AssertionError);
      assert.equal(encoder.sizeBytes, sizeBytes);
      assert.equal(encoder.count, 1);
    }
    assert.deepEqual(decode(encode([good], {}, encoder)).records, numbered([good, good]));
  });
});

/** docs/formats/commit-log.md explains the bytes of an append of these records. */
const GOLDEN_RECORDS: readonly NewRecord[] = [
  {
    tableId: '0000002a',
    epoch: 7,
    commitMicros: 1_700_000_000_000_000,
    origin: Origin.user,
    token: Buffer.from('tok'),
    body: {
      kind: 'rows',
      rows: [
        {
          row: 'com.cnn.www',
          mutations: [
            {
              kind: 'setCell',
              family: 'contents',
              qualifier: '',
              timestamp: 1_700_000_000_000_000,
              value: Buffer.from('<html>'),
            },
            { kind: 'addToCell', family: 'n', qualifier: 'i', timestamp: -1, input: 5 },
            { kind: 'addToCell', family: 'n', qualifier: 'b', timestamp: 0, input: Buffer.from([255]) },
            { kind: 'mergeToCell', family: 'n', qualifier: 'm', timestamp: INT64_MAX, state: Buffer.alloc(2) },
            { kind: 'deleteFromColumn', family: 'anchor', qualifier: 'cnnsi.com', range: { start: 1, end: INT64_MIN } },
            { kind: 'deleteFromFamily', family: 'language' },
          ],
        },
        { row: 'com.cnn.\xff', mutations: [{ kind: 'deleteFromRow' }] },
      ],
    },
  },
  {
    tableId: 'metadata',
    epoch: 200,
    commitMicros: 0,
    origin: Origin.replication,
    body: { kind: 'dropRows', range: { start: 'a', end: 'b' } },
  },
  {
    tableId: 'metadata',
    epoch: 0,
    commitMicros: -1,
    origin: Origin.garbageCollection,
    body: { kind: 'dropRows', range: { start: '', end: undefined } },
  },
];

describe('the bytes of an append', () => {
  test('are those of the golden file', () => {
    const written = encode(GOLDEN_RECORDS, { previous: 3, firstSequence: 300, lowWater: 4096 });
    const golden = goldenFile('commit-log-append-v1.bin', written);
    assert.equal(written.toString('hex'), golden.toString('hex'));
    assert.deepEqual(decode(golden), {
      header: { previous: 3, count: 3, firstSequence: 300, lowWater: 4096 },
      records: numbered(GOLDEN_RECORDS, 300),
    });
  });

  test('are those of the golden file, with the position from which a replay needs the log', () => {
    const header = { previous: 3, firstSequence: 300, lowWater: 4096, replayFrom: 2 ** 40 };
    const written = encode(GOLDEN_RECORDS, header);
    const golden = goldenFile('commit-log-append-replay-v1.bin', written);
    assert.equal(written.toString('hex'), golden.toString('hex'));
    assert.deepEqual(decode(golden).header, { ...header, count: 3 });
  });

  test('optional fields of a later version are skipped, required ones are refused', () => {
    const token = Buffer.from('0205746f6b656e', 'hex');
    const withFields = (fields: string): Buffer => {
      const bytes = encode([{ ...record(setCell(Buffer.from('v'))), token: Buffer.from('token') }]);
      const at = bytes.indexOf(token);
      assert.equal(bytes[at - 1], token.length);
      const inserted = Buffer.concat([Buffer.from(fields, 'hex'), token]);
      const out = Buffer.concat([
        bytes.subarray(0, at - 1),
        Buffer.from([inserted.length]),
        inserted,
        bytes.subarray(at + token.length),
      ]);
      const lengthAt = 7;
      out.writeUInt32LE(out.readUInt32LE(lengthAt) + fields.length / 2, lengthAt);
      return out;
    };
    assert.equal(Buffer.from(decode(withFields('')).records[0]?.token ?? []).toString(), 'token');
    assert.equal(Buffer.from(decode(withFields('0403aabbcc')).records[0]?.token ?? []).toString(), 'token');
    refused(withFields('0303aabbcc'), /required field 3/);
    // fields of the append's header: the byte before the first record states their length
    const bytes = encode([record(setCell(Buffer.from('v')))]);
    assert.equal(bytes[6], 0);
    const extended = (...fields: number[]): Buffer =>
      Buffer.concat([bytes.subarray(0, 6), Buffer.from([fields.length, ...fields]), bytes.subarray(7)]);
    for (const [replayFrom, fields] of [
      [undefined, [9, 1, 9]],
      [undefined, [4, 0, 9, 1, 9]],
      [5, [4, 1, 9, 2, 1, 5]],
      [300, [2, 2, 0xac, 2, 9, 0]],
    ] as const) {
      const { header, records } = decode(extended(...fields));
      assert.deepEqual([header.replayFrom, records], [replayFrom, decode(bytes).records]);
    }
    for (const fields of [[9, 2, 9], [2, 2, 5, 5], [2, 1, 0xac, 2], [9]])
      assert.throws(() => decode(extended(...fields)), CorruptionError, fields.join());
  });

  test('a field that a reader must understand is refused if unknown', () => {
    const bytes = encode([record(setCell(Buffer.from('v')))]);
    const change = (at: number, value: number): Buffer => {
      const copy = Buffer.from(bytes);
      copy[at] = value;
      return copy;
    };
    refused(change(0, 2), /version 2, this one reads 1/);
    refused(change(1, 4), /required features 0x4/);
    refused(change(11, 3), /a record of kind 3/);
    refused(change(11 + 1 + 9 + 1 + 8, 3), /a record of origin 3/);
    const mutationAt = bytes.indexOf('row') + 4;
    assert.equal(bytes[mutationAt], 1);
    refused(change(mutationAt, 8), /a mutation of kind 8/);
  });

  test('every flipped byte and every truncation: records, a CorruptionError or a refusal, never an endless loop', () => {
    const golden = encode(GOLDEN_RECORDS, { previous: 3, firstSequence: 300, lowWater: 4096 });
    const outcome = (bytes: Buffer): string => {
      try {
        decode(bytes);
        return 'decoded';
      } catch (error) {
        assert.ok(error instanceof BigtableError, `${error}`);
        if (error.code === Code.FAILED_PRECONDITION) return 'refused';
        assert.ok(error instanceof CorruptionError, `${error}`);
        assert.deepEqual([error.file, error.offset], ['log', 4096]);
        return 'corrupt';
      }
    };
    const seen = new Set<string>();
    for (let at = 0; at < golden.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const copy = Buffer.from(golden);
        copy[at] = (copy[at] as number) ^ (1 << bit);
        seen.add(outcome(copy));
      }
      assert.equal(outcome(golden.subarray(0, at)), 'corrupt', `cut to ${at}`);
    }
    assert.deepEqual([...seen].sort(), ['corrupt', 'decoded', 'refused']);
    assert.equal(outcome(Buffer.concat([golden, Buffer.from([0])])), 'corrupt', 'bytes after the last record');
  });
});

function refused(bytes: Buffer, words: RegExp): void {
  assert.throws(
    () => decode(bytes),
    (error) => error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION && words.test(error.message),
  );
}

test('rows encoded beforehand have the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ row: keys, mutations: fc.array(mutations, { maxLength: 5 }) }), { maxLength: 4 }),
      async (rows) => {
        const plain: NewRecord = { ...record(), body: { kind: 'rows', rows } };
        const encodedRows = await encodeRows(rows, new Pacer(new ManualClock()));
        assert.deepEqual(
          encode([record(setCell(Buffer.from('a'))), { ...plain, encodedRows }, plain]),
          encode([record(setCell(Buffer.from('a'))), plain, plain]),
        );
      },
    ),
  );
});
