/** Checks a whole database and tells what is wrong with it. */
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import { checkDirectory } from '../boot/index.ts';
import type { CheckReport, Finding } from '../inspect/index.ts';
import { counted, jsonLine } from './output.ts';
import type { Terminal } from './terminal.ts';

export interface CheckArguments {
  readonly dir?: string;
  readonly json?: boolean;
}

/** How far it is, is told after so many bytes. */
const PROGRESS_BYTES = 1 << 30;

/** DATA_LOSS, and so exit status 1, where anything is damaged. */
export async function inspectCheck({ dir, json = false }: CheckArguments, terminal: Terminal): Promise<void> {
  if (dir === undefined) throw invalidArgument('say which database is to be checked: --dir DIR');
  let toldBytes = 0;
  const report = await checkDirectory(dir, {
    onProgress: ({ doneBytes, totalBytes }) => {
      if (doneBytes - toldBytes < PROGRESS_BYTES) return;
      toldBytes = doneBytes;
      terminal.complain(`${Math.floor((100 * doneBytes) / totalBytes)} % of ${totalBytes} bytes checked\n`);
    },
  });
  await terminal.print(json ? reportAsJson(report) : reportText(report));
  if (report.findings.length > 0) throw new BigtableError(Code.DATA_LOSS, `${counted(report.findings.length, 'finding')} in ${dir}`);
}

function reportAsJson({ findings, orphans, notes, counts }: CheckReport): string {
  const lines = [
    ...findings.map((finding) => ({ kind: 'finding', ...finding })),
    ...(orphans ?? []).map((file) => ({ kind: 'orphan', file })),
    ...notes.map((message) => ({ kind: 'note', message })),
    { kind: 'checked', damaged: findings.length > 0, ...counts },
  ];
  return lines.map(jsonLine).join('');
}

function reportText({ findings, orphans, notes, counts }: CheckReport): string {
  const { lockFiles, tables, tablets, ssTables, entries, logs, records, bytes } = counts;
  const lines = findings.map(findingText);
  for (const file of orphans ?? []) lines.push(`orphan: nothing refers to ${file}; the next sweep removes it`);
  for (const note of notes) lines.push(`note: ${note}`);
  lines.push(
    `checked ${counted(tables, 'table')} in ${counted(tablets, 'tablet')}, ${counted(ssTables, 'SSTable')} of ${counted(bytes, 'byte')} with ${counted(entries, 'entry', 'entries')}, `
      + `${counted(logs, 'log')} with ${counted(records, 'record')}, ${counted(lockFiles, 'file')} of the lock service`,
  );
  if (findings.length === 0) lines.push('all is as it was written');
  return `${lines.join('\n')}\n`;
}

function findingText({ file, offset, message }: Finding): string {
  return `damaged: ${file}${offset === undefined ? '' : `, byte ${offset}`}: ${message}`;
}
