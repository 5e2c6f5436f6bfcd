/** Commands on backups of tables. */
import { type Command, Option } from 'commander';
import { BigtableError, Code } from '../../base/index.ts';
import { systemClock } from '../../boot/index.ts';
import { type Backup, DEFAULT_CLUSTER, type ListedBackup } from '../../model/index.ts';
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
  edubba --address 127.0.0.1:8086 backup web monday --keep 7d
  edubba --address 127.0.0.1:8086 copybackup monday monday-for-long --keep 90d
  edubba --address 127.0.0.1:8086 updatebackup monday --expires 2030-01-31`;
/** How long a backup is kept whose command says nothing. */
export const KEPT = '30d';

export interface ClusterOption {
  readonly cluster: string;
}

export interface ExpiryOptions extends ClusterOption {
  readonly keep?: string;
  readonly expires?: string;
}

interface CreateOptions extends ExpiryOptions {
  readonly hot?: boolean;
  readonly standardAfter?: string;
}

export const clusterOption = (): Option =>
  new Option('--cluster <cluster>', 'the cluster that the backup is in').default(DEFAULT_CLUSTER);
export const keepOption = (): Option =>
  new Option('--keep <age>', 'when it is deleted, from now on: 6h to 90d after its start').conflicts('expires');
export const expiresOption = (): Option =>
  new Option('--expires <time>', 'when it is deleted, such as 2030-01-31 or 2030-01-31T18:00:00Z');

export function addBackupCommands(program: Command, terminal: Terminal): void {
  addMakingCommands(program, terminal);
  addShowingCommands(program, terminal);
  addChangingCommands(program, terminal);
}

function addMakingCommands(program: Command, terminal: Terminal): void {
  program
    .command('backup')
    .description('back a table up')
    .addArgument(tableArgument())
    .argument('<backup>', 'its id, or its full name')
    .addOption(keepOption())
    .addOption(expiresOption())
    .option('--hot', 'of the hot type, which other servers restore faster')
    .option('--standard-after <age>', 'when a hot one becomes a standard one: after 24h or more')
    .addOption(clusterOption())
    .addHelpText('after', `\nWithout --keep and --expires it is kept for ${KEPT}.\n${MORE}`)
    .action((table: string, backup: string, options: CreateOptions, command: Command) => {
      const session = new Session(command, terminal);
      const now = nowMicros(terminal);
      const hotMicros = ageOf(options.standardAfter, '--standard-after');
      const expireMicros = expiryOrDefault(options, now);
      return withBackups(session, async (backups, context) => {
        const made = await backups.createBackup(context, {
          name: backupName(session, options.cluster, backup),
          source: session.tableName(table),
          kind: options.hot ? 'hot' : 'standard',
          expireMicros,
          ...(hotMicros !== undefined && { hotToStandardMicros: now + hotMicros }),
        });
        if (session.json) await terminal.print(jsonLine(made));
      });
    });
  program
    .command('copybackup')
    .description('copy a backup: the copy stays when the backup is deleted')
    .argument('<backup>', 'its id, or its full name')
    .argument('<copy>', 'the id of the copy, or its full name')
    .addOption(keepOption())
    .addOption(expiresOption())
    .addOption(clusterOption())
    .option('--to-cluster <cluster>', 'the cluster that the copy is in; default: that of the backup')
    .addHelpText('after', `\nWithout --keep and --expires it is kept for ${KEPT}.\n${MORE}`)
    .action((backup: string, copy: string, options: ExpiryOptions & { toCluster?: string }, command: Command) => {
      const session = new Session(command, terminal);
      const { cluster, toCluster = cluster } = options;
      const now = nowMicros(terminal);
      const expireMicros = expiryOrDefault(options, now);
      return withBackups(session, async (backups, context) => {
        const made = await backups.createBackup(context, {
          name: backupName(session, toCluster, copy),
          source: backupName(session, cluster, backup),
          kind: 'standard',
          expireMicros,
        });
        if (session.json) await terminal.print(jsonLine(made));
      });
    });
}

function addShowingCommands(program: Command, terminal: Terminal): void {
  program
    .command('backups')
    .description('list the backups of an instance')
    .option('--cluster <cluster>', 'those of this cluster alone')
    .addHelpText('after', MORE)
    .action(({ cluster }: Partial<ClusterOption>, command: Command) => {
      const session = new Session(command, terminal);
      const prefix = `${instanceOf(session)}/clusters/${cluster === undefined ? '' : `${cluster}/`}`;
      return withBackups(session, async (backups, context) => {
        const all = await backups.listBackups(context, prefix);
        await terminal.print(session.json ? jsonLine({ backups: all }) : tabbed(all.map((one) => line(session, one))));
      });
    });
  program
    .command('getbackup')
    .description('show a backup')
    .argument('<backup>', 'its id, or its full name')
    .addOption(clusterOption())
    .action((backup: string, { cluster }: ClusterOption, command: Command) => {
      const session = new Session(command, terminal);
      return withBackups(session, async (backups, context) => {
        const found = await backups.getBackup(context, backupName(session, cluster, backup));
        await terminal.print(session.json ? jsonLine(found) : tabbed(fieldsOf(found)));
      });
    });
}

function addChangingCommands(program: Command, terminal: Terminal): void {
  program
    .command('updatebackup')
    .description('change when a backup is deleted, or becomes a standard one')
    .argument('<backup>', 'its id, or its full name')
    .addOption(keepOption())
    .addOption(expiresOption())
    .option('--standard-after <age>', 'when a hot one becomes a standard one, from now on; never: it stays hot')
    .addOption(clusterOption())
    .action((backup: string, options: CreateOptions, command: Command) => {
      const session = new Session(command, terminal);
      const now = nowMicros(terminal);
      const { standardAfter, cluster } = options;
      const expireMicros = expiryOf(options, now);
      const hotMicros = standardAfter === 'never' ? null : ageOf(standardAfter, '--standard-after');
      if (expireMicros === undefined && hotMicros === undefined)
        throw new UsageError('updatebackup needs --keep, --expires or --standard-after');
      return withBackups(session, async (backups, context) => {
        const changed = await backups.updateBackup(context, backupName(session, cluster, backup), {
          ...(expireMicros !== undefined && { expireMicros }),
          ...(hotMicros !== undefined && { hotToStandardMicros: hotMicros === null ? null : now + hotMicros }),
        });
        if (session.json) await terminal.print(jsonLine(changed));
      });
    });
  program
    .command('restore')
    .description('make a new table from a backup')
    .argument('<backup>', 'its id, or its full name')
    .argument('<table>', 'the id of the new table, or its full name')
    .addOption(clusterOption())
    .addHelpText('after', MORE)
    .action((backup: string, table: string, { cluster }: ClusterOption, command: Command) => {
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
    .action((backup: string, { cluster }: ClusterOption, command: Command) => {
      const session = new Session(command, terminal);
      return withBackups(session, (backups, context) =>
        backups.deleteBackup(context, backupName(session, cluster, backup)),
      );
    });
}

export function nowMicros({ clock = systemClock }: Terminal): number {
  return clock.nowMicros();
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

/** When the backup of a command is deleted that may say nothing of it. */
export function expiryOrDefault(options: Omit<ExpiryOptions, 'cluster'>, nowMicros: number): number {
  return expiryOf(options, nowMicros) ?? expiryOf({ keep: KEPT }, nowMicros)!;
}

/** Undefined where the options say nothing. */
function expiryOf({ keep, expires }: Omit<ExpiryOptions, 'cluster'>, nowMicros: number): number | undefined {
  if (expires === undefined) {
    const keptMicros = ageOf(keep, '--keep');
    return keptMicros === undefined ? undefined : nowMicros + keptMicros;
  }
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:\d\d))?$/.test(expires);
  const micros = isTime ? Date.parse(expires) * 1000 : Number.NaN;
  if (Number.isNaN(micros))
    throw new UsageError(
      `--expires must be a time such as 2030-01-31 or 2030-01-31T18:00:00Z, not ${JSON.stringify(expires)}`,
    );
  return micros;
}

function ageOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const micros = parseAge(text);
  if (micros === undefined)
    throw new UsageError(`${option} must be an age such as 12h or 30d, not ${JSON.stringify(text)}`);
  return micros;
}

/** Its id, that of its table, when it was made, when it expires, and its size. */
function line(session: Session, backup: ListedBackup): string[] {
  const prefix = `${instanceOf(session)}/clusters/${DEFAULT_CLUSTER}/backups/`;
  const { name } = backup;
  const id = name.startsWith(prefix) ? name.slice(prefix.length) : name;
  if (backup.state === 'unreadable')
    return [id, '', '', '', 'cannot be read: its file is damaged, or of a later release'];
  const { table, startMicros, expireMicros, sizeBytes, state } = backup;
  return [
    id,
    table.startsWith(session.prefix) ? table.slice(session.prefix.length) : table,
    formatMicros(BigInt(startMicros)),
    `until ${formatMicros(BigInt(expireMicros))}`,
    state === 'ready' ? `${sizeBytes} bytes` : 'being created',
  ];
}

/** A field in a line. */
function fieldsOf(backup: Backup): string[][] {
  const { name, table, sourceBackup, state, kind, startMicros, endMicros, expireMicros, hotToStandardMicros } = backup;
  const time = (micros: number): string => formatMicros(BigInt(micros));
  return [
    ['Name', name],
    ['Table', table],
    ...(sourceBackup === undefined ? [] : [['Copy of', sourceBackup]]),
    ['State', state === 'ready' ? 'ready' : 'being created'],
    ['Type', kind],
    ['Began', time(startMicros)],
    ...(endMicros === undefined ? [] : [['Ended', time(endMicros)]]),
    ['Expires', time(expireMicros)],
    ...(hotToStandardMicros === undefined ? [] : [['Standard from', time(hotToStandardMicros)]]),
    ['Size', `${backup.sizeBytes} bytes`],
  ];
}

export function instanceOf(session: Session): string {
  return session.prefix.slice(0, -'/tables/'.length);
}

export function backupName(session: Session, cluster: string, backup: string): string {
  return backup.includes('/') ? backup : `${instanceOf(session)}/clusters/${cluster}/backups/${backup}`;
}
