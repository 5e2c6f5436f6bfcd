/** Commands on the changes of a table. */
import type { Command } from 'commander';
import { toBytes } from '../../base/index.ts';
import type { Change, ChangesOptions, Table } from '../../embedded/index.ts';
import { tableArgument } from '../arguments/words-argument.ts';
import { formatMicros, jsonLine } from '../output/output.ts';
import { quoted, visible } from '../output/quote.ts';
import type { Terminal } from '../output/terminal.ts';
import { UsageError } from '../output/usage-error.ts';
import { Session } from './target.ts';

const CHANGES = `
Prints each change of a row once it is made, those of a row in their order: its time, the row, and what was
done. A change by garbage collection is marked (gc). Some changes may come again after a server has moved.
The command goes on until it is stopped. With --json each line has the token from which --token goes on.
"edubba keepchanges" says for how long a table keeps its changes.

TIME is a date such as 2026-11-27T15:00Z, or microseconds since 1970.

Examples:
  edubba keepchanges web 7
  edubba changes web
  edubba changes web --from 2026-11-27T15:00Z --once --json`;

const KEEP_CHANGES = `
DAYS is 1 to 7. Changes are kept from then on; "never" ends that, and what was kept is lost.`;

interface ChangesFlags {
  readonly from?: bigint;
  readonly token?: string;
  readonly once?: true;
}

export function addChangeCommands(program: Command, terminal: Terminal): void {
  program
    .command('changes')
    .description('print the changes of a table as they are made')
    .addArgument(tableArgument())
    .option('--from <time>', 'begin at this time (default: now)', timeArgument)
    .option('--token <token>', 'go on from the token of a line that was printed')
    .option('--once', 'end with the changes made by now')
    .addHelpText('after', CHANGES)
    .action((table: string, flags: ChangesFlags, command: Command) => {
      const { from, token, once } = flags;
      if (from !== undefined && token !== undefined) throw new UsageError('give --from or --token, not both');
      if (once && from === undefined && token === undefined) throw new UsageError('--once needs --from or --token');
      const session = new Session(command, terminal);
      return session.withTable(table, (found) => printChanges(session, found, flags));
    });
  program
    .command('keepchanges')
    .description('keep the changes of a table for some days')
    .addArgument(tableArgument())
    .argument('<days>', '1 to 7, or never')
    .addHelpText('after', KEEP_CHANGES)
    .action((table: string, days: string, _: unknown, command: Command) => {
      const kept = days === 'never' ? days : Number(days);
      if (kept !== 'never' && !(kept >= 1 && kept <= 7))
        throw new UsageError(`changes are kept for 1 to 7 days, or never, not "${days}"`);
      return new Session(command, terminal).withTable(table, (found) => found.keepChanges(kept));
    });
}

async function printChanges(session: Session, table: Table, { from, token, once }: ChangesFlags): Promise<void> {
  const { json, terminal } = session;
  const options: ChangesOptions = {
    ...(from !== undefined && { since: from }),
    ...(token !== undefined && { token }),
    // the clock tells milliseconds
    ...(once && { until: new Date(Date.now() + 1) }),
  };
  const changes = table.readChanges(options);
  for await (const change of changes)
    await terminal.print(json ? jsonLine({ ...change.toJSON(), token: changes.token }) : textOf(change));
}

/** A line for each step. */
function textOf({ row, time, origin, mutation }: Change): string {
  const head = `${formatMicros(time)}  ${visible(row)}  ${origin === 'user' ? '' : '(gc) '}`;
  return mutation.mutations.map((step) => `${head}${stepText(step)}\n`).join('');
}

function stepText(step: Change['mutation']['mutations'][number]): string {
  switch (step.kind) {
    case 'deleteFromRow':
      return 'delete row';
    case 'deleteFromFamily':
      return `delete family ${step.family}`;
    case 'deleteFromColumn': {
      const { start, end } = step.range ?? {};
      const since = start === undefined || start < 0 ? '' : ` from ${formatMicros(BigInt(start))}`;
      const until = end === undefined ? '' : ` before ${formatMicros(BigInt(end))}`;
      return `delete ${columnText(step)}${since}${until}`;
    }
    case 'setCell':
      return `set ${columnText(step)} ${timeText(step.timestamp)}${quoted(Buffer.from(step.value))}`;
    case 'addToCell': {
      const { input } = step;
      const text = typeof input === 'object' ? quoted(Buffer.from(input)) : String(input);
      return `add ${columnText(step)} ${timeText(step.timestamp)}${text}`;
    }
    case 'mergeToCell':
      return `merge ${columnText(step)} ${timeText(step.timestamp)}${quoted(Buffer.from(step.state ?? []))}`;
  }
}

function columnText({ family, qualifier }: { readonly family: string; readonly qualifier: string }): string {
  return `${family}:${visible(toBytes(qualifier))}`;
}

function timeText(timestamp: number | bigint | undefined): string {
  return timestamp === undefined ? '' : `@ ${formatMicros(BigInt(timestamp))} `;
}

function timeArgument(text: string): bigint {
  if (/^\d+$/.test(text)) return BigInt(text);
  const milliseconds = Date.parse(text);
  if (Number.isNaN(milliseconds))
    throw new UsageError(`"${text}" is no time: give a date such as 2026-11-27T15:00Z, or microseconds since 1970`);
  return BigInt(milliseconds) * 1000n;
}
