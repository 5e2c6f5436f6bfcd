/**
 * `edubba inspect`: shows the content of a database's files, also while a server runs. Only `repair` changes anything.
 */
import { stat } from 'node:fs/promises';
import { basename, dirname, relative, resolve, sep } from 'node:path';
import type { Command } from 'commander';
import { invalidArgument, notFound } from '../../base/index.ts';
import { findDirectory, openFileForInspection, openForInspection } from '../../boot/index.ts';
import { directoryOption } from '../arguments/arguments.ts';
import { inspectCheck } from './inspect-check.ts';
import { inspectLogFile } from './inspect-log.ts';
import { inspectMetadataOf } from './inspect-metadata.ts';
import { inspectRepair } from './inspect-repair.ts';
import type { InspectOptions } from './inspect-options.ts';
import { inspectSsTableFile } from './inspect-ss-table.ts';
import type { Terminal } from '../output/terminal.ts';

const MORE = `
FILE is a path on disk. The database it belongs to is found by its file EDUBBA, in a directory above. Nothing
is locked or written except by repair, so a server may run there. Damage is reported with the file and the
byte, and exit status 1. With --json all of them print JSON.`;

const SSTABLE = `
FILE is an SSTable, in a database (files/sstables/…; inspect metadata lists them) or by itself. Its footer,
sections, properties and index are read and checked, its blocks only with --verify or --entries.

Example: edubba inspect sstable data/files/sstables/… --verify`;

const LOG = `
FILE is the directory of a commit log (logs/logs/…) or one of its segments. Every append is checked as it is
read. While a server writes the log, what is shown is what it held at some instant.

Example: edubba inspect log data/logs/logs/… --entries`;

const METADATA = `
FILE is the directory of a database, or any path in it. Shows every table, its families, and every tablet with
its files and logs, from the lock service's files, METADATA's SSTables and its log records: as a server would
find it at its start. While a server runs, what it has acknowledged by now is there, and each tablet of
METADATA is as it was at one instant.

Example: edubba inspect metadata data --verify     checks every SSTable of the database`;

export function addInspectCommand(program: Command, terminal: Terminal): void {
  const inspect = program
    .command('inspect')
    .description('look inside the files of a database, check or repair it')
    .addHelpText('after', MORE);
  inspect
    .command('sstable <file>')
    .description('an SSTable: its parts, properties and blocks')
    .option('--verify', 'check every block, every entry, the index and the properties')
    .option('--entries', 'print every entry')
    .addHelpText('after', SSTABLE)
    .action((file: string, _: unknown, command: Command) => sstable(file, command.optsWithGlobals(), terminal));
  inspect
    .command('log <file>')
    .description('a commit log: its appends and records')
    .option('--verify', 'read and check all of it, and print the sum alone')
    .option('--entries', 'print every mutation')
    .addHelpText('after', LOG)
    .action((file: string, _: unknown, command: Command) => log(file, command.optsWithGlobals(), terminal));
  inspect
    .command('metadata <file>')
    .description('a database: its tables, its tablets, and which files they are made of')
    .option('--verify', 'check every SSTable that a tablet lists')
    .option('--entries', 'print the events of each tablet')
    .addHelpText('after', METADATA)
    .action((file: string, _: unknown, command: Command) => metadata(file, command.optsWithGlobals(), terminal));
  inspect
    .command('check')
    .description('check every file of the database in --dir, and what they say of one another')
    .option('--dir <directory>', 'the database', directoryOption)
    .option('--verbose', 'list the files that wait for clean-up, and not only their number')
    .addHelpText('after', CHECK)
    .action((_: unknown, command: Command) => inspectCheck(command.optsWithGlobals(), terminal));
  inspect
    .command('repair')
    .description('make the METADATA of the database in --dir again after it was lost')
    .option('--dir <directory>', 'the database', directoryOption)
    .option('--write-to <directory>', 'write the repaired database there, and change nothing in --dir', directoryOption)
    .option('--yes', 'repair --dir itself')
    .addHelpText('after', REPAIR)
    .action((_: unknown, command: Command) => inspectRepair(command.optsWithGlobals(), terminal));
}

const CHECK = `
Reads every byte of the database in --dir: SSTables (each block's checksum, order, index, filter, properties),
logs, the lock service's files and METADATA. Then it holds them against one another: tablets cover every
table, every file that is listed is there. Files that nothing refers to are no damage: a server removes them.
Exit status 1 where anything is damaged. docs/REPAIR.md tells what to do then.

Example: edubba --dir ./data inspect check`;

const REPAIR = `
Makes METADATA again from the SSTables, which tell where they belong, and from the logs, when it or the
location of the root tablet is lost or damaged (inspect check tells). Stop the server first. With --write-to
nothing in --dir is changed, and the new directory must be new. With --yes --dir itself is repaired, which is
refused if something could not be saved, which is listed. docs/REPAIR.md has more.

Example: edubba --dir ./data inspect repair --write-to ./repaired`;

interface Place {
  /** The database's directory; undefined where the file lies in none. */
  readonly directory: string | undefined;
  /** Below the database's directory. */
  readonly parts: readonly string[];
  readonly isDirectory: boolean;
}

async function placeOf(file: string): Promise<Place> {
  const found = await stat(file).catch(() => undefined);
  if (!found) throw notFound(`file ${file} not found`);
  const directory = await findDirectory(file);
  const parts = directory === undefined ? [] : relative(directory, resolve(file)).split(sep);
  return { directory, parts, isDirectory: found.isDirectory() };
}

async function sstable(file: string, options: InspectOptions, terminal: Terminal): Promise<void> {
  const { directory, parts, isDirectory } = await placeOf(file);
  if (isDirectory)
    throw invalidArgument(
      `${file} is a directory: name an SSTable; edubba inspect metadata ${directory ?? 'DIR'} lists those of a database`,
    );
  const inDatabase = directory !== undefined && parts[0] === 'files';
  const source = inDatabase
    ? { ...(await openForInspection(directory)), path: parts.slice(1).join('/') }
    : openFileForInspection(file);
  try {
    await inspectSsTableFile(source, source.path, options, terminal);
  } finally {
    await source.close();
  }
}

async function log(file: string, options: InspectOptions, terminal: Terminal): Promise<void> {
  const { directory, parts, isDirectory } = await placeOf(file);
  if (directory === undefined) throw noDatabase(file);
  const path = (isDirectory ? parts : parts.slice(0, -1)).slice(1).join('/');
  if (parts[0] !== 'logs' || path === '')
    throw invalidArgument(`${file} is not a log: name a directory below ${directory}${sep}logs, or a segment in one`);
  const source = await openForInspection(directory);
  try {
    await inspectLogFile(source, { path, segment: isDirectory ? undefined : basename(file) }, options, terminal);
  } finally {
    await source.close();
  }
}

async function metadata(file: string, options: InspectOptions, terminal: Terminal): Promise<void> {
  const { directory } = await placeOf(file);
  if (directory === undefined) throw noDatabase(file);
  const source = await openForInspection(directory);
  try {
    await inspectMetadataOf(source, options, terminal);
  } finally {
    await source.close();
  }
}

function noDatabase(file: string): Error {
  return notFound(`${file} is not in a database: no file EDUBBA in ${dirname(resolve(file))} or above it`);
}
