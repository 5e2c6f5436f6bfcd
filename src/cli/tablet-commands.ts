/** Commands on what a table is stored in: tablets and their files. */
import type { Command } from 'commander';
import type { Database } from '../embedded/index.ts';
import { aligned, jsonLine } from './output.ts';
import { formatBytes } from './progress.ts';
import { Session } from './target.ts';
import type { Terminal } from './terminal.ts';
import { tableArgument } from './words-argument.ts';

const STATS = `
For each column family: cells (versions), logical bytes (row key, column, 8 for the timestamp, value), bytes
on disk, bytes in memory. Versions that are hidden or that garbage collection drops count until a compaction.
This works on a directory only (--dir).`;

const COMPACT = `
Afterwards each locality group of a tablet is one SSTable without deleted data and without versions that
garbage collection drops. Compactions come by themselves too. This works on a directory only (--dir).`;

const SPLIT = `
The tablet that holds ROW is split before it; without ROW every tablet of the table near its middle. Tablets
split by themselves too, when they have grown large. This works on a directory only (--dir).`;

const MERGE = `
The two tablets that meet at ROW, the first row of the second, become one. This works on a directory only
(--dir).`;

export function addTabletCommands(program: Command, terminal: Terminal): void {
  program
    .command('stats')
    .description('print what each family of a table takes')
    .addArgument(tableArgument())
    .addHelpText('after', STATS)
    .action((table: string, _: unknown, command: Command) => printStatistics(new Session(command, terminal), table));
  program
    .command('split')
    .description('split tablets of a table')
    .addArgument(tableArgument())
    .argument('[row]', 'the first row of the new tablet')
    .addHelpText('after', SPLIT)
    .action((table: string, row: string | undefined, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const at = row === undefined ? ([] as const) : ([row] as const);
      return session.withDatabase((database) => database.split(session.tableName(table), ...at));
    });
  program
    .command('merge')
    .description('make one tablet of two')
    .addArgument(tableArgument())
    .argument('<row>', 'the first row of the second')
    .addHelpText('after', MERGE)
    .action((table: string, row: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase((database) => database.merge(session.tableName(table), row));
    });
  program
    .command('compact')
    .description('run major compactions now')
    .argument('[table]', 'the table; all tables where none is named')
    .addHelpText('after', COMPACT)
    .action((table: string | undefined, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const only = table === undefined ? ([] as const) : ([session.tableName(table)] as const);
      return session.withDatabase((database) => session.withProgress(() => compactionText(database, table), () => database.compact(...only)));
    });
}

/** What compactions have done so far, where the database is open here: each is counted at its end. */
function compactionText(database: Database, table: string | undefined): string {
  const { 'tablet.compactionReadBytes': readBytes = 0, 'tablet.compactionWrittenBytes': writtenBytes = 0 } = database.counters();
  const done = readBytes === 0 ? '' : `: ${formatBytes(readBytes)} read, ${formatBytes(writtenBytes)} written`;
  return `compacting ${table ?? 'all tables'}${done}`;
}

async function printStatistics(session: Session, table: string): Promise<void> {
  const usages = await session.withTable(table, (found) => found.statistics());
  if (session.json) return session.terminal.print(jsonLine(usages));
  const rows = usages.map(({ family, cells, logicalBytes, diskBytes, memoryBytes }) => [family, cells, logicalBytes, diskBytes, memoryBytes]);
  return session.terminal.print(aligned([['Family', 'Cells', 'Logical bytes', 'Bytes on disk', 'Bytes in memory'], ...rows]));
}
