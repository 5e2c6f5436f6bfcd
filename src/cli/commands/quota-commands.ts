/** Commands on what tables take and may take: usage and quotas. */
import type { Command } from 'commander';
import { parseSetting, type Setting, wantedText } from '../../boot/index.ts';
import type { FamilyTotals, TableUsage } from '../../model/index.ts';
import { tableArgument } from '../arguments/words-argument.ts';
import { aligned, jsonLine } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import { UsageError } from '../output/usage-error.ts';
import { Session } from './target.ts';

const USAGE = `
For each column family, and for the table as a whole: bytes on disk and in memory, the quota, rows that calls
have written and read, and the bytes of these cells (row key, column, 8 for the timestamp, value). The line of
the table, "*", has the calls that write and read as well: by tablet, so a scan of three tablets is three reads.
Rows, calls and bytes are counted since each server was started. Callers without rights on all families see
their own families alone.`;

const SET_QUOTA = `
BYTES limits what a table takes on disk and in memory together, or, with --family, one of its families: a
number, or a size as 10GiB. "none" ends the limit. Writes that add cells beyond it fail with
RESOURCE_EXHAUSTED. Deletions do not; a compaction then frees the space.

Examples:
  edubba --address 127.0.0.1:8086 setquota web 500GiB
  edubba --address 127.0.0.1:8086 setquota web 10GiB --family anchor
  edubba --address 127.0.0.1:8086 setquota web none`;

/** The values of a quota, written as those of settings are. */
const BYTES = {
  kind: 'bytes',
  least: 0,
  most: Number.MAX_SAFE_INTEGER,
  default: 0,
  group: '',
  doc: '',
} as const satisfies Setting;

export function addQuotaCommands(program: Command, terminal: Terminal): void {
  program
    .command('usage')
    .description('print what a table takes, its quotas, and what calls have moved')
    .addArgument(tableArgument())
    .addHelpText('after', USAGE)
    .action(async (table: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const usage = await session.withTable(table, (found) => found.usage());
      await terminal.print(session.json ? jsonLine(usage) : aligned(rowsOf(usage)));
    });
  program
    .command('setquota')
    .description('limit the bytes of a table or of a family')
    .addArgument(tableArgument())
    .argument('<bytes>', 'the limit, or none')
    .option('--family <family>', 'the family that it limits')
    .addHelpText('after', SET_QUOTA)
    .action((table: string, text: string, { family }: { readonly family?: string }, command: Command) => {
      const quota = { bytes: bytesArgument(text), ...(family !== undefined && { family }) };
      return new Session(command, terminal).withTable(table, (found) => found.setQuota(quota));
    });
}

function bytesArgument(text: string): number | 'none' {
  if (text === 'none') return 'none';
  const bytes = parseSetting(BYTES, text);
  if (typeof bytes !== 'number')
    throw new UsageError(`the bytes of a quota must be none, or ${wantedText(BYTES)}, not ${JSON.stringify(text)}`);
  return bytes;
}

const HEAD = [
  'Family',
  'On disk',
  'In memory',
  'Quota',
  'Writes',
  'Reads',
  'Rows written',
  'Rows read',
  'Bytes in',
  'Bytes out',
];

function rowsOf({ families, table }: TableUsage): (string | number)[][] {
  const rows: (string | number)[][] = [HEAD, ...families.map((each) => rowOf(each.family, each, ['-', '-'], each))];
  if (table !== undefined) rows.push(rowOf('*', sumOf(families), [table.writes, table.reads], table));
  return rows;
}

type Sizes = Pick<FamilyTotals, 'diskBytes' | 'memoryBytes' | 'bytesIn' | 'bytesOut'>;

function rowOf(
  name: string,
  { diskBytes, memoryBytes, bytesIn, bytesOut }: Sizes,
  calls: readonly (string | number)[],
  { quotaBytes, rowsWritten, rowsRead }: Pick<FamilyTotals, 'quotaBytes' | 'rowsWritten' | 'rowsRead'>,
): (string | number)[] {
  return [name, diskBytes, memoryBytes, quotaBytes ?? '-', ...calls, rowsWritten, rowsRead, bytesIn, bytesOut];
}

function sumOf(families: readonly FamilyTotals[]): Sizes {
  const sum = (name: keyof Sizes): number => families.reduce((total, each) => total + each[name], 0);
  return {
    diskBytes: sum('diskBytes'),
    memoryBytes: sum('memoryBytes'),
    bytesIn: sum('bytesIn'),
    bytesOut: sum('bytesOut'),
  };
}
