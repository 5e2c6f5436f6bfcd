/** Commands on rows, with cbt's names and arguments. */
import type { Command } from 'commander';
import { invalidArgument } from '../base/index.ts';
import { RowMutation, type ScanOptions } from '../embedded/index.ts';
import { cellArgument, namedArguments, positiveNumber } from './arguments.ts';
import { printJson, printLine, printRow, rowAsJson } from './output.ts';
import { tableName, type TargetOptions, withDatabase } from './target.ts';

export function addRowCommands(program: Command): void {
  program
    .command('set <table> <row> <cells...>')
    .description('set cells of a row: FAMILY:COLUMN=VALUE[@TIMESTAMP] …')
    .action((table: string, row: string, cells: string[]) => set(program.opts(), table, row, cells));
  program
    .command('read <table> [options...]')
    .description('read rows: [start=] [end=] [prefix=] [regex=] [columns=FAMILY:COLUMN,…] [count=] [cells-per-column=] [reversed=true] [keys-only=true]')
    .action((table: string, words: string[]) => read(program.opts(), table, words));
  program
    .command('lookup <table> <row> [options...]')
    .description('read one row: [columns=FAMILY:COLUMN,…] [cells-per-column=]')
    .action((table: string, row: string, words: string[]) => lookup(program.opts(), table, row, words));
  program
    .command('count <table> [options...]')
    .description('count rows: [prefix=]')
    .action((table: string, words: string[]) => count(program.opts(), table, words));
  program
    .command('deleterow <table> <row>')
    .description('delete a row')
    .action((table: string, row: string) => withDatabase(program.opts(), (database) => database.table(tableName(program.opts(), table)).deleteRow(row)));
}

async function set(options: TargetOptions, table: string, row: string, words: readonly string[]): Promise<void> {
  const mutation = new RowMutation(row);
  for (const { column, value, timestamp } of words.map(cellArgument)) mutation.set(column, value, timestamp);
  await withDatabase(options, (database) => database.table(tableName(options, table)).apply(mutation));
}

/** columns=f:a,f:b,g: — a family with an empty column means all of it. */
function columnOptions(columns: string | undefined): ScanOptions {
  if (columns === undefined) return {};
  const words = columns.split(',');
  const families = words.filter((word) => !word.includes(':') || word.endsWith(':')).map((word) => word.replace(/:$/, ''));
  if (families.length === 0) return { columns: words };
  if (families.length < words.length) throw invalidArgument(`columns="${columns}": give either whole families or columns`);
  return { families };
}

function versionOptions(text: string | undefined): ScanOptions {
  return { versions: text === undefined ? 'all' : positiveNumber(text, 'cells-per-column') };
}

async function read(options: TargetOptions, table: string, words: readonly string[]): Promise<void> {
  const given = namedArguments(words, ['start', 'end', 'prefix', 'regex', 'columns', 'count', 'cells-per-column', 'reversed', 'keys-only']);
  const scan: ScanOptions = {
    ...columnOptions(given.columns),
    ...versionOptions(given['cells-per-column']),
    ...(given.start === undefined ? {} : { start: given.start }),
    ...(given.end === undefined ? {} : { end: given.end }),
    ...(given.prefix === undefined ? {} : { prefix: given.prefix }),
    ...(given.count === undefined ? {} : { limit: positiveNumber(given.count, 'count') }),
    ...(given.regex === undefined ? {} : { filter: { kind: 'rowKeyRegex', regex: Buffer.from(given.regex).latin1Slice() } }),
    reverse: given.reversed === 'true',
  };
  await withDatabase(options, async (database) => {
    for await (const row of database.table(tableName(options, table)).scan(scan)) {
      if (given['keys-only'] === 'true') options.json ? printJson(row.name) : printLine(row.name);
      else if (options.json) printJson(rowAsJson(row));
      else printRow(row);
    }
  });
}

async function lookup(options: TargetOptions, table: string, key: string, words: readonly string[]): Promise<void> {
  const given = namedArguments(words, ['columns', 'cells-per-column']);
  await withDatabase(options, async (database) => {
    const row = await database.table(tableName(options, table)).get(key, { ...columnOptions(given.columns), ...versionOptions(given['cells-per-column']) });
    if (options.json) printJson(row === undefined ? null : rowAsJson(row));
    else if (row !== undefined) printRow(row);
  });
}

async function count(options: TargetOptions, table: string, words: readonly string[]): Promise<void> {
  const { prefix } = namedArguments(words, ['prefix']);
  await withDatabase(options, async (database) => {
    let rows = 0;
    const scan: ScanOptions = { cellsPerRow: 1, filter: { kind: 'stripValue' }, ...(prefix === undefined ? {} : { prefix }) };
    for await (const _ of database.table(tableName(options, table)).scan(scan)) rows++;
    if (options.json) printJson(rows);
    else printLine(String(rows));
  });
}
