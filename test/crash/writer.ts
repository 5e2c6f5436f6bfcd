/**
 * The program that is killed: writes to the database in the directory of its argument until it dies, and prints each iteration that
 * was acknowledged. What it does is told in ledger.ts. Where the database ends first (its disk is gone) it ends by itself.
 */
import { open, RowMutation, type Table } from '../../src/embedded/index.ts';
import { counterKey, deletedIn, registerKey, rowKey, TABLE, valueOf, WRITERS } from './ledger.ts';

async function write(table: Table, writer: number): Promise<never> {
  let iteration = Number((await table.getCell(registerKey(writer), 'f:a'))?.text ?? '0');
  let counter = Number((await table.getCell(counterKey(writer), 'f:n'))?.int ?? 0n);
  for (;;) {
    iteration++;
    await table.apply(new RowMutation(rowKey(writer, iteration)).set('f:v', valueOf(writer, iteration)));
    if (deletedIn(iteration) > 0) await table.deleteRow(rowKey(writer, deletedIn(iteration)));
    // an iteration that a death cut short may have counted already
    if (counter < iteration) counter = Number(await table.increment(counterKey(writer), 'f:n'));
    await table.apply(new RowMutation(registerKey(writer)).set('f:a', String(iteration)).set('f:b', String(iteration)));
    process.stdout.write(`${writer} ${iteration}\n`);
  }
}

const database = await open(process.argv[2] as string, { memtableBytes: 1 << 20 });
const table = (await database.hasTable(TABLE)) ? database.table(TABLE) : await database.createTable(TABLE, { families: { f: {} } });
await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(table, writer))).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
  process.exit(1);
});
