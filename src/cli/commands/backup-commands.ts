/** Commands on backups of tables. */
import { type Command, Option } from 'commander';
import { BigtableError, Code } from '../../base/index.ts';
import { systemClock } from '../../boot/index.ts';
import { DEFAULT_CLUSTER, type ListedBackup } from '../../model/index.ts';
import type { BackupService, Service } from '../../service/index.ts';
import { parseAge } from '../arguments/gc-policy.ts';
import { tableArgument } from '../arguments/words-argument.ts';
import { formatMicros, jsonLine, tabbed } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import { UsageError } from '../output/usage-error.ts';
import { Session } from './target.ts';

const MORE = `
A backup has the rows of its time, whatever becomes of the table. It is made in a moment and takes no space at
first: it keeps the files of the table, which take space of their own once the table has replaced them. It lies
in the same directory or store, so it helps against mistakes, and not against the loss of the disk.

Examples:
  edubba --dir data backup web before-cleanup
  edubba --dir data backups
  edubba --dir data restore before-cleanup web-then
  edubba --address 127.0.0.1:8086 backup web monday --keep 7d`;

interface CreateOptions {
  readonly keep: string;
  readonly cluster: string;
}

const clusterOption = (): Option =>
  new Option('--cluster <cluster>', 'the cluster that the backup is in').default(DEFAULT_CLUSTER);

export function addBackupCommands(program: Command, terminal: Terminal): void {
  program
    .command('backup')
    .description('back a table up')
    .addArgument(tableArgument())
    .argument('<backup>', 'its id, or its full name')
    .option('--keep <age>', 'when it is deleted: after 6h to 90d', '30d')
    .addOption(clusterOption())
    .addHelpText('after', MORE)
    .action((table: string, backup: string, { keep, cluster }: CreateOptions, command: Command) => {
      const session = new Session(command, terminal);
      const keptMicros = parseAge(keep);
      if (keptMicros === undefined)
        throw new UsageError(`--keep must be an age such as 12h or 30d, not ${JSON.stringify(keep)}`);
      return withBackups(session, async (backups, context) => {
        const made = await backups.createBackup(context, {
          name: backupName(session, cluster, backup),
          source: session.tableName(table),
          kind: 'standard',
          expireMicros: (terminal.clock ?? systemClock).nowMicros() + keptMicros,
        });
        if (session.json) await terminal.print(jsonLine(made));
      });
    });
  program
    .command('backups')
    .description('list the backups of an instance')
    .addHelpText('after', MORE)
    .action((_: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return withBackups(session, async (backups, context) => {
        const all = await backups.listBackups(context, `${instanceOf(session)}/clusters/`);
        await terminal.print(session.json ? jsonLine({ backups: all }) : tabbed(all.map((one) => line(session, one))));
      });
    });
  program
    .command('restore')
    .description('make a new table from a backup')
    .argument('<backup>', 'its id, or its full name')
    .argument('<table>', 'the id of the new table, or its full name')
    .addOption(clusterOption())
    .addHelpText('after', MORE)
    .action((backup: string, table: string, { cluster }: CreateOptions, command: Command) => {
      const session = new Session(command, terminal);
      return withBackups(session, async (backups, context) => {
        await backups.restoreTable(context, session.tableName(table), backupName(session, cluster, backup));
      });
    });
  program
    .command('deletebackup')
    .description('delete a backup')
    .argument('<backup>', 'its id, or its full name')
    .addOption(clusterOption())
    .action((backup: string, { cluster }: CreateOptions, command: Command) => {
      const session = new Session(command, terminal);
      return withBackups(session, (backups, context) =>
        backups.deleteBackup(context, backupName(session, cluster, backup)),
      );
    });
}

async function withBackups(
  session: Session,
  work: (backups: BackupService, context: Parameters<BackupService['getBackup']>[0]) => Promise<void>,
): Promise<void> {
  await session.withService(async ({ backups }: Pick<Service, 'backups'>, context) => {
    if (backups === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there are no backups here');
    await work(backups, context);
  });
}

/** Its id, that of its table, when it was made, when it expires, and its size. */
function line(session: Session, backup: ListedBackup): string[] {
  const prefix = `${instanceOf(session)}/clusters/${DEFAULT_CLUSTER}/backups/`;
  const { name } = backup;
  const id = name.startsWith(prefix) ? name.slice(prefix.length) : name;
  if (backup.state === 'unreadable') return [id, 'cannot be read: its file is damaged, or of a later release'];
  const { table, startMicros, expireMicros, sizeBytes, state } = backup;
  return [
    id,
    table.startsWith(session.prefix) ? table.slice(session.prefix.length) : table,
    formatMicros(BigInt(startMicros)),
    `until ${formatMicros(BigInt(expireMicros))}`,
    state === 'ready' ? `${sizeBytes} bytes` : 'being created',
  ];
}

function instanceOf(session: Session): string {
  return session.prefix.slice(0, -'/tables/'.length);
}

function backupName(session: Session, cluster: string, backup: string): string {
  return backup.includes('/') ? backup : `${instanceOf(session)}/clusters/${cluster}/backups/${backup}`;
}
