/**
 * The program that is killed: writes to the database in the directory of its argument, with as many tablet servers as
 * its second one says, until it dies, and prints each iteration that was acknowledged. What it does is told in
 * ledger.ts. Where the database ends first (its disk is gone) it ends by itself.
 */
import { moduleUrl, openThreadedDatabase } from '../../src/boot/index.ts';
import { type Database, open, overService } from '../../src/embedded/index.ts';
import { TABLE } from './ledger.ts';
import { writeForEver } from './writing.ts';

/** With the tablet servers in threads, each dying with this process. */
async function openInThreads(count: number): Promise<Database> {
  const module = moduleUrl('./mortal-thread.ts', import.meta.url);
  const { service, env, close } = await openThreadedDatabase({
    directory,
    tabletServers: count,
    module,
    settings: { memtableBytes: count << 20 },
  });
  return overService(service, env, close);
}

const [directory = '', tabletServers = '1'] = process.argv.slice(2);
const settings = { memtableBytes: 1 << 20 };
const database = tabletServers === '1' ? await open(directory, settings) : await openInThreads(Number(tabletServers));
await writeForEver(
  (await database.hasTable(TABLE))
    ? database.table(TABLE)
    : await database.createTable(TABLE, { families: { f: {} }, splits: ['register', 'row-1', 'row-5'] }),
);
