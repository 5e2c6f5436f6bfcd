/** Makes METADATA again after it was lost, and tells what could not be saved. */
import { invalidArgument } from '../../base/index.ts';
import { repairDirectory, type RepairReport } from '../../boot/index.ts';
import { counted, jsonLine } from '../output/output.ts';
import { withProgress } from '../output/progress.ts';
import type { Terminal } from '../output/terminal.ts';

export interface RepairArguments {
  readonly dir?: string;
  readonly writeTo?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
  readonly progress?: boolean;
}

export async function inspectRepair(options: RepairArguments, terminal: Terminal): Promise<void> {
  const { dir, writeTo, yes = false, json = false } = options;
  if (dir === undefined) throw invalidArgument('say which database is to be repaired: --dir DIR');
  if (writeTo === undefined && !yes)
    throw invalidArgument(
      `say where the repaired database is to be written: --write-to NEWDIR; or --yes, to change ${dir} itself`,
    );
  if (writeTo !== undefined && yes) throw invalidArgument('give either --write-to or --yes, not both');
  const report = await withProgress(
    terminal,
    options,
    () => `repairing ${dir}`,
    () => repairDirectory(dir, writeTo),
  );
  await terminal.print(json ? jsonLine({ kind: 'repaired', ...report }) : reportText(report));
}

function reportText({ directory, tables, unsaved, notes, superfluous }: RepairReport): string {
  const lines = tables.map(
    ({ id, name, tablets, files, replayedRecords }) =>
      `table ${id} ${name}: ${counted(tablets, 'tablet')}, ${counted(files, 'SSTable')}, ${counted(replayedRecords, 'record')} of logs replayed`,
  );
  for (const note of notes) lines.push(`note: ${note}`);
  if (superfluous.length > 0)
    lines.push(`${counted(superfluous.length, 'SSTable')} left out: others hold what counts of them`);
  for (const what of unsaved) lines.push(`not saved: ${what}`);
  lines.push(
    unsaved.length === 0
      ? `${directory}: everything was saved`
      : `${directory}: ${counted(unsaved.length, 'thing')} could not be saved`,
  );
  return `${lines.join('\n')}\n`;
}
