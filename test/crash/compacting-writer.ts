/**
 * The program that is killed while it compacts: writes to the database in the directory of its argument, as writer.ts
 * does, with memtables so small and groups changed so often that files are always being written, merged and deleted.
 */
import { type GroupLayout, open } from '../../src/embedded/index.ts';
import { TABLE } from './ledger.ts';
import { writeForEver } from './writing.ts';

const FLUSH_MS = 30;
const LAYOUTS: readonly GroupLayout[] = [
  {},
  { hot: { families: ['f'], compression: { kind: 'zstd' } } },
  { cold: { families: ['f'], compression: { kind: 'two-pass' }, bloomFilter: 'row-column' } },
];

const database = await open(process.argv[2] as string, {
  memtableBytes: 1 << 20,
  logLimitBytes: 1 << 20,
  compactionsAtOnce: 2,
});
const table = (await database.hasTable(TABLE))
  ? database.table(TABLE)
  : await database.createTable(TABLE, { families: { f: {} }, splits: ['row-3', 'row-8'] });

async function disturb(): Promise<never> {
  for (let round = 0; ; round++) {
    await database.flush();
    if (round % 7 === 3) await database.compact();
    if (round % 11 === 5) await table.setGroups(LAYOUTS[round % LAYOUTS.length] as GroupLayout);
    await new Promise((resolve) => setTimeout(resolve, FLUSH_MS));
  }
}

await writeForEver(table, disturb());
