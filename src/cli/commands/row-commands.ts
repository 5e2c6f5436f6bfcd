/** Commands that read, write and delete rows, with cbt's names and arguments. */
import type { Command } from 'commander';
import { notFound } from '../../base/index.ts';
import { type Row, type RowFilter, RowMutation, type ScanOptions, type Table } from '../../embedded/index.ts';
import {
  APP_PROFILE,
  cellArgument,
  looksLikeMilliseconds,
  namedArguments,
  positiveNumber,
  truth,
} from '../arguments/arguments.ts';
import { aligned, counted, formatMicros, jsonLine } from '../output/output.ts';
import { visible } from '../output/quote.ts';
import { keyJson, rowJson, rowText } from '../output/row-output.ts';
import { Session } from './target.ts';
import type { Terminal } from '../output/terminal.ts';
import { ValueKinds } from '../output/value-kinds.ts';
import { tableArgument, WordsArgument } from '../arguments/words-argument.ts';
import { UsageError } from '../output/usage-error.ts';

const CELL_WORDS = ['columns', 'cells-per-column', 'keys-only', 'int64', APP_PROFILE] as const;
const READ_WORDS = ['start', 'end', 'prefix', 'regex', 'count', 'reversed', ...CELL_WORDS] as const;
const COUNT_WORDS = ['prefix', APP_PROFILE] as const;

const CELLS = `  columns=FAMILY:COLUMN,…   only these columns. FAMILY: is a whole family, a bare COLUMN is that column in
                            any family. Each is an RE2 regular expression that must match whole, as in cbt.
  cells-per-column=N        at most N versions of a column, newest first (default: all)
  keys-only=true            only the row keys
  int64=FAMILY:COLUMN,…     show the 8-byte values of these columns as numbers, such as those that increment
                            makes. FAMILY: is a whole family. Aggregates are shown as numbers anyway.`;

const SET = `
The timestamp is in microseconds since 1970 (default: now). One that looks like milliseconds is taken as
it is, with a warning. An @ without a whole number after it belongs to the value. FAMILY:=VALUE sets the
column with the empty name.

Examples:
  edubba set web com.cnn.www anchor:cnnsi.com=CNN anchor:my.look.ca=CNN.com
  edubba set web com.cnn.www contents:='<html>…'@1700000000000000`;

const READ = `
  start=ROW                 from this row on
  end=ROW                   up to this row, without it
  prefix=PREFIX             rows whose keys begin with this
  regex=REGEX               rows whose whole keys match this RE2 regular expression; alone it reads the whole table
  count=N                   at most N rows
  reversed=true             the last row first
${CELLS}

Rows come in the order of their keys' bytes. Times are in UTC. Text escapes what cannot be printed. JSON
has bytes that are not UTF-8 in a field of another name: valueBase64 in place of value, keyBase64,
qualifierBase64.

Examples:
  edubba read web prefix=com.cnn columns=contents: cells-per-column=1
  edubba read web start=com.a end=com.b count=10 reversed=true
  edubba read web columns='anchor:.*\\.com' --json
  edubba read web columns=stats: int64=stats:hits`;

const LOOKUP = `
${CELLS}

Exit status 1 and NOT_FOUND if the row is missing, or has nothing in these columns.

Example: edubba lookup web com.cnn.www columns=anchor: cells-per-column=1`;

const COUNT = `
  prefix=PREFIX   only rows whose keys begin with this

Example: edubba count web prefix=com.`;

const SAMPLE_KEYS = `
Prints keys that cut the table into parts of about equal size, for parallel work, each after the number of
bytes stored before it. The last line is the end of the table, which has no key.`;

export function addRowCommands(program: Command, terminal: Terminal): void {
  program
    .command('set')
    .description('set cells of a row')
    .addArgument(tableArgument())
    .argument('<row>', 'the key of the row')
    .argument('<cells...>', 'FAMILY:COLUMN=VALUE[@TIMESTAMP], all in one atomic step')
    .addHelpText('after', SET)
    .action((table: string, row: string, cells: string[], _: unknown, command: Command) =>
      set(new Session(command, terminal), table, row, cells),
    );
  program
    .command('read')
    .description('read rows')
    .addArgument(tableArgument())
    .addArgument(new WordsArgument(READ_WORDS, 'which rows and cells, see below'))
    .addHelpText('after', READ)
    .action((table: string, words: string[], _: unknown, command: Command) =>
      read(new Session(command, terminal), table, words),
    );
  program
    .command('lookup')
    .description('read one row')
    .addArgument(tableArgument())
    .argument('<row>', 'the key of the row')
    .addArgument(new WordsArgument(CELL_WORDS, 'which cells, see below'))
    .addHelpText('after', LOOKUP)
    .action((table: string, row: string, words: string[], _: unknown, command: Command) =>
      lookup(new Session(command, terminal), table, row, words),
    );
  program
    .command('count')
    .description('count rows')
    .addArgument(tableArgument())
    .addArgument(new WordsArgument(COUNT_WORDS, 'which rows, see below'))
    .addHelpText('after', COUNT)
    .action((table: string, words: string[], _: unknown, command: Command) =>
      count(new Session(command, terminal), table, words),
    );
  program
    .command('samplekeys')
    .description('print keys that cut a table into equal parts')
    .addArgument(tableArgument())
    .addHelpText('after', SAMPLE_KEYS)
    .action((table: string, _: unknown, command: Command) => sampleKeys(new Session(command, terminal), table));
  addDeletions(program, terminal);
}

function addDeletions(program: Command, terminal: Terminal): void {
  program
    .command('deletecolumn')
    .description('delete all cells of a column in a row')
    .addArgument(tableArgument())
    .argument('<row>', 'the key of the row')
    .argument('<family>', 'the family of the column')
    .argument('<column>', "the column, without its family; '' is the column with the empty name")
    .addArgument(new WordsArgument([APP_PROFILE], 'app-profile=ANY is taken, as cbt has it, and makes no difference'))
    .addHelpText('after', '\nExample: edubba deletecolumn web com.cnn.www anchor my.look.ca')
    .action(
      (
        table: string,
        row: string,
        family: string,
        qualifier: string,
        words: string[],
        _: unknown,
        command: Command,
      ) => {
        namedArguments(words, [APP_PROFILE]);
        const mutation = new RowMutation(row).delete({ family, qualifier });
        return new Session(command, terminal).withTable(table, (found) => found.apply(mutation));
      },
    );
  program
    .command('deleterow')
    .description('delete a row')
    .addArgument(tableArgument())
    .argument('<row>', 'the key of the row')
    .addArgument(new WordsArgument([APP_PROFILE], 'app-profile=ANY is taken, as cbt has it, and makes no difference'))
    .action((table: string, row: string, words: string[], _: unknown, command: Command) => {
      namedArguments(words, [APP_PROFILE]);
      return new Session(command, terminal).withTable(table, (found) => found.deleteRow(row));
    });
  program
    .command('deleteallrows')
    .description('delete all rows of a table; its families stay')
    .addArgument(tableArgument())
    .action((table: string, _: unknown, command: Command) =>
      new Session(command, terminal).withTable(table, (found) => found.deleteAllRows()),
    );
}

async function set(session: Session, table: string, row: string, words: readonly string[]): Promise<void> {
  const cells = words.filter((word) => !word.startsWith(`${APP_PROFILE}=`)).map(cellArgument);
  if (cells.length === 0) throw new UsageError('give at least one cell: family:column=value');
  const mutation = new RowMutation(row);
  for (const { column, value, timestamp } of cells) mutation.set(column, value, timestamp);
  await session.withTable(table, (found) => found.apply(mutation));
  const early = cells.find(({ timestamp }) => timestamp !== undefined && looksLikeMilliseconds(timestamp))?.timestamp;
  if (early === undefined) return;
  const time = formatMicros(early);
  session.warn(`@${early} is in microseconds, and so ${time}; if milliseconds were meant, write @${early}000`);
}

/** FAMILY:COLUMN, FAMILY:, :COLUMN or COLUMN, each a regular expression. */
function columnFilter(word: string): RowFilter {
  const at = word.indexOf(':');
  const family = at < 0 ? '' : word.slice(0, at);
  const qualifier = at < 0 ? word : word.slice(at + 1);
  const filters: RowFilter[] = [];
  if (family !== '') filters.push({ kind: 'familyNameRegex', regex: family });
  if (qualifier !== '') filters.push({ kind: 'columnQualifierRegex', regex: qualifier });
  if (filters.length === 0) throw new UsageError(`columns=: "${word}" names neither a family nor a column`);
  return filters.length === 1 ? filters[0]! : { kind: 'chain', filters };
}

/** The options of several commands: rows by their key, columns, number of versions. */
function cellOptions(
  given: { readonly columns?: string; readonly regex?: string; readonly 'cells-per-column'?: string },
  keysOnly: boolean,
): ScanOptions {
  const filters: RowFilter[] = [];
  if (given.regex !== undefined) filters.push({ kind: 'rowKeyRegex', regex: given.regex });
  if (given.columns !== undefined) {
    const columns = [...new Set(given.columns.split(','))].filter((word) => word !== '').map(columnFilter);
    if (columns.length === 0) throw new UsageError('columns= names no column');
    filters.push(columns.length === 1 ? columns[0]! : { kind: 'interleave', filters: columns });
  }
  if (keysOnly) filters.push({ kind: 'cellsPerRowLimit', cells: 1 }, { kind: 'stripValue' });
  const versions = given['cells-per-column'];
  return {
    versions: versions === undefined ? 'all' : positiveNumber(versions, 'cells-per-column'),
    ...(filters.length === 0 ? {} : { filter: filters.length === 1 ? filters[0]! : { kind: 'chain', filters } }),
  };
}

function show(session: Session, row: Row, kinds: ValueKinds | undefined): Promise<void> {
  const { terminal, json } = session;
  if (kinds === undefined) return terminal.print(json ? keyJson(row) : `${visible(row.key)}\n`);
  return terminal.print(json ? rowJson(row, kinds) : rowText(row, kinds));
}

/** Undefined if only keys are shown. */
async function kindsOf(table: Table, keysOnly: boolean, int64: string | undefined): Promise<ValueKinds | undefined> {
  return keysOnly ? undefined : new ValueKinds(await table.schema(), int64);
}

async function read(session: Session, table: string, words: readonly string[]): Promise<void> {
  const given = namedArguments(words, READ_WORDS);
  const keysOnly = truth(given['keys-only'], 'keys-only');
  const scan: ScanOptions = {
    ...cellOptions(given, keysOnly),
    ...(given.start === undefined ? {} : { start: given.start }),
    ...(given.end === undefined ? {} : { end: given.end }),
    ...(given.prefix === undefined ? {} : { prefix: given.prefix }),
    ...(given.count === undefined ? {} : { limit: positiveNumber(given.count, 'count') }),
    reverse: truth(given.reversed, 'reversed'),
  };
  await session.withTable(table, async (found) => {
    const kinds = await kindsOf(found, keysOnly, given.int64);
    for await (const row of found.scan(scan)) await show(session, row, kinds);
  });
}

async function lookup(session: Session, table: string, key: string, words: readonly string[]): Promise<void> {
  const given = namedArguments(words, CELL_WORDS);
  const keysOnly = truth(given['keys-only'], 'keys-only');
  await session.withTable(table, async (found) => {
    const kinds = await kindsOf(found, keysOnly, given.int64);
    const row = await found.get(key, cellOptions(given, keysOnly));
    if (row !== undefined) return show(session, row, kinds);
    const where = `row "${key}" of ${found.fullName}`;
    throw notFound(
      given.columns === undefined ? `${where} not found` : `columns ${given.columns} of ${where} have no cells`,
    );
  });
}

async function count(session: Session, table: string, words: readonly string[]): Promise<void> {
  const { prefix } = namedArguments(words, COUNT_WORDS);
  const scan: ScanOptions = {
    cellsPerRow: 1,
    filter: { kind: 'stripValue' },
    ...(prefix === undefined ? {} : { prefix }),
  };
  let rows = 0;
  const scanAll = (found: Table): Promise<void> =>
    session.withProgress(
      () => `counting ${table}: ${counted(rows, 'row')}`,
      async () => {
        for await (const _ of found.scan(scan)) rows++;
      },
    );
  await session.withTable(table, scanAll);
  await session.terminal.print(`${rows}\n`);
}

async function sampleKeys(session: Session, table: string): Promise<void> {
  const samples = await session.withTable(table, (found) => found.sampleKeys());
  if (session.json) return session.terminal.print(samples.map(jsonLine).join(''));
  const rows = samples.map(({ key, offsetBytes }) => [offsetBytes, visible(Buffer.from(key))] as const);
  await session.terminal.print(aligned(rows));
}
