/**
 * The command line: `edubba COMMAND …`. One process; answers on standard output, errors on standard error with the code's name and exit status 1
 * (2 for a command that was not understood).
 */
import { Command, CommanderError } from 'commander';
import { codeName, toBigtableError } from '../base/index.ts';
import { ProcessHold } from '../boot/index.ts';
import { checkText, directoryOption } from './arguments.ts';
import { addInspectCommand } from './inspect-command.ts';
import { addRowCommands } from './row-commands.ts';
import { addServeCommand } from './serve-command.ts';
import { addSettingsCommand } from './settings-command.ts';
import { addTableCommands } from './table-commands.ts';
import { OutputClosed, processTerminal, type Terminal } from './terminal.ts';
import { addTokenCommand } from './token-command.ts';

const EXAMPLES = `
Examples:
  edubba serve --dir ./data                       a server on 127.0.0.1:8086
  export BIGTABLE_EMULATOR_HOST=127.0.0.1:8086    where the commands below find it
  edubba createtable web families=contents:maxversions=3,anchor
  edubba set web com.cnn.www contents:='<html>…' anchor:cnnsi.com=CNN
  edubba read web prefix=com.cnn cells-per-column=1
  edubba --dir ./data ls                          without a server, in this process
  edubba inspect metadata ./data                  what lies in the directory

edubba help COMMAND tells more of each command.`;

/** A command waits on timers that let a process end: without a hold the process could end while a command opens or closes a database. */
const hold = new ProcessHold();

/** Runs one command; answers the exit status. `argv` is without node and script. */
export function main(argv: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  return hold.while(run(argv, terminal));
}

async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    checkText(argv);
    await commandLine(terminal).parseAsync(argv, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { code, message } = toBigtableError(error);
    terminal.complain(`edubba: ${codeName(code)}: ${message}\n`);
    return 1;
  }
}

function commandLine(terminal: Terminal): Command {
  const program = new Command('edubba')
    .description('Bigtable that anyone can run. The commands have cbt’s names and arguments and work on a directory (--dir), in this process, or on a server (--address, or BIGTABLE_EMULATOR_HOST).')
    .option('--dir <directory>', 'work on the database in this directory, which no other process may have open', directoryOption)
    .option('--address <host:port>', 'work on the server at this address; for serve: listen there')
    .option('--project <id>', 'project of the tables', 'local')
    .option('--instance <id>', 'instance of the tables', 'local')
    .option('--tls', 'speak TLS with the server, which shows a certificate of an authority that Node trusts')
    .option('--tls-ca <file>', 'speak TLS with the server, whose certificate these authorities (PEM) have signed')
    .option('--tls-cert <file>', 'our own certificate (PEM); for serve: the server’s')
    .option('--tls-key <file>', 'its key (PEM)')
    .option('--token-file <file>', 'a file with the bearer token to send (or EDUBBA_TOKEN)')
    .option('--json', 'print JSON, one document a line; bytes that are no UTF-8 as {"base64": …}')
    .configureOutput({ writeOut: (text) => void terminal.print(text).catch(() => {}), writeErr: (text) => terminal.complain(text) })
    .configureHelp({ showGlobalOptions: true })
    .helpCommand('help [command]', 'tell more of a command')
    .addHelpText('after', EXAMPLES)
    .exitOverride();
  addServeCommand(program, terminal);
  addSettingsCommand(program, terminal);
  addTableCommands(program, terminal);
  addRowCommands(program, terminal);
  addInspectCommand(program, terminal);
  addTokenCommand(program, terminal);
  return program;
}
