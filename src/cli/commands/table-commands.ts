/** Commands on tables, with cbt's names and arguments. */
import type { Command } from 'commander';
import { BigtableError, Code, ownOf, utf8 } from '../../base/index.ts';
import type { Database } from '../../embedded/index.ts';
import type { DeletedTable, TableSchema } from '../../model/index.ts';
import { namedArguments } from '../arguments/arguments.ts';
import { FAMILY_HELP, familyArgument, familySchema, typeName } from '../arguments/family-argument.ts';
import { formatGcRule } from '../arguments/gc-policy.ts';
import { formatMicros, jsonLine, tabbed } from '../output/output.ts';
import { Session } from './target.ts';
import type { Terminal } from '../output/terminal.ts';
import { tableArgument, WordsArgument } from '../arguments/words-argument.ts';
import { UsageError } from '../output/usage-error.ts';

const TABLE_WORDS = ['families', 'splits'] as const;

const CREATE_TABLE = `
  families=FAMILY[:POLICY[:TYPE]],…   column families. Without a policy a family keeps one version of a column, as
                                      in cbt (maxversions=1); FAMILY:never keeps all.
  splits=ROW,…                        rows at which the table is split into tablets from the start
${FAMILY_HELP}

Examples:
  edubba createtable web families=contents:maxversions=3,language,anchor:never
  edubba createtable metrics "families=stats:maxage=10d||maxversions=1,hits:never:intsum" splits=host-g,host-p`;

const LIST = `
Without a table: all tables, those of project local and instance local by their ids, others by their full
names. With --project or --instance: the tables of that instance by their ids. With a table: its families,
what garbage collection drops of them, and their types. With --deleted: the deleted tables that
"edubba undeletetable" can restore, when each was deleted, and until when it is kept. A name comes twice if
two tables of it were deleted: the first is restored.`;

const DELETE_TABLE = `
A server and a cluster keep a deleted table for the time of their setting keep-deleted-ms, 7 days by default:
until then "edubba undeletetable" restores it. Its files take space meanwhile. With --now it is not kept; and
where there is no table of the name, the one that was deleted last is removed. In a directory (--dir) tables are
deleted immediately.

Examples:
  edubba --address 127.0.0.1:8086 deletetable web
  edubba --address 127.0.0.1:8086 deletetable web --now`;

const UNDELETE_TABLE = `
The table has its rows, families, policies, authorized views and schema bundles again. Of several tables of the
name the one that was deleted last is restored. There must be no table of the name.

Examples:
  edubba --address 127.0.0.1:8086 ls --deleted
  edubba --address 127.0.0.1:8086 undeletetable web`;

const WAIT = `
Returns when all writes acknowledged by now are in every cluster. Edubba has one, so it returns immediately.`;

/** Between two questions whether replication has caught up. */
const REPLICATION_POLL_MS = 1000;

export function addTableCommands(program: Command, terminal: Terminal): void {
  program
    .command('createtable')
    .description('create a table')
    .argument('<table>', 'its id, or its full name: projects/P/instances/I/tables/T')
    .addArgument(new WordsArgument(TABLE_WORDS, 'what it has, see below'))
    .addHelpText('after', CREATE_TABLE)
    .action((table: string, words: string[], _: unknown, command: Command) =>
      createTable(new Session(command, terminal), table, words),
    );
  program
    .command('ls')
    .description('list tables, or the families of a table')
    .argument('[table]', 'its id, or its full name')
    .option('--deleted', 'list deleted tables that can be restored')
    .addHelpText('after', LIST)
    .action((table: string | undefined, { deleted }: { readonly deleted?: true }, command: Command) => {
      const session = new Session(command, terminal);
      if (deleted && table !== undefined) throw new UsageError('--deleted lists tables: name none');
      if (deleted) return listDeleted(session);
      return table === undefined ? listTables(session) : listFamilies(session, table);
    });
  program
    .command('deletetable')
    .description('delete a table and everything in it')
    .addArgument(tableArgument())
    .option('--now', 'remove it immediately: it cannot be restored')
    .addHelpText('after', DELETE_TABLE)
    .action((table: string, { now }: { readonly now?: true }, command: Command) => {
      const session = new Session(command, terminal);
      const options = now ? { atOnce: true } : {};
      return session.withDatabase((database) => database.deleteTable(session.tableName(table), options));
    });
  program
    .command('undeletetable')
    .description('restore a deleted table')
    .addArgument(tableArgument())
    .addHelpText('after', UNDELETE_TABLE)
    .action((table: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase(async (database) => {
        await database.undeleteTable(session.tableName(table));
      });
    });
  program
    .command('waitforreplication')
    .description('wait until acknowledged writes are in every cluster')
    .addArgument(tableArgument())
    .addHelpText('after', WAIT)
    .action((table: string, _: unknown, command: Command) => waitForReplication(new Session(command, terminal), table));
}

async function createTable(session: Session, table: string, words: readonly string[]): Promise<void> {
  const { families, splits } = namedArguments(words, TABLE_WORDS);
  const wanted = (families?.split(',') ?? []).map(familyArgument);
  const twice = wanted.find(({ name }, i) => wanted.findIndex((other) => other.name === name) < i);
  if (twice) throw new UsageError(`family "${twice.name}" is given twice`);
  const definition = {
    name: session.tableName(table),
    families: wanted.map((family) => familySchema(family, 'maxversions=1')),
    splits: (splits?.split(',') ?? []).map(utf8),
    granularity: 'millis',
    deletionProtection: false,
  } as const;
  await session.withService((service, context) => service.createTable(context, definition), { create: true });
  const left = wanted.filter(({ policy }) => policy === undefined).map(({ name }) => name);
  if (left.length > 0)
    session.warn(`${left.join(', ')}: no policy was given, so one version of a column is kept (maxversions=1)`);
}

async function listTables(session: Session): Promise<void> {
  const { prefix, namesInstance } = session;
  await session.withDatabase(async (database) => {
    const names = namesInstance ? await database.listTableNames(prefix) : await allTables(database, prefix);
    const isOwn = (name: string): boolean => name.startsWith(prefix);
    // those of the instance first
    const shown = [
      ...names
        .filter(isOwn)
        .map((name) => name.slice(prefix.length))
        .sort(),
      ...names.filter((name) => !isOwn(name)).sort(),
    ];
    await session.terminal.print(session.json ? jsonLine(shown) : shown.map((name) => `${name}\n`).join(''));
    if (shown.length === 0 && !session.json)
      session.terminal.complain(
        namesInstance ? `no tables in ${prefix.slice(0, -'/tables/'.length)}\n` : 'no tables\n',
      );
  });
}

/** As `listTables`, with the times of each. */
async function listDeleted(session: Session): Promise<void> {
  const { prefix, namesInstance } = session;
  await session.withDatabase(async (database) => {
    const all = await database.listDeletedTables();
    const isOwn = ({ name }: DeletedTable): boolean => name.startsWith(prefix);
    const shown = [...all.filter(isOwn), ...(namesInstance ? [] : all.filter((table) => !isOwn(table)))];
    const rows = shown.map((table) => [
      isOwn(table) ? table.name.slice(prefix.length) : table.name,
      `deleted ${formatMicros(BigInt(table.deletedMicros))}`,
      `kept until ${formatMicros(BigInt(table.keptUntilMicros))}`,
    ]);
    await session.terminal.print(session.json ? jsonLine({ tables: shown }) : tabbed(rows));
    if (shown.length === 0 && !session.json) session.terminal.complain('no deleted tables\n');
  });
}

/** Servers that are not Edubba's list the tables of one instance alone. */
async function allTables(database: Database, prefix: string): Promise<readonly string[]> {
  try {
    return await database.listTableNames();
  } catch (error) {
    if (!(error instanceof BigtableError) || error.code !== Code.UNIMPLEMENTED) throw error;
    return database.listTableNames(prefix);
  }
}

async function listFamilies(session: Session, table: string): Promise<void> {
  const schema = await session.withTable(table, (found) => found.schema());
  const families = Object.values(schema.families).sort((a, b) => (a.name < b.name ? -1 : 1));
  if (session.json) {
    const documents = families.map(({ name, gcRule, valueType, group }) => ({
      name,
      gcRule,
      valueType,
      group,
      tuning: ownOf(schema.groups, group ?? 'default'),
    }));
    return session.terminal.print(jsonLine(documents));
  }
  const isTyped = families.some(({ valueType }) => typeName(valueType) !== '');
  const heads = [
    ['Family Name', 'GC Policy', 'Value Type'],
    ['-----------', '---------', '----------'],
  ];
  const rows = families.map(({ name, gcRule, valueType }) => [name, formatGcRule(gcRule), typeName(valueType)]);
  await session.terminal.print(tabbed([...heads, ...rows].map((row) => row.slice(0, isTyped ? 3 : 2))));
  if (schema.groups !== undefined) await session.terminal.print(tabbed(groupRows(schema)));
}

function groupRows({ families, groups }: TableSchema): [string, string][] {
  const rows = [...new Set(['default', ...Object.keys(groups ?? {})])].map((group): [string, string] => {
    const own = Object.values(families).filter((family) => (family.group ?? 'default') === group);
    return [
      group,
      `${
        own
          .map(({ name }) => name)
          .sort()
          .join(',') || '-'
      } ${JSON.stringify(ownOf(groups, group) ?? {})}`,
    ];
  });
  return [['', ''], ['Locality Group', 'Families and tuning'], ['--------------', '-------------------'], ...rows];
}

async function waitForReplication(session: Session, table: string): Promise<void> {
  const name = session.tableName(table);
  await session.withService(async (service, context) => {
    const token = await service.generateConsistencyToken(context, name);
    while (!(await service.checkConsistency(context, name, token))) {
      await new Promise((resolve) => setTimeout(resolve, REPLICATION_POLL_MS));
    }
  });
}
