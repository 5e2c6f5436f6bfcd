/** Commands on rows, with cbt's names and arguments. */
import type { Command } from 'commander';
import { invalidArgument } from '../base/index.ts';
import { type Row, type RowFilter, RowMutation, type ScanOptions, type Table } from '../embedded/index.ts';
import { cellArgument, looksLikeMilliseconds, namedArguments, positiveNumber, truth } from './arguments.ts';
import { formatMicros, jsonBytes, jsonLine, rowAsJson, rowText } from './output.ts';
import { visible } from './quote.ts';
import { Session } from './target.ts';
import type { Terminal } from './terminal.ts';

/** cbt's tutorials give it; it makes no difference here. */
const APP_PROFILE = 'app-profile';

const COLUMNS = `columns=FAMILY:COLUMN,…   only these columns; FAMILY: is a whole family, a bare COLUMN stands for it in any family; all are RE2
                            regular expressions that must match whole, as in cbt
  cells-per-column=N        at most N versions of a column, newest first (default: all)`;

const SET = `
  <cells>   FAMILY:COLUMN=VALUE[@TIMESTAMP], all in one atomic mutation; the timestamp in microseconds since 1970 (default: now).
            An @ that no whole number follows belongs to the value; FAMILY:=VALUE is the column with the empty name. As in cbt the number is
            always of microseconds; one that looks like milliseconds is taken as it is, with a warning.

Examples:
  edubba set web com.cnn.www anchor:cnnsi.com=CNN anchor:my.look.ca=CNN.com
  edubba set web com.cnn.www contents:='<html>…'@1700000000000000`;

const READ = `
  start=ROW                 from this row on
  end=ROW                   up to this row, without it
  prefix=PREFIX             rows that begin so
  regex=REGEX               rows whose keys match this RE2 regular expression whole; alone it reads the whole table
  ${COLUMNS}
  count=N                   at most N rows
  reversed=true             the last row first
  keys-only=true            only the row keys

Rows come in the order of their keys' bytes. Times are shown in UTC; what cannot be printed is escaped, and --json gives exact bytes.

Examples:
  edubba read web prefix=com.cnn columns=contents: cells-per-column=1
  edubba read web start=com.a end=com.b count=10 reversed=true
  edubba read web columns='anchor:.*\\.com' --json`;

const LOOKUP = `
  ${COLUMNS}
  keys-only=true            only the row key, if the row is there

Example: edubba lookup web com.cnn.www columns=anchor: cells-per-column=1`;

const COUNT = `
  prefix=PREFIX   only rows that begin so

Example: edubba count web prefix=com.`;

export function addRowCommands(program: Command, terminal: Terminal): void {
  program
    .command('set <table> <row> <cells...>')
    .description('set cells of a row: FAMILY:COLUMN=VALUE[@TIMESTAMP] …')
    .addHelpText('after', SET)
    .action((table: string, row: string, cells: string[], _: unknown, command: Command) => set(new Session(command, terminal), table, row, cells));
  program
    .command('read <table> [options...]')
    .description('read rows: [start=] [end=] [prefix=] [regex=] [columns=] [count=] [cells-per-column=] [reversed=] [keys-only=]')
    .addHelpText('after', READ)
    .action((table: string, words: string[], _: unknown, command: Command) => read(new Session(command, terminal), table, words));
  program
    .command('lookup <table> <row> [options...]')
    .description('read one row: [columns=] [cells-per-column=] [keys-only=]')
    .addHelpText('after', LOOKUP)
    .action((table: string, row: string, words: string[], _: unknown, command: Command) => lookup(new Session(command, terminal), table, row, words));
  program
    .command('count <table> [options...]')
    .description('count rows: [prefix=]')
    .addHelpText('after', COUNT)
    .action((table: string, words: string[], _: unknown, command: Command) => count(new Session(command, terminal), table, words));
  program
    .command('deleterow <table> <row> [options...]')
    .description('delete a row')
    .action((table: string, row: string, words: string[], _: unknown, command: Command) => {
      namedArguments(words, [APP_PROFILE]);
      return onTable(new Session(command, terminal), table, (found) => found.deleteRow(row));
    });
  program
    .command('deleteallrows <table>')
    .description('delete all rows of a table; its families stay')
    .action((table: string, _: unknown, command: Command) =>
      onTable(new Session(command, terminal), table, (found) => found.deleteAllRows()));
}

function onTable<T>(session: Session, table: string, work: (table: Table) => Promise<T>): Promise<T> {
  return session.withDatabase((database) => work(database.table(session.tableName(table))));
}

async function set(session: Session, table: string, row: string, words: readonly string[]): Promise<void> {
  const cells = words.filter((word) => !word.startsWith(`${APP_PROFILE}=`)).map(cellArgument);
  if (cells.length === 0) throw invalidArgument('give at least one cell: family:column=value');
  const mutation = new RowMutation(row);
  for (const { column, value, timestamp } of cells) mutation.set(column, value, timestamp);
  await onTable(session, table, (found) => found.apply(mutation));
  const early = cells.find(({ timestamp }) => timestamp !== undefined && looksLikeMilliseconds(timestamp))?.timestamp;
  if (early === undefined) return;
  const time = formatMicros(early);
  session.terminal.complain(`@${early} is of microseconds, and so ${time}; as milliseconds it is @${early}000\n`);
}

/** FAMILY:COLUMN, FAMILY:, :COLUMN or COLUMN, each a regular expression. */
function columnFilter(word: string): RowFilter {
  const at = word.indexOf(':');
  const family = at < 0 ? '' : word.slice(0, at);
  const qualifier = at < 0 ? word : word.slice(at + 1);
  const filters: RowFilter[] = [];
  if (family !== '') filters.push({ kind: 'familyNameRegex', regex: family });
  if (qualifier !== '') filters.push({ kind: 'columnQualifierRegex', regex: qualifier });
  if (filters.length === 0) throw invalidArgument(`columns=: "${word}" names neither a family nor a column`);
  return filters.length === 1 ? (filters[0] as RowFilter) : { kind: 'chain', filters };
}

/** What several commands take: which rows by their key, which columns, how many versions. */
function cellOptions(given: { readonly columns?: string; readonly regex?: string; readonly 'cells-per-column'?: string }, keysOnly: boolean): ScanOptions {
  const filters: RowFilter[] = [];
  if (given.regex !== undefined) filters.push({ kind: 'rowKeyRegex', regex: given.regex });
  if (given.columns !== undefined) {
    const columns = [...new Set(given.columns.split(','))].filter((word) => word !== '').map(columnFilter);
    if (columns.length === 0) throw invalidArgument('columns= names no column');
    filters.push(columns.length === 1 ? (columns[0] as RowFilter) : { kind: 'interleave', filters: columns });
  }
  if (keysOnly) filters.push({ kind: 'cellsPerRowLimit', cells: 1 }, { kind: 'stripValue' });
  const versions = given['cells-per-column'];
  return {
    versions: versions === undefined ? 'all' : positiveNumber(versions, 'cells-per-column'),
    ...(filters.length === 0 ? {} : { filter: filters.length === 1 ? (filters[0] as RowFilter) : { kind: 'chain', filters } }),
  };
}

function show(session: Session, row: Row, keysOnly: boolean): Promise<void> {
  const { terminal, json } = session;
  if (keysOnly) return terminal.print(json ? jsonLine(jsonBytes(row.key)) : `${visible(row.key)}\n`);
  return terminal.print(json ? jsonLine(rowAsJson(row)) : rowText(row));
}

async function read(session: Session, table: string, words: readonly string[]): Promise<void> {
  const given = namedArguments(words, ['start', 'end', 'prefix', 'regex', 'columns', 'count', 'cells-per-column', 'reversed', 'keys-only', APP_PROFILE]);
  const keysOnly = truth(given['keys-only'], 'keys-only');
  const scan: ScanOptions = {
    ...cellOptions(given, keysOnly),
    ...(given.start === undefined ? {} : { start: given.start }),
    ...(given.end === undefined ? {} : { end: given.end }),
    ...(given.prefix === undefined ? {} : { prefix: given.prefix }),
    ...(given.count === undefined ? {} : { limit: positiveNumber(given.count, 'count') }),
    reverse: truth(given.reversed, 'reversed'),
  };
  await onTable(session, table, async (found) => {
    for await (const row of found.scan(scan)) await show(session, row, keysOnly);
  });
}

async function lookup(session: Session, table: string, key: string, words: readonly string[]): Promise<void> {
  const given = namedArguments(words, ['columns', 'cells-per-column', 'keys-only', APP_PROFILE]);
  const keysOnly = truth(given['keys-only'], 'keys-only');
  const row = await onTable(session, table, (found) => found.get(key, cellOptions(given, keysOnly)));
  if (row !== undefined) return show(session, row, keysOnly);
  if (session.json) await session.terminal.print(jsonLine(null));
  else session.terminal.complain(`nothing is there in row "${key}"\n`);
}

async function count(session: Session, table: string, words: readonly string[]): Promise<void> {
  const { prefix } = namedArguments(words, ['prefix', APP_PROFILE]);
  const scan: ScanOptions = { cellsPerRow: 1, filter: { kind: 'stripValue' }, ...(prefix === undefined ? {} : { prefix }) };
  const rows = await onTable(session, table, async (found) => {
    let seen = 0;
    for await (const _ of found.scan(scan)) seen++;
    return seen;
  });
  await session.terminal.print(`${rows}\n`);
}
