/** Checks a whole database and tells what is wrong with it. */
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';
import { checkDirectory } from '../../boot/index.ts';
import type { CheckProgress, CheckReport, Finding } from '../../inspect/index.ts';
import { counted, jsonLine } from '../output/output.ts';
import { withProgress } from '../output/progress.ts';
import { roughBytes } from '../output/rough-bytes.ts';
import type { Terminal } from '../output/terminal.ts';

export interface CheckArguments {
  readonly dir?: string;
  readonly json?: boolean;
  readonly progress?: boolean;
  /** Lists what is harmless too. */
  readonly verbose?: boolean;
}

const LOGS = 'logs/';

/** DATA_LOSS, and so exit status 1, where anything is damaged. */
export async function inspectCheck(options: CheckArguments, terminal: Terminal): Promise<void> {
  const { dir, json = false, verbose = false } = options;
  if (dir === undefined) throw invalidArgument('say which database is to be checked: --dir DIR');
  let progress = { doneBytes: 0, totalBytes: 0 };
  const describe = (): string => {
    const { doneBytes, totalBytes } = progress;
    const percent = totalBytes === 0 ? 0 : Math.floor((100 * doneBytes) / totalBytes);
    return `checking ${dir}: ${percent} % of ${roughBytes(totalBytes)} of SSTables`;
  };
  const onProgress = (now: CheckProgress): void => void (progress = now);
  const report = await withProgress(terminal, options, describe, () => checkDirectory(dir, { onProgress }));
  await terminal.print(json ? reportAsJson(report) : reportText(report, verbose));
  if (report.findings.length > 0)
    throw new BigtableError(Code.DATA_LOSS, `${counted(report.findings.length, 'finding')} in ${dir}`);
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

function reportText({ findings, orphans = [], notes, counts }: CheckReport, verbose: boolean): string {
  const { lockFiles, tables, tablets, ssTables, entries, logs, records, bytes } = counts;
  const lines = findings.map(findingText);
  if (verbose) for (const file of orphans) lines.push(`waits for clean-up: ${file}`);
  else if (orphans.length > 0)
    lines.push(`${countedOrphans(orphans)} for clean-up by a server, which is no damage (--verbose lists them)`);
  for (const note of notes) lines.push(`note: ${note}`);
  lines.push(
    `checked ${counted(tables, 'table')} in ${counted(tablets, 'tablet')}, ${counted(ssTables, 'SSTable')} of ${counted(bytes, 'byte')} with ${counted(entries, 'entry', 'entries')}, ` +
      `${counted(logs, 'log')} with ${counted(records, 'record')}, ${counted(lockFiles, 'file')} of the lock service`,
  );
  if (findings.length === 0) lines.push('all is as it was written');
  return `${lines.join('\n')}\n`;
}

/** 3 old logs and 1 unused SSTable wait. */
function countedOrphans(orphans: readonly string[]): string {
  const logs = orphans.filter((file) => file.startsWith(LOGS)).length;
  const files = orphans.length - logs;
  const parts = [
    logs === 0 ? '' : counted(logs, 'old log'),
    files === 0 ? '' : counted(files, 'unused SSTable'),
  ].filter((part) => part !== '');
  return `${parts.join(' and ')} ${orphans.length === 1 ? 'waits' : 'wait'}`;
}

function findingText({ file, offset, message }: Finding): string {
  return `damaged: ${file}${offset === undefined ? '' : `, byte ${offset}`}: ${message}`;
}
