/**
 * The cost of a row of a million columns: adding a cell to it, compared with a small row, and limited and
 * column-ranged reads inside it, with the blocks they read. Embedded, in a temporary directory.
 *
 *   npm run bench -- wide-rows [columns]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, open, RowMutation, type ScanOptions, type Table } from '../src/embedded/index.ts';

const COLUMNS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = 5;
const ADDS = 2000;

const name = (i: number): string => `q${String(i).padStart(8, '0')}`;
const median = (values: number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] as number;

async function fill(table: Table): Promise<void> {
  for (let from = 0; from < COLUMNS; from += 10_000) {
    const mutation = new RowMutation('wide');
    for (let i = from; i < Math.min(from + 10_000, COLUMNS); i++) mutation.set(`f:${name(i)}`, `value ${i}`, 1000);
    await table.apply(mutation);
  }
}

/** Microseconds an added cell, 64 writers at a time so that the disk's sync is shared. */
async function addCells(table: Table, row: (i: number) => string): Promise<number> {
  const start = performance.now();
  for (let from = 0; from < ADDS; from += 64) {
    await Promise.all(
      Array.from({ length: 64 }, (_, j) =>
        table.apply(new RowMutation(row(from + j)).set(`f:added${from + j}`, 'x', 1000)),
      ),
    );
  }
  return ((performance.now() - start) * 1000) / ADDS;
}

async function readCost(
  database: Database,
  table: Table,
  what: string,
  options: ScanOptions,
): Promise<Record<string, string | number>> {
  const times: number[] = [];
  let cells = 0;
  const before = await database.counters();
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    cells = 0;
    for await (const row of table.scan({ rows: ['wide'], ...options })) cells += row.cells.length;
    times.push(performance.now() - start);
  }
  const after = await database.counters();
  const blocks =
    ['blockCache.hits', 'blockCache.misses'].reduce((sum, name) => sum + (after[name] ?? 0) - (before[name] ?? 0), 0) /
    ROUNDS;
  return {
    read: what,
    cells,
    'ms (median)': Number(median(times).toFixed(2)),
    'blocks read': Number(blocks.toFixed(1)),
  };
}

const directory = await mkdtemp(join(tmpdir(), 'edubba-wide-'));
const database = await open(directory);
try {
  const table = await database.createTable('t', { families: { f: {}, g: {} } });
  await fill(table);
  const small: number[] = [];
  const wide: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    small.push(await addCells(table, (i) => `small${i % 100}`));
    wide.push(await addCells(table, () => 'wide'));
  }
  console.log(
    `${COLUMNS} columns; adding a cell: ${median(small).toFixed(1)} us to a small row, ${median(wide).toFixed(1)} us to the wide one: ratio ${(median(wide) / median(small)).toFixed(2)}`,
  );
  const middle = name(COLUMNS >> 1);
  const reads: readonly (readonly [string, ScanOptions])[] = [
    ['first 10 cells', { cellsPerRow: 10 }],
    ['one column in the middle', { columns: [`f:${middle}`] }],
    [
      '10 columns by range in the middle',
      { columnRange: { family: 'f', start: middle, end: name((COLUMNS >> 1) + 10) } },
    ],
    ['the other family', { families: ['g'] }],
    ['all cells', { versions: 'all' }],
  ];
  for (const where of ['memtables', 'SSTables']) {
    if (where === 'SSTables') await database.flush();
    console.log(`reads inside the wide row, in ${where}:`);
    const lines = [];
    for (const [what, options] of reads) lines.push(await readCost(database, table, what, options));
    console.table(lines);
  }
} finally {
  await database.close();
  await rm(directory, { recursive: true });
}
