/** Commands on tables and families, with cbt's names and arguments. */
import type { Command } from 'commander';
import { invalidArgument, ownOf } from '../base/index.ts';
import type { GcRule } from '../model/index.ts';
import { namedArguments } from './arguments.ts';
import { parseGroups } from './group-arguments.ts';
import { formatGcRule, parseGcPolicy } from './gc-policy.ts';
import { aligned, jsonLine, tabbed } from './output.ts';
import { Session } from './target.ts';
import type { Terminal } from './terminal.ts';

const POLICIES = `
Garbage-collection policies, as cbt writes them:
  maxversions=N    only the newest N versions of a column are kept
  maxage=10d       only versions younger than that are kept; units: ms, s, m, h, d
  A or B, A || B   dropped where either rule drops it
  A and B, A && B  dropped where both rules drop it; parentheses group, "and" binds closer
  never            everything is kept`;

const CREATE_TABLE = `
  families=FAMILY[:POLICY],…   column families; without a policy maxversions=1, as cbt has it (say FAMILY:never to keep all versions)
  splits=ROW,…                 rows at which the table is split into tablets from the start
${POLICIES}

Examples:
  edubba createtable web families=contents:maxversions=3,language,anchor:never
  edubba createtable metrics "families=stats:maxage=10d||maxversions=1" splits=host-g,host-p`;

const CREATE_FAMILY = `
  <family>   FAMILY, which keeps all versions, or FAMILY:POLICY
${POLICIES}

Example: edubba createfamily web "anchor:maxage=30d and maxversions=2"`;

const SET_POLICY = `${POLICIES}

Examples:
  edubba setgcpolicy web anchor maxversions=1
  edubba setgcpolicy web contents maxage=10d or maxversions=3`;

const LIST = `
Without a table: the tables of --project and --instance (with --dir: all, those of others by their full names). With one: its families and
what garbage collection drops, as cbt shows it.`;

const SET_GROUPS = `
Families of a locality group are stored together, apart from those of other groups, and a read touches only the groups it needs. Families that no
group names lie in the group "default". The groups given replace all there were; compactions bring the files over. Works on a directory (--dir).

  GROUP=FAMILY,…        the families of the group; default= may name none
  :blocksize=BYTES      size at which a block is closed; the default is 65536
  :compression=KIND     none, lz4 (the default), zstd, zstd-dict or two-pass; zstd/9 sets the level
  :bloom=KIND           none, row (the default) or row-column
  :inmemory=true        SSTables are kept in memory once they were read

Examples:
  edubba --dir ./data setgroups web meta=language,checksum:inmemory=true default=:compression=zstd-dict
  edubba --dir ./data setgroups web default=          all families in the group default`;

const STATS = `
For each column family: cells (versions), logical bytes (row key, column, 8 for the timestamp, value), bytes on disk, bytes in memory. Versions that are hidden or
that garbage collection drops count until a compaction. Needs --dir.`;

const COMPACT = `
Afterwards each locality group of a tablet is one SSTable without deleted data and without versions that garbage collection drops. Needs --dir: a
server compacts by itself.`;

const SPLIT = `
The tablet that holds ROW is split before it; without ROW every tablet of the table near its middle. Tablets split by themselves too, when they have grown large. Needs
--dir: a server splits by itself.`;

const MERGE = `
The two tablets that meet at ROW, the first row of the second, become one. Needs --dir.`;

export function addTableCommands(program: Command, terminal: Terminal): void {
  program
    .command('createtable <table> [options...]')
    .description('create a table: [families=FAMILY[:POLICY],…] [splits=ROW,…]')
    .addHelpText('after', CREATE_TABLE)
    .action((table: string, words: string[], _: unknown, command: Command) => createTable(new Session(command, terminal), table, words));
  program
    .command('createfamily <table> <family>')
    .description('add a column family: FAMILY or FAMILY:POLICY')
    .addHelpText('after', CREATE_FAMILY)
    .action((table: string, family: string, _: unknown, command: Command) => createFamily(new Session(command, terminal), table, family));
  program
    .command('ls [table]')
    .description('list tables, or the families of a table')
    .addHelpText('after', LIST)
    .action((table: string | undefined, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return table === undefined ? listTables(session) : listFamilies(session, table);
    });
  program
    .command('deletetable <table>')
    .description('delete a table and everything in it')
    .action((table: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase((database) => database.deleteTable(session.tableName(table)));
    });
  program
    .command('setgcpolicy <table> <family> <policy...>')
    .description('replace a family’s garbage-collection policy')
    .addHelpText('after', SET_POLICY)
    .action((table: string, family: string, policy: string[], _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const rule = parseGcPolicy(policy.join(' '));
      const name = session.tableName(table);
      return session.withDatabase((database) => database.table(name).setGcRule(family, rule ?? 'never'));
    });
  addStorageCommands(program, terminal);
}

function addStorageCommands(program: Command, terminal: Terminal): void {
  program
    .command('setgroups <table> [groups...]')
    .description('replace the locality groups: GROUP=FAMILY,…[:OPTION=VALUE]…')
    .addHelpText('after', SET_GROUPS)
    .action((table: string, words: string[], _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      if (words.length === 0) {
        throw invalidArgument('give at least one group; default= puts every family into the group default');
      }
      const groups = parseGroups(words);
      return session.withDatabase((database) => database.table(session.tableName(table)).setGroups(groups));
    });
  program
    .command('stats <table>')
    .description('what each family of a table takes, on disk and in memory')
    .addHelpText('after', STATS)
    .action((table: string, _: unknown, command: Command) => printStatistics(new Session(command, terminal), table));
  program
    .command('split <table> [row]')
    .description('split a tablet before a row, or every tablet near its middle')
    .addHelpText('after', SPLIT)
    .action((table: string, row: string | undefined, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const at = row === undefined ? ([] as const) : ([row] as const);
      return session.withDatabase((database) => database.split(session.tableName(table), ...at));
    });
  program
    .command('merge <table> <row>')
    .description('make one tablet of the two that meet at a row')
    .addHelpText('after', MERGE)
    .action((table: string, row: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase((database) => database.merge(session.tableName(table), row));
    });
  program
    .command('compact [table]')
    .description('major compaction of a table, or of all, now')
    .addHelpText('after', COMPACT)
    .action((table: string | undefined, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const only = table === undefined ? ([] as const) : ([session.tableName(table)] as const);
      return session.withDatabase((database) => database.compact(...only));
    });
}

interface FamilyArgument {
  readonly name: string;
  /** As it was given; undefined where none was. */
  readonly policy: string | undefined;
}

/** cbt's help writes FAMILY:gcpolicy=POLICY, its examples FAMILY:POLICY. */
function familyArgument(word: string): FamilyArgument {
  const at = word.indexOf(':');
  const name = at < 0 ? word : word.slice(0, at);
  if (name === '') throw invalidArgument(`"${word}" names no family`);
  return { name, policy: at < 0 ? undefined : word.slice(at + 1).replace(/^gcpolicy=/, '') };
}

function familyOptions(rule: GcRule | undefined): { gcRule?: GcRule } {
  return rule === undefined ? {} : { gcRule: rule };
}

async function createTable(session: Session, table: string, words: readonly string[]): Promise<void> {
  const { families, splits } = namedArguments(words, ['families', 'splits']);
  const wanted = (families?.split(',') ?? []).map(familyArgument);
  const twice = wanted.find(({ name }, i) => wanted.findIndex((other) => other.name === name) < i);
  if (twice) throw invalidArgument(`family "${twice.name}" is given twice`);
  const settings = wanted.map(({ name, policy }): [string, { gcRule?: GcRule }] => [name, familyOptions(parseGcPolicy(policy ?? 'maxversions=1'))]);
  await session.withDatabase(
    (database) =>
      database.createTable(session.tableName(table), { families: Object.fromEntries(settings), splits: splits?.split(',') ?? [], granularity: 'millis' }),
    { create: true },
  );
  const left = wanted.filter(({ policy }) => policy === undefined).map(({ name }) => name);
  if (left.length > 0) session.terminal.complain(`${left.join(', ')}: no policy was given, so one version of a column is kept (maxversions=1)\n`);
}

async function createFamily(session: Session, table: string, family: string): Promise<void> {
  const { name, policy } = familyArgument(family);
  const options = familyOptions(policy === undefined ? undefined : parseGcPolicy(policy));
  await session.withDatabase((database) => database.table(session.tableName(table)).createFamily(name, options));
}

async function printStatistics(session: Session, table: string): Promise<void> {
  await session.withDatabase(async (database) => {
    const usages = await database.table(session.tableName(table)).statistics();
    if (session.json) return session.terminal.print(jsonLine(usages));
    const rows = usages.map(({ family, cells, logicalBytes, diskBytes, memoryBytes }) => [family, cells, logicalBytes, diskBytes, memoryBytes]);
    return session.terminal.print(aligned([['Family', 'Cells', 'Logical bytes', 'Bytes on disk', 'Bytes in memory'], ...rows]));
  });
}

async function listTables(session: Session): Promise<void> {
  const { prefix, options } = session;
  await session.withDatabase(async (database) => {
    const names = await database.listTableNames(...(options.dir === undefined ? [prefix] as const : []));
    const shown = names.map((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name)).sort();
    await session.terminal.print(session.json ? jsonLine(shown) : shown.map((name) => `${name}\n`).join(''));
  });
}

async function listFamilies(session: Session, table: string): Promise<void> {
  await session.withDatabase(async (database) => {
    const schema = await database.table(session.tableName(table)).schema();
    const families = Object.values(schema.families).sort((a, b) => (a.name < b.name ? -1 : 1));
    if (session.json)
      return session.terminal.print(
        jsonLine(
          families.map(({ name, gcRule, valueType, group }) => ({
            name,
            gcRule,
            valueType,
            group,
            tuning: ownOf(schema.groups, group ?? 'default'),
          })),
        ),
      );
    const rows = families.map(({ name, gcRule }): [string, string] => [name, formatGcRule(gcRule)]);
    await session.terminal.print(tabbed([['Family Name', 'GC Policy'], ['-----------', '---------'], ...rows]));
    if (schema.groups === undefined) return;
    const groups = [...new Set(['default', ...Object.keys(schema.groups)])].map((group): [string, string] => {
      const own = families.filter((family) => (family.group ?? 'default') === group).map(({ name }) => name);
      return [group, `${own.join(',') || '-'} ${JSON.stringify(ownOf(schema.groups, group) ?? {})}`];
    });
    await session.terminal.print(tabbed([['', ''], ['Locality Group', 'Families and tuning'], ['--------------', '-------------------'], ...groups]));
  });
}
