/** Commands that add to cells: to aggregates, and to the 8-byte integers of plain columns. */
import type { Command } from 'commander';
import { ownOf } from '../../base/index.ts';
import { RowMutation, type Table } from '../../embedded/index.ts';
import { APP_PROFILE, type CellArgument, cellArgument, int64Argument } from '../arguments/arguments.ts';
import { cellJson } from '../output/row-output.ts';
import { Session } from './target.ts';
import type { Terminal } from '../output/terminal.ts';
import { tableArgument } from '../arguments/words-argument.ts';
import { UsageError } from '../output/usage-error.ts';

const ADD_TO_CELL = `
The family must be an aggregate: createfamily TABLE FAMILY:POLICY:intsum, intmin, intmax or hll. The first
three take a whole number, hll counts distinct texts. As in cbt, each call without a timestamp makes a cell
of its own time; write @0 for one cell for all time.

Examples:
  edubba createfamily web hits:never:intsum
  edubba addtocell web com.cnn.www hits:all=1@0`;

const INCREMENT = `
Adds to the 8-byte integer in the newest version of a column, in one atomic step, and prints the new value.
A column that is not there counts as 0. Each call waits for the disk: adding to an aggregate (addtocell)
does not, and is the better way to count much.

Examples:
  edubba increment web com.cnn.www stats:hits
  edubba increment web com.cnn.www stats:hits=-5`;

export function addCellCommands(program: Command, terminal: Terminal): void {
  program
    .command('addtocell')
    .description('add to cells of aggregate families')
    .addArgument(tableArgument())
    .argument('<row>', 'the key of the row')
    .argument('<cells...>', 'FAMILY:COLUMN=VALUE[@TIMESTAMP], all in one atomic step')
    .addHelpText('after', ADD_TO_CELL)
    .action((table: string, row: string, cells: string[], _: unknown, command: Command) => {
      const wanted = cells.filter((word) => !word.startsWith(`${APP_PROFILE}=`)).map(cellArgument);
      if (wanted.length === 0) throw new UsageError('give at least one cell: family:column=value');
      return new Session(command, terminal).withTable(table, (found) => addToCells(found, row, wanted));
    });
  program
    .command('increment')
    .description('add to the integer in a column, and print it')
    .addArgument(tableArgument())
    .argument('<row>', 'the key of the row')
    .argument('<cell>', 'FAMILY:COLUMN, to add 1, or FAMILY:COLUMN=NUMBER')
    .addHelpText('after', INCREMENT)
    .action((table: string, row: string, cell: string, _: unknown, command: Command) =>
      increment(new Session(command, terminal), table, row, cell),
    );
}

async function addToCells(table: Table, row: string, cells: readonly CellArgument[]): Promise<void> {
  const { families } = await table.schema();
  const nowMicros = BigInt(Date.now()) * 1000n;
  const mutation = new RowMutation(row);
  for (const { column, value, timestamp } of cells) {
    const family = column.slice(0, column.indexOf(':'));
    const isText = ownOf(families, family)?.valueType?.aggregate?.input === 'bytes';
    mutation.add(column, isText ? value : int64Argument(value, `the value for ${column}`), timestamp ?? nowMicros);
  }
  await table.apply(mutation);
}

async function increment(session: Session, table: string, row: string, word: string): Promise<void> {
  const match = /^([^:=]+):([^=]*)(?:=(.*))?$/s.exec(word);
  if (!match) throw new UsageError(`"${word}" must be written family:column or family:column=number`);
  const [, family = '', qualifier = '', number = '1'] = match;
  const amount = int64Argument(number, 'what is added');
  const cells = await session.withTable(table, (found) =>
    found.readModifyWrite(row, [{ family, qualifier, change: { kind: 'increment', amount } }]),
  );
  for (const cell of cells)
    await session.terminal.print(session.json ? `${cellJson(cell, 'int64')}\n` : `${cell.int}\n`);
}
