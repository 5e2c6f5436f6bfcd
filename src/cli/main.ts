/**
 * The command line: `edubba COMMAND …`. One process; answers on standard output, errors on standard error with the
 * code's name and exit status 1 (2 for a command that was not understood). With --json errors are JSON too.
 */
import { Command, CommanderError } from 'commander';
import { codeName, toBigtableError } from '../base/index.ts';
import { KeepAlive } from '../boot/index.ts';
import { checkText } from './arguments/arguments.ts';
import { addCellCommands } from './commands/cell-commands.ts';
import { addClusterCommand } from './cluster/cluster-up-command.ts';
import { addMasterCommand } from './cluster/master-command.ts';
import { addTabletServerCommand } from './cluster/tablet-server-command.ts';
import { addCompletionCommand } from './completion/completion-command.ts';
import { addFamilyCommands } from './commands/family-commands.ts';
import { addGlobalOptions } from './help.ts';
import { addInspectCommand } from './inspect/inspect-command.ts';
import { jsonLine } from './output/output.ts';
import { addRowCommands } from './commands/row-commands.ts';
import { addServeCommand } from './serve/serve-command.ts';
import { addSettingsCommand } from './settings/settings-command.ts';
import { addBackupCommands } from './commands/backup-commands.ts';
import { addExportCommands } from './commands/export-commands.ts';
import { addInstanceCommands } from './commands/instance-commands.ts';
import { addLoadCommands } from './commands/load-commands.ts';
import { addQuotaCommands } from './commands/quota-commands.ts';
import { addPolicyCommands } from './commands/policy-commands.ts';
import { addTableCommands } from './commands/table-commands.ts';
import { addChangeCommands } from './commands/change-commands.ts';
import { addTabletCommands } from './commands/tablet-commands.ts';
import { UsageError } from './output/usage-error.ts';
import { OutputClosed, processTerminal, type Terminal } from './output/terminal.ts';
import { addTokenCommand } from './commands/token-command.ts';
import { addVersion } from './commands/version-command.ts';

const FAILED = 1;
const NOT_UNDERSTOOD = 2;

/**
 * Runs one command, and returns the exit status. `argv` is without node and script. The process lives until then, also
 * while a command waits on timers that let a process end.
 */
export function main(argv: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  return new KeepAlive().while(run(argv, terminal));
}

async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  const json = wantsJson(argv);
  const fail = (code: string, message: string): void =>
    terminal.complain(json ? jsonLine({ error: { code, message } }) : `edubba: ${code}: ${message}\n`);
  try {
    checkText(argv);
    await commandLine(terminal, json).parseAsync(argv, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      // without JSON commander has printed its message, or help
      if (json) fail('INVALID_ARGUMENT', usageMessage(error));
      return NOT_UNDERSTOOD;
    }
    const { code, message } = toBigtableError(error);
    fail(codeName(code), message);
    return error instanceof UsageError ? NOT_UNDERSTOOD : FAILED;
  }
}

/** Known before the words are parsed, since parsing may fail. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).includes('--json');
}

function usageMessage({ code, message }: CommanderError): string {
  return code === 'commander.help' ? 'no command is given: edubba --help lists them' : message.replace(/^error: /, '');
}

/** The whole tree of commands. */
function commandLine(terminal: Terminal, json = false): Command {
  const program = new Command('edubba')
    .configureOutput({
      writeOut: (text) => void terminal.print(text).catch(() => {}),
      writeErr: (text) => (json ? undefined : terminal.complain(text)),
    })
    .exitOverride();
  addGlobalOptions(program);
  addVersion(program, terminal, json);
  addCompletionCommand(program, terminal);
  program.commandsGroup('Server:');
  addServeCommand(program, terminal);
  addTabletServerCommand(program, terminal);
  addMasterCommand(program, terminal);
  addClusterCommand(program, terminal);
  addSettingsCommand(program, terminal);
  addTokenCommand(program, terminal);
  program.commandsGroup('Tables and families:');
  addTableCommands(program, terminal);
  addFamilyCommands(program, terminal);
  program.commandsGroup('Instances:');
  addInstanceCommands(program, terminal);
  program.commandsGroup('Backups:');
  addBackupCommands(program, terminal);
  addExportCommands(program, terminal);
  program.commandsGroup('Rights:');
  addPolicyCommands(program, terminal);
  program.commandsGroup('Rows:');
  addRowCommands(program, terminal);
  addCellCommands(program, terminal);
  program.commandsGroup('Storage:');
  addTabletCommands(program, terminal);
  addQuotaCommands(program, terminal);
  addChangeCommands(program, terminal);
  addLoadCommands(program, terminal);
  addInspectCommand(program, terminal);
  return program;
}
