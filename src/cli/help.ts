/**
 * Help that begins with the command: usage, what it does, its arguments and options, details and examples. The options
 * that every command takes come last, in a few lines; `edubba --help` tells them in full.
 */
import { type Command, Help, type Option } from 'commander';
import { DEFAULT_INSTANCE, DEFAULT_PROJECT } from '../model/index.ts';
import { directoryOption } from './arguments/arguments.ts';

const EXAMPLES = `
Examples:
  edubba serve --dir ./data                       a server on 127.0.0.1:8086
  export BIGTABLE_EMULATOR_HOST=127.0.0.1:8086    where the commands below find it
  edubba createtable web families=contents:maxversions=3,anchor:never
  edubba set web com.cnn.www contents:='<html>…' anchor:cnnsi.com=CNN
  edubba read web prefix=com.cnn cells-per-column=1
  edubba --dir ./data ls                          without a server, in this process
  edubba inspect metadata ./data                  what is in the files of a directory

edubba help COMMAND describes a command. Its exit status is 0, 1 where it failed, and 2 where it was
not understood.`;

/** Commands that read and write no tables, and say themselves what they take. */
const WITHOUT_TABLES: readonly string[] = ['serve', 'settings', 'token', 'inspect', 'version', 'completion', 'help'];

const GLOBAL = `
It takes besides: --dir DIR or --address HOST:PORT, --project, --instance, --tls, --tls-ca, --tls-cert,
--tls-key, --token-file, --json, --progress (edubba --help).
`;

export function addGlobalOptions(program: Command): void {
  program
    .description(
      'Bigtable that anyone can run. The commands have the names and arguments of cbt, Google’s command line, and work on a directory (--dir), in this process, or on a server (--address, or BIGTABLE_EMULATOR_HOST).',
    )
    .optionsGroup('Where the data is:')
    .option(
      '--dir <directory>',
      'work on the database in this directory, which no other process may have open',
      directoryOption,
    )
    .option('--address <host:port>', 'work on the server at this address; for serve: listen there')
    .option('--project <id>', 'project of the tables', DEFAULT_PROJECT)
    .option('--instance <id>', 'instance of the tables', DEFAULT_INSTANCE)
    .optionsGroup('How a server is spoken to:')
    .option('--tls', 'speak TLS; the server’s certificate is of an authority that Node trusts')
    .option('--tls-ca <file>', 'speak TLS; the server’s certificate is of these authorities (PEM)')
    .option('--tls-cert <file>', 'our own certificate (PEM); for serve: the server’s')
    .option('--tls-key <file>', 'its key (PEM)')
    .option('--token-file <file>', 'a file with the bearer token to send (or EDUBBA_TOKEN)')
    .optionsGroup('Options:')
    .option(
      '--json',
      'print JSON, a document a line, errors too; bytes that are not UTF-8 come as base64, in valueBase64',
    )
    .option('--progress', 'tell of long work on standard error even where that is no terminal')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'tell more of a command')
    .configureHelp({ visibleOptions, subcommandTerm: (command) => command.name() })
    .addHelpText('after', EXAMPLES)
    .addHelpText('afterAll', ({ command }) => globalOptionsOf(command));
}

function globalOptionsOf(command: Command): string {
  const isOfTables =
    command.parent !== null && command.parent.parent === null && !WITHOUT_TABLES.includes(command.name());
  return isOfTables ? GLOBAL : '';
}

/** That each command has --help needs no line in each. */
function visibleOptions(command: Command): Option[] {
  const all = new Help().visibleOptions(command);
  return command.parent === null ? all : all.filter(({ long }) => long !== '--help');
}
