/**
 * The writing that is killed; what is written is told in ledger.ts. Where the database ends first (its disk is gone)
 * the process ends by itself.
 */
import { RowMutation, type Table } from '../../src/embedded/index.ts';
import { counterKey, deletedIn, registerKey, rowKey, valueOf, WRITERS } from './ledger.ts';

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

/** `others`: work that goes on at the same time. */
export async function writeForEver(table: Table, ...others: Promise<never>[]): Promise<void> {
  await Promise.all([...Array.from({ length: WRITERS }, (_, writer) => write(table, writer)), ...others]).catch(
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
      process.exit(1);
    },
  );
}
