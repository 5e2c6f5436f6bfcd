/** Commands on tables and families, with cbt's names and arguments. */
import type { Command } from 'commander';
import { invalidArgument } from '../base/index.ts';
import { namedArguments } from './arguments.ts';
import { formatGcRule, parseGcPolicy } from './gc-policy.ts';
import { printJson, printLine } from './output.ts';
import { tableName, tablePrefix, type TargetOptions, withDatabase } from './target.ts';

export function addTableCommands(program: Command): void {
  program
    .command('createtable <table> [options...]')
    .description('create a table: [families=FAMILY[:GCPOLICY],…] [splits=ROW,…]')
    .action((table: string, words: string[]) => createTable(program.opts(), table, words));
  program
    .command('createfamily <table> <family>')
    .description('add a family, FAMILY or FAMILY:GCPOLICY')
    .action((table: string, family: string) => createFamily(program.opts(), table, family));
  program
    .command('ls [table]')
    .description('list tables, or the families of a table')
    .action((table: string | undefined) => list(program.opts(), table));
  program
    .command('deletetable <table>')
    .description('delete a table and everything in it')
    .action((table: string) => withDatabase(program.opts(), (database) => database.deleteTable(tableName(program.opts(), table))));
  program
    .command('setgcpolicy <table> <family> <policy...>')
    .description('replace a family’s garbage-collection policy: maxversions=N, maxage=10d, joined by and/or, or never')
    .action((table: string, family: string, policy: string[]) =>
      withDatabase(program.opts(), (database) => database.table(tableName(program.opts(), table)).setGcRule(family, parseGcPolicy(policy.join(' ')))),
    );
}

function familyArgument(word: string): { name: string; options: { gcRule?: NonNullable<ReturnType<typeof parseGcPolicy>> } } {
  const at = word.indexOf(':');
  const name = at < 0 ? word : word.slice(0, at);
  if (name === '') throw invalidArgument(`"${word}" names no family`);
  const gcRule = at < 0 ? undefined : parseGcPolicy(word.slice(at + 1));
  return { name, options: gcRule === undefined ? {} : { gcRule } };
}

async function createTable(options: TargetOptions, table: string, words: readonly string[]): Promise<void> {
  const { families, splits } = namedArguments(words, ['families', 'splits']);
  const wanted = (families?.split(',') ?? []).map(familyArgument);
  await withDatabase(options, (database) =>
    database.createTable(tableName(options, table), {
      families: Object.fromEntries(wanted.map(({ name, options: settings }) => [name, settings])),
      splits: splits?.split(',') ?? [],
      granularity: 'millis',
    }),
  );
}

async function createFamily(options: TargetOptions, table: string, family: string): Promise<void> {
  const { name, options: settings } = familyArgument(family);
  await withDatabase(options, (database) => database.table(tableName(options, table)).createFamily(name, settings));
}

async function list(options: TargetOptions, table: string | undefined): Promise<void> {
  await withDatabase(options, async (database) => {
    if (table === undefined) {
      const prefix = tablePrefix(options);
      const names = (await database.listTableNames(options.dir === undefined ? prefix : '')).map((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name));
      if (options.json) printJson(names);
      else for (const name of names) printLine(name);
      return;
    }
    const schema = await database.table(tableName(options, table)).schema();
    const families = Object.values(schema.families);
    if (options.json) return printJson(families);
    const width = Math.max(11, ...families.map(({ name }) => name.length)) + 2;
    printLine(`${'Family Name'.padEnd(width)}GC Policy`);
    printLine(`${'-----------'.padEnd(width)}---------`);
    for (const { name, gcRule } of families) printLine(`${name.padEnd(width)}${formatGcRule(gcRule)}`);
  });
}
