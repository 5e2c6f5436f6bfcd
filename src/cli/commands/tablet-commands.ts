/** Commands on what a table is stored in: tablets and their files. */
import { jsonField } from '../../base/index.ts';
import type { Command } from 'commander';
import type { Database } from '../../embedded/index.ts';
import { aligned, counted, formatMicros, jsonLine } from '../output/output.ts';
import { quoted } from '../output/quote.ts';
import { Session } from './target.ts';
import type { Terminal } from '../output/terminal.ts';
import { tableArgument } from '../arguments/words-argument.ts';

const STATS = `
For each column family: cells (versions), logical bytes (row key, column, 8 for the timestamp, value), bytes
on disk, bytes in memory. Versions that are hidden or that garbage collection drops count until a compaction.`;

const TABLETS = `
For each tablet, in the order of the rows: its first row, the first row after it, the tablet server that
serves it, its files, their bytes, and the bytes in memory that are in no file yet.`;

const EVENTS = `
For each tablet, in the order of the rows: its last 20 events, the newest first. It is \`assigned\` to a tablet
server, \`released\` by it, \`split\`, \`merged\`; \`compacted\` says that files of it were written or merged. Each
assignment and release has a new epoch. After the death of a server the tablet is assigned again, and compacted
once what was only in the server's log is in files.`;

const COMPACT = `
Afterwards each locality group of a tablet is one SSTable without deleted data and without versions that
garbage collection drops. Compactions come by themselves too. On a server the work goes on in the server, and
ends with this command: what has begun by then is finished.`;

const FLUSH = `
Afterwards the next start has nothing to replay. What was acknowledged is on disk without it.`;

const SPLIT = `
The tablet that holds ROW is split before it; without ROW every tablet of the table near its middle. Tablets
split by themselves too, when they have grown large.`;

const MERGE = `
The two tablets that meet at ROW, the first row of the second, become one.`;

const COUNTERS = `
Counts since the server was started, or since this command opened the directory: blocks read, cache hits,
bytes logged, compactions. The names may change between versions.`;

export function addTabletCommands(program: Command, terminal: Terminal): void {
  program
    .command('stats')
    .description('print what each family of a table takes')
    .addArgument(tableArgument())
    .addHelpText('after', STATS)
    .action((table: string, _: unknown, command: Command) => printStatistics(new Session(command, terminal), table));
  program
    .command('tablets')
    .description('print the tablets of a table')
    .addArgument(tableArgument())
    .addHelpText('after', TABLETS)
    .action((table: string, _: unknown, command: Command) => printTablets(new Session(command, terminal), table));
  program
    .command('tablet')
    .description('commands on single tablets')
    .command('events')
    .description('print what has happened to the tablets of a table')
    .addArgument(tableArgument())
    .addHelpText('after', EVENTS)
    .action((table: string, _: unknown, command: Command) => printEvents(new Session(command, terminal), table));
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
      return session.withDatabase((database) => compact(session, database, only));
    });
  program
    .command('flush')
    .description('write what is in memory to files')
    .addHelpText('after', FLUSH)
    .action((_: unknown, command: Command) =>
      new Session(command, terminal).withDatabase((database) => database.flush()),
    );
  program
    .command('counters')
    .description('print what was counted since the start')
    .addHelpText('after', COUNTERS)
    .action((_: unknown, command: Command) => printCounters(new Session(command, terminal)));
}

async function compact(
  session: Session,
  database: Database,
  table: readonly [] | readonly [table: string],
): Promise<void> {
  let done = '';
  const onProgress = ({
    doneTablets,
    totalTablets,
  }: {
    readonly doneTablets: number;
    readonly totalTablets: number;
  }): void => {
    done = `: ${doneTablets} of ${counted(totalTablets, 'tablet')}`;
  };
  await session.withProgress(
    () => `compacting ${table[0] ?? 'all tables'}${done}`,
    () => database.compact(...table, { onProgress }),
  );
}

async function printTablets(session: Session, table: string): Promise<void> {
  const tablets = await session.withTable(table, (found) => found.tablets());
  if (session.json) {
    const lines = tablets.map(({ start, end, ...facts }) =>
      jsonLine({ ...jsonField('start', start), ...(end && jsonField('end', end)), ...facts }),
    );
    return session.terminal.print(lines.join(''));
  }
  const rows = tablets.map(({ start, end, server, files, fileBytes, memoryBytes }) => [
    start.length === 0 ? '-' : quoted(start),
    end === undefined ? '-' : quoted(end),
    server,
    files,
    fileBytes,
    memoryBytes,
  ]);
  return session.terminal.print(
    aligned([['First row', 'Up to', 'Server', 'Files', 'Bytes in files', 'Bytes in memory'], ...rows]),
  );
}

async function printEvents(session: Session, table: string): Promise<void> {
  const tablets = await session.withTable(table, (found) => found.tabletEvents());
  if (session.json) {
    const lines = tablets.map(({ start, end, events }) =>
      jsonLine({ ...jsonField('start', start), ...(end && jsonField('end', end)), events }),
    );
    return session.terminal.print(lines.join(''));
  }
  const rows = tablets.flatMap(({ start, events }) =>
    events.map(({ kind, atMicros, epoch, server }) => [
      start.length === 0 ? '-' : quoted(start),
      formatMicros(BigInt(atMicros)),
      kind,
      epoch,
      server ?? '-',
    ]),
  );
  return session.terminal.print(aligned([['First row', 'Time', 'Event', 'Epoch', 'Server'], ...rows]));
}

async function printCounters(session: Session): Promise<void> {
  const counters = Object.entries(await session.withDatabase((database) => database.counters())).sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  await session.terminal.print(session.json ? jsonLine(Object.fromEntries(counters)) : aligned(counters));
}

async function printStatistics(session: Session, table: string): Promise<void> {
  const usages = await session.withTable(table, (found) => found.statistics());
  if (session.json) return session.terminal.print(jsonLine(usages));
  const rows = usages.map(({ family, cells, logicalBytes, diskBytes, memoryBytes }) => [
    family,
    cells,
    logicalBytes,
    diskBytes,
    memoryBytes,
  ]);
  return session.terminal.print(
    aligned([['Family', 'Cells', 'Logical bytes', 'Bytes on disk', 'Bytes in memory'], ...rows]),
  );
}
