/** Commands on the backup store: backups apart from the files of their database. */
import { type Command, Option } from 'commander';
import { BigtableError, Code } from '../../base/index.ts';
import type { ListedExport } from '../../model/index.ts';
import type { ExportService, Service } from '../../service/index.ts';
import { formatMicros, jsonLine, tabbed } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import {
  backupName,
  type ClusterOption,
  clusterOption,
  type ExpiryOptions,
  expiresOption,
  expiryOrDefault,
  instanceOf,
  KEPT,
  keepOption,
  nowMicros,
} from './backup-commands.ts';
import { Session } from './target.ts';

const MORE = `
A backup store is a directory, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME, apart from the database. A server
has one by its setting backup-store; with --dir it is said by --backup-store or EDUBBA_BACKUP_STORE. Any number
of databases may export to one store, under different ids, and import from it.

Examples:
  edubba --dir data exportbackup before-cleanup --backup-store /mnt/backups
  edubba --dir data exportedbackups --backup-store /mnt/backups
  edubba --dir other importbackup before-cleanup then --backup-store /mnt/backups
  edubba --address 127.0.0.1:8086 exportbackup monday --as web-monday`;

const storeOption = (): Option =>
  new Option('--backup-store <place>', 'with --dir: the directory, or s3://BUCKET/PREFIX (EDUBBA_BACKUP_STORE)');

export function addExportCommands(program: Command, terminal: Terminal): void {
  program
    .command('exportbackup')
    .description('copy a backup to the backup store, where it outlives the database')
    .argument('<backup>', 'its id, or its full name')
    .option('--as <id>', 'its id in the backup store; default: that of the backup')
    .addOption(storeOption())
    .addOption(clusterOption())
    .addHelpText('after', `\nEvery block is verified. A repetition is harmless.\n${MORE}`)
    .action((backup: string, { as, cluster }: ClusterOption & { as?: string }, command: Command) => {
      const session = new Session(command, terminal);
      const name = backupName(session, cluster, backup);
      return withExports(session, async (exports, context) => {
        const made = await exports.exportBackup(context, name, as ?? name.slice(name.lastIndexOf('/') + 1));
        await terminal.print(session.json ? jsonLine(made) : tabbed([line(session, made)]));
      });
    });
  program
    .command('importbackup')
    .description('make a backup of one in the backup store')
    .argument('<id>', 'its id in the backup store')
    .argument('<backup>', 'the id of the new backup, or its full name')
    .addOption(keepOption())
    .addOption(expiresOption())
    .addOption(storeOption())
    .addOption(clusterOption())
    .addHelpText('after', `\nWithout --keep and --expires it is kept for ${KEPT}.\n${MORE}`)
    .action((id: string, backup: string, options: ExpiryOptions, command: Command) => {
      const session = new Session(command, terminal);
      const expireMicros = expiryOrDefault(options, nowMicros(terminal));
      return withExports(session, async (exports, context) => {
        const name = backupName(session, options.cluster, backup);
        const made = await exports.importBackup(context, { name, from: id, expireMicros });
        if (session.json) await terminal.print(jsonLine(made));
      });
    });
  program
    .command('exportedbackups')
    .description('list the backups of the backup store')
    .addOption(storeOption())
    .addHelpText('after', MORE)
    .action((_options: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return withExports(session, async (exports, context) => {
        const all = await exports.listExports(context);
        await terminal.print(session.json ? jsonLine({ exports: all }) : tabbed(all.map((one) => line(session, one))));
      });
    });
  program
    .command('deleteexportedbackup')
    .description('remove a backup from the backup store')
    .argument('<id>', 'its id in the backup store')
    .addOption(storeOption())
    .action((id: string, _options: unknown, command: Command) =>
      withExports(new Session(command, terminal), (exports, context) => exports.deleteExport(context, id)),
    );
}

async function withExports(
  session: Session,
  work: (exports: ExportService, context: Parameters<ExportService['listExports']>[0]) => Promise<void>,
): Promise<void> {
  await session.withService(async ({ exports }: Pick<Service, 'exports'>, context) => {
    if (exports === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there is no backup store here');
    await work(exports, context);
  });
}

/** Its id, its table, when that was as it is there, its size. */
function line(session: Session, one: ListedExport): string[] {
  if (one.state === 'unreadable')
    return [one.id, '', '', 'cannot be read: its manifest is damaged, or of a later release'];
  const prefix = `${instanceOf(session)}/tables/`;
  const { id, table, startMicros, files, sizeBytes } = one;
  return [
    id,
    table.startsWith(prefix) ? table.slice(prefix.length) : table,
    formatMicros(BigInt(startMicros)),
    `${sizeBytes} bytes in ${files} ${files === 1 ? 'file' : 'files'}`,
  ];
}
