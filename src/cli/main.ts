/**
 * The command line: `edubba COMMAND …`. One process; answers on standard output, errors on standard error with the code's name and exit status 1
 * (2 for a command that was not understood).
 */
import { Command, CommanderError } from 'commander';
import { codeName, toBigtableError } from '../base/index.ts';
import { addRowCommands } from './row-commands.ts';
import { addServeCommand } from './serve-command.ts';
import { addTableCommands } from './table-commands.ts';

/** Runs one command; answers the exit status. `argv` is without node and script. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('edubba')
    .description('Bigtable that anyone can run. Commands work on a directory (--dir) or on a server (--address, or BIGTABLE_EMULATOR_HOST).')
    .option('--dir <directory>', 'work on the database in this directory, in this process')
    .option('--address <host:port>', 'work on the server at this address')
    .option('--project <id>', 'project of the tables', 'local')
    .option('--instance <id>', 'instance of the tables', 'local')
    .option('--json', 'print JSON, one document a line')
    .exitOverride()
    .enablePositionalOptions(false);
  addServeCommand(program);
  addTableCommands(program);
  addRowCommands(program);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { code, message } = toBigtableError(error);
    process.stderr.write(`edubba: ${codeName(code)}: ${message}\n`);
    return 1;
  }
}
