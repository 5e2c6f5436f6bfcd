import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, int64, toBigInt } from '../../base/index.ts';
import type { Cell, RowFragment } from '../../model/index.ts';
import { ChunkReader } from '../client/chunk-reader.ts';
import { cell, rowKey } from '../convert/fixtures.ts';
import { type ReadRowsResponse, ReadRowsResponseSchema } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { ChunkWriter } from './chunk-writer.ts';

/** A copy: the next writer overwrites a short message. */
function joined(message: Buffer | readonly Buffer[] | undefined): Buffer | undefined {
  if (message === undefined) return undefined;
  return Buffer.isBuffer(message) ? Buffer.from(message) : Buffer.concat(message);
}

/** The messages that a server would send for the fragments. */
function messages(fragments: readonly RowFragment[], writer = new ChunkWriter('parted')): Buffer[] {
  const out: Buffer[] = [];
  for (const fragment of fragments) {
    writer.begin(fragment);
    for (let done = false; !done; ) {
      done = writer.advance();
      if (writer.full) out.push(joined(writer.take()) as Buffer);
    }
  }
  const rest = joined(writer.take());
  if (rest) out.push(rest);
  return out;
}

const decode = (bytes: Uint8Array): ReadRowsResponse => fromBinary(ReadRowsResponseSchema, bytes);

function readBack(sent: readonly Buffer[]): RowFragment[] {
  const reader = new ChunkReader();
  const rows = sent.flatMap((bytes) => reader.rows(decode(bytes)));
  reader.end();
  return rows;
}

function plain(rows: readonly RowFragment[]) {
  return rows.map(({ row, cells }) => ({
    row,
    cells: cells.map((each) => ({ ...each, value: Buffer.from(each.value).toString('hex') })),
  }));
}

function whole(row: string, cells: readonly Cell[]): RowFragment {
  return { row, cells, last: true };
}

const at = (qualifier: string, value: Uint8Array, timestamp: Cell['timestamp'] = 1000): Cell => ({
  family: 'cf',
  qualifier,
  timestamp,
  value,
});

/** Rows whose cells were cut into fragments at any positions, the last perhaps empty. */
const rows = fc.uniqueArray(
  fc.record({
    row: rowKey,
    cells: fc.array(cell, { minLength: 1, maxLength: 12 }),
    cuts: fc.array(fc.nat({ max: 12 }), { maxLength: 3 }),
  }),
  { selector: (each) => each.row, maxLength: 6 },
);

describe('rows as cell chunks', () => {
  test('come back as they were, however they were cut into fragments', () => {
    fc.assert(
      fc.property(rows, fc.constantFrom('parted', 'keyed', 'whole'), (given, framing) => {
        const fragments = given.flatMap(({ row, cells, cuts }) => {
          const positions = [0, ...cuts.map((cut) => Math.min(cut, cells.length)).sort((a, b) => a - b), cells.length];
          return positions
            .slice(1)
            .map((end, i) => ({ row, cells: cells.slice(positions[i], end), last: i === positions.length - 2 }));
        });
        const writer = new ChunkWriter(framing);
        const back = readBack(messages(fragments, writer));
        assert.deepEqual(plain(back), plain(given.map(({ row, cells }) => whole(row, cells))));
        assert.equal(writer.rows, given.length);
        assert.equal(
          writer.cells,
          given.reduce((sum, { cells }) => sum + cells.length, 0),
        );
        assert.equal(writer.insideRow, false);
      }),
      { numRuns: 300 },
    );
  });

  test('have row, family and qualifier only where they change', () => {
    const cells: Cell[] = [
      at('a', Buffer.from('1'), 2000),
      at('a', Buffer.from('2')),
      at('', Buffer.from('3')),
      { ...at('', Buffer.from('4')), family: 'g' },
    ];
    const chunks = messages([whole('r', cells), whole('s', cells.slice(3))]).flatMap((bytes) => decode(bytes).chunks);
    assert.deepEqual(
      chunks.map((chunk) => chunk.rowKey.length > 0),
      [true, false, false, false, true],
    );
    assert.deepEqual(
      chunks.map((chunk) => chunk.familyName),
      ['cf', undefined, undefined, 'g', 'g'],
    );
    assert.deepEqual(
      chunks.map((chunk) => chunk.qualifier && Buffer.from(chunk.qualifier).toString()),
      ['a', undefined, '', '', ''],
    );
    assert.deepEqual(
      chunks.map((chunk) => chunk.rowStatus.case),
      [undefined, undefined, undefined, 'commitRow', 'commitRow'],
    );
    assert.ok(chunks.every((chunk) => chunk.valueSize === 0));
  });

  test('carry every int64 as timestamp', () => {
    for (const timestamp of [
      0,
      1,
      -1,
      127,
      128,
      2 ** 53 - 1,
      -(2 ** 53 - 1),
      int64(2n ** 53n),
      int64(2n ** 53n + 1n),
      int64(INT64_MIN),
      int64(INT64_MAX),
    ]) {
      const [bytes] = messages([whole('r', [at('q', Buffer.alloc(0), timestamp)])]);
      assert.equal(decode(bytes as Buffer).chunks[0]?.timestampMicros, toBigInt(timestamp));
    }
  });

  test('a row without cells sends nothing; a row that ends empty commits what came before', () => {
    const writer = new ChunkWriter('parted');
    assert.deepEqual(messages([{ row: 'r', cells: [], last: true }], writer), []);
    assert.equal(writer.rows, 0);
    const sent = messages(
      [
        { row: 'r', cells: [at('q', Buffer.from('v'))], last: false },
        { row: 'r', cells: [], last: true },
      ],
      writer,
    );
    assert.deepEqual(plain(readBack(sent)), plain([whole('r', [at('q', Buffer.from('v'))])]));
    assert.equal(writer.rows, 1);
  });

  test('a row that begins inside another is a fault', () => {
    const writer = new ChunkWriter('parted');
    messages([{ row: 'r', cells: [at('q', Buffer.from('v'))], last: false }], writer);
    assert.ok(writer.insideRow);
    assert.throws(() => writer.begin(whole('s', [])), { code: 13 });
  });
});

describe('sizes', () => {
  test('a fragment of many cells is written in stretches, so that others have their turns', () => {
    const writer = new ChunkWriter('parted');
    const cells = Array.from({ length: 1000 }, (_, i) => at(`q${i}`, Buffer.from('v')));
    writer.begin({ row: 'r', cells, last: true });
    const written: number[] = [];
    for (let done = false; !done; ) {
      done = writer.advance();
      assert.equal(writer.full, false);
      written.push(writer.cells);
    }
    assert.deepEqual(written, [256, 512, 768, 1000]);
    assert.deepEqual(new ChunkReader().rows(decode(joined(writer.take()) as Buffer)), [
      { row: 'r', cells, last: true },
    ]);
  });

  test('a row of 100 MB in cells of 5 MB comes in messages below 1 MiB', () => {
    const big = Buffer.alloc(5_000_000, 7);
    const reader = new ChunkReader();
    const writer = new ChunkWriter('parted');
    let largest = 0;
    let total = 0;
    let done: RowFragment[] = [];
    const take = (): void => {
      const bytes = joined(writer.take());
      if (!bytes) return;
      largest = Math.max(largest, bytes.length);
      total += bytes.length;
      done = done.concat(reader.rows(decode(bytes)));
    };
    for (let i = 0; i < 20; i++) {
      writer.begin({ row: 'k'.repeat(60_000), cells: [at(`${'q'.repeat(16_000)}${i}`, big)], last: i === 19 });
      while (!writer.advance()) take();
      if (writer.full) take();
    }
    take();
    assert.ok(largest < 1024 * 1024, `${largest} bytes`);
    assert.ok(total > 100_000_000);
    assert.equal(done.length, 1);
    assert.equal(done[0]?.cells.length, 20);
    assert.ok(done[0]?.cells.every((each) => Buffer.compare(each.value, big) === 0));
  });

  test('values around the size at which they are cut', () => {
    const limit = 384 * 1024;
    for (const size of [limit - 1, limit, limit + 1, 2 * limit - 1, 2 * limit, 2 * limit + 1]) {
      const value = Buffer.alloc(size, size % 251);
      const sent = messages([whole('r', [at('q', value), at('r', Buffer.from('small'))])]);
      const chunks = sent.flatMap((bytes) => decode(bytes).chunks);
      assert.equal(chunks.length, Math.ceil(size / limit) + 1);
      for (const [i, chunk] of chunks.entries()) assert.equal(chunk.valueSize, i < chunks.length - 2 ? size : 0);
      assert.deepEqual(plain(readBack(sent)), plain([whole('r', [at('q', value), at('r', Buffer.from('small'))])]));
    }
  });

  test('a message that begins inside a row says its key again, one that begins inside a value does not', () => {
    const chunks = messages([
      whole('r', [
        at('a', Buffer.alloc(1_000_000)),
        at('b', Buffer.alloc(320_000)),
        at('c', Buffer.alloc(300_000)),
        at('d', Buffer.alloc(10)),
      ]),
    ]).map((bytes) => decode(bytes).chunks);
    assert.deepEqual(
      chunks.map((each) => each.map((chunk) => [chunk.rowKey.length, chunk.familyName ?? '', chunk.valueSize])),
      [
        [
          [1, 'cf', 1_000_000],
          [0, '', 1_000_000],
        ],
        [
          [0, '', 0],
          [0, '', 0],
        ],
        [
          [1, '', 0],
          [0, '', 0],
        ],
      ],
    );
  });

  test('whole rows are never parted and their values never cut', () => {
    const writer = new ChunkWriter('whole');
    const big = whole('big', [
      at('a', Buffer.alloc(5_000_000, 1)),
      at('b', Buffer.alloc(10)),
      at('c', Buffer.alloc(2_000_000, 2)),
    ]);
    const sent = messages(
      [
        whole('a', [at('q', Buffer.alloc(300_000))]),
        big,
        { ...big, row: 'cut', last: false },
        { row: 'cut', cells: [], last: true },
      ],
      writer,
    );
    assert.equal(sent.length, 3);
    for (const bytes of sent) {
      const { chunks } = decode(bytes);
      assert.equal(chunks.at(-1)?.rowStatus.case, 'commitRow');
      assert.ok((chunks[0]?.rowKey.length ?? 0) > 0 && chunks.every((chunk) => chunk.valueSize === 0));
    }
    assert.deepEqual(
      plain(readBack(sent)),
      plain([whole('a', [at('q', Buffer.alloc(300_000))]), big, { ...big, row: 'cut' }]),
    );
  });

  test('small rows are packed into messages of about 64 KB', () => {
    const value = Buffer.alloc(1000, 1);
    const sent = messages(
      Array.from({ length: 1000 }, (_, i) => whole(`row${String(i).padStart(6, '0')}`, [at('q', value)])),
    );
    assert.equal(sent.length, 16);
    for (const bytes of sent.slice(0, -1)) assert.ok(bytes.length >= 64 * 1024 && bytes.length < 66 * 1024);
    assert.equal(readBack(sent).length, 1000);
  });
});

describe('chunks of any server', () => {
  type Chunks = NonNullable<MessageInitShape<typeof ReadRowsResponseSchema>['chunks']>;
  const read = (chunks: Chunks): RowFragment[] => {
    const reader = new ChunkReader();
    const out = reader.rows(create(ReadRowsResponseSchema, { chunks }));
    reader.end();
    return out;
  };
  const bytes = (text: string) => Buffer.from(text);
  const first = { rowKey: bytes('r'), familyName: 'f', qualifier: bytes('q'), value: bytes('v') };
  const commit = { rowStatus: { case: 'commitRow', value: true } } as const;
  const reset = { rowStatus: { case: 'resetRow', value: true } } as const;

  test('a reset discards the row', () => {
    assert.deepEqual(
      plain(read([first, reset, { ...first, rowKey: bytes('s'), ...commit }])).map((row) => row.row),
      ['s'],
    );
  });

  test('keys may be repeated in every chunk, as the emulator does', () => {
    assert.equal(read([first, { ...first, ...commit }])[0]?.cells.length, 2);
  });

  const broken: readonly [string, Chunks][] = [
    ['a row without key', [{ ...first, rowKey: bytes('') }]],
    ['a row inside another', [first, { ...first, rowKey: bytes('s') }]],
    ['a family without qualifier', [{ rowKey: bytes('r'), familyName: 'f', value: bytes('v') }]],
    ['a cell without column', [{ rowKey: bytes('r'), value: bytes('v'), ...commit }]],
    ['a commit inside a cell', [{ ...first, valueSize: 9, ...commit }]],
    ['an end inside a row', [first]],
  ];
  for (const [name, chunks] of broken)
    test(`${name} is INTERNAL`, () => assert.throws(() => read(chunks), { code: 13 }));

  test('a large value is a part of its message, not a copy; small ones around it keep their order', () => {
    const large = Buffer.alloc(20_000, 7);
    const cells = [large, Buffer.from('small'), large].map((value, i) => ({
      family: 'f',
      qualifier: `q${i}`,
      timestamp: i,
      value,
    }));
    const writer = new ChunkWriter('parted');
    writer.begin({ row: 'r', cells, last: true });
    assert.ok(writer.advance());
    const message = writer.take();
    assert.ok(Array.isArray(message));
    assert.equal(message.filter((part) => part === large).length, 2);
    assert.deepEqual(plain(readBack([Buffer.concat(message)])), plain([{ row: 'r', cells, last: true }]));
  });

  test('short messages take turns in one buffer; writers at work never share it, and longer messages do not use it', () => {
    const rowOf = (key: string, sizeBytes: number): RowFragment => ({
      row: key,
      last: true,
      cells: [{ family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.alloc(sizeBytes, key) }],
    });
    fc.assert(
      fc.property(
        fc.array(fc.record({ turn: fc.nat(2), sizeBytes: fc.constantFrom(10, 1000, 3000, 5000, 20_000) }), {
          maxLength: 30,
        }),
        (steps) => {
          const open = new Map<number, { readonly writer: ChunkWriter; readonly rows: RowFragment[] }>();
          const kept: [Buffer | readonly Buffer[], Buffer][] = [];
          steps.forEach(({ turn, sizeBytes }, i) => {
            const { writer, rows } = open.get(turn) ?? { writer: new ChunkWriter('whole'), rows: [] };
            open.set(turn, { writer, rows });
            const fragment = rowOf(`r${i}`, sizeBytes);
            writer.begin(fragment);
            assert.ok(writer.advance());
            rows.push(fragment);
            if (rows.length < 1 + turn) return;
            open.delete(turn);
            const { isShort } = writer;
            const message = writer.take() as Buffer | readonly Buffer[];
            const copy = joined(message) as Buffer;
            assert.deepEqual(plain(readBack([copy])), plain(rows));
            if (!isShort) kept.push([message, copy]);
          });
          for (const [message, copy] of kept) assert.ok(joined(message)?.equals(copy));
        },
      ),
    );
  });
});
