import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type Cell,
  CellBatchBuilder,
  type FamilyTraffic,
  type Mutation,
  mutationList,
  setCell,
  type TableSchema,
} from '../model/index.ts';
import { Traffic } from './traffic.ts';

const ID = '00000010';
const FAMILIES = ['a', 'bb', 'constructor'];

function schemaOf(names: readonly string[], id = ID): TableSchema {
  const families = Object.fromEntries(names.map((name) => [name, { name }]));
  return { name: 't', id, granularity: 'micros', deletionProtection: false, families };
}

const cell = fc.record({
  family: fc.constantFrom(...FAMILIES),
  qualifier: fc.constantFrom('', 'q', 'qualifier', ...Array.from({ length: 80 }, (_, i) => `many-${i}`)),
  value: fc.uint8Array({ maxLength: 20 }),
});
type PlainCell = Pick<Cell, 'family' | 'qualifier' | 'value'>;
const row = fc.record({ row: fc.string({ minLength: 1, maxLength: 5, unit: 'binary-ascii' }), cells: fc.array(cell) });
type Row = { readonly row: string; readonly cells: readonly PlainCell[] };
const rows: fc.Arbitrary<Row[]> = fc.array(row, { maxLength: 8 });

/** By family: the rows with cells of it, and their bytes. */
function plain(all: readonly Row[], family: string): [rows: number, bytes: number] {
  const bytes = all.flatMap((each) =>
    each.cells
      .filter((one) => one.family === family)
      .map(({ qualifier, value }) => each.row.length + family.length + qualifier.length + 8 + value.length),
  );
  const has = all.filter(({ cells }) => cells.some((one) => one.family === family)).length;
  return [has, bytes.reduce((sum, one) => sum + one, 0)];
}

/** The cells of all rows as runs of one batch. */
function runsOf(all: readonly Row[]) {
  const parts: Buffer[] = [];
  let length = 0;
  const place = (bytes: Uint8Array | string): [number, number] => {
    const part = Buffer.from(bytes as string, 'latin1');
    parts.push(part);
    length += part.length;
    return [length - part.length, length];
  };
  const places = all.map(({ cells }) =>
    cells.map(({ family, qualifier, value }) => [family, place(family), place(qualifier), place(value)] as const),
  );
  const builder = new CellBatchBuilder(Buffer.concat(parts));
  return places.map((cells) => {
    const from = builder.count;
    for (const [family, familyAt, qualifierAt, valueAt] of cells) {
      if (!builder.toColumn(...familyAt, ...qualifierAt)) builder.addColumn(family, qualifierAt[0]);
      builder.add(1000, ...valueAt);
    }
    return builder.runFrom(from);
  });
}

describe('traffic', () => {
  test('is the rows and bytes of what calls write and read, in either form of mutations', () => {
    fc.assert(
      fc.property(rows, rows, fc.boolean(), (written, read, asRuns) => {
        const schema = schemaOf(FAMILIES);
        const traffic = new Traffic(() => schema);
        const count = traffic.of(ID);
        const runs = runsOf(written);
        written.forEach((each, i) => {
          const run = runs[i]!;
          count.written(each.row, asRuns ? run : mutationList(run));
        });
        count.answered({
          fragments: read.map((each) => ({
            row: each.row,
            last: true,
            cells: each.cells.map((one) => ({ ...one, timestamp: 1000 })),
          })),
        });
        const { rowsWritten, rowsRead, families } = traffic.snapshot(ID);
        assert.deepEqual([rowsWritten, rowsRead], [written.length, read.length]);
        for (const name of FAMILIES) {
          const found = families.find(({ family }) => family === name);
          const [wroteRows, bytesIn] = plain(written, name);
          const [readRows, bytesOut] = plain(read, name);
          const wanted: FamilyTraffic = { family: name, rowsWritten: wroteRows, rowsRead: readRows, bytesIn, bytesOut };
          if (wroteRows + readRows > 0) assert.deepEqual(found, wanted);
          else assert.equal(found, undefined);
        }
      }),
    );
  });

  test('of deletions has rows and no bytes, and of aggregates their inputs', () => {
    const traffic = new Traffic(() => schemaOf(FAMILIES));
    const aggregate = { family: 'bb', qualifier: 'q', timestamp: 1000 };
    const mutations: Mutation[] = [
      { kind: 'deleteFromRow' },
      { kind: 'deleteFromFamily', family: 'a' },
      { kind: 'addToCell', ...aggregate, input: 7 },
      { kind: 'addToCell', ...aggregate, input: Buffer.alloc(3) },
      { kind: 'mergeToCell', ...aggregate, state: Buffer.alloc(20) },
      { kind: 'deleteFromColumn', family: 'a', qualifier: 'q' },
    ];
    traffic.of(ID).written('r', mutations);
    const at = 1 + 2 + 1 + 8;
    assert.deepEqual(traffic.snapshot(ID).families, [
      { family: 'a', rowsWritten: 1, rowsRead: 0, bytesIn: 0, bytesOut: 0 },
      { family: 'bb', rowsWritten: 1, rowsRead: 0, bytesIn: 3 * at + 8 + 3 + 20, bytesOut: 0 },
    ]);
  });

  test('of tables and families that are gone is forgotten: they may be any number', () => {
    let schemas = new Map<string, TableSchema>();
    const traffic = new Traffic((id) => schemas.get(id));
    const write = (id: string, family: string): void =>
      traffic.of(id).written('r', [setCell(family, 'q', 1000, Buffer.alloc(1))]);
    for (let i = 0; i < 1000; i++) {
      const id = `table ${i}`;
      schemas = new Map([[id, schemaOf(['a'], id)]]);
      write(id, 'a');
    }
    schemas = new Map([[ID, schemaOf(['a'])]]);
    assert.deepEqual(traffic.snapshot('table 1'), { reads: 0, writes: 0, rowsWritten: 0, rowsRead: 0, families: [] });
    for (let i = 0; i < 1000; i++) {
      schemas.set(ID, schemaOf([`f${i}`]));
      write(ID, `f${i}`);
    }
    schemas.set(ID, schemaOf(['f999', 'f1']));
    assert.deepEqual(
      traffic.snapshot(ID).families.map(({ family }) => family),
      ['f999'],
    );
  });
});
