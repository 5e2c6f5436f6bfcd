/**
 * Checks SSTables one by one: every block and section against its checksum, order, index, filter and properties; and
 * keeps of each the facts to compare with the rows of METADATA. One block and one index are held in memory at a time.
 */
import { BigtableError, Code, type CorruptionError, quote, toBigtableError } from '../base/index.ts';
import type { FileInfo } from '../env/index.ts';
import { type SsTable, writtenPath } from '../sstable/index.ts';
import type { Findings } from './findings.ts';
import { openTable, type SsTableComponents } from './ss-table.ts';

/** The facts that a file states about itself. */
export type CheckedTable = Pick<SsTable['properties'], 'group' | 'newest' | 'lineage'>;

export interface FileTally {
  ssTables: number;
  entries: number;
}

/** Undefined if it is damaged so that it states nothing. A file that goes away meanwhile is no finding. */
export async function checkFile(
  components: SsTableComponents,
  { path }: FileInfo,
  findings: Findings,
  tally: FileTally,
): Promise<CheckedTable | undefined> {
  let table: SsTable;
  try {
    table = await openTable(components, path);
  } catch (thrown) {
    const error = toBigtableError(thrown);
    if (error.code !== Code.NOT_FOUND) findings.addError(error, path);
    return undefined;
  }
  tally.ssTables++;
  const { group, newest, lineage } = table.properties;
  try {
    tally.entries += (await table.verify((error) => findings.add(path, error.offset, withRows(error, table)))).entries;
  } catch (thrown) {
    const error = toBigtableError(thrown);
    if (!(thrown instanceof BigtableError)) throw thrown;
    if (error.code !== Code.NOT_FOUND) findings.addError(error, path);
  } finally {
    table.close();
  }
  if (lineage !== undefined && lineage.path !== writtenPath(path))
    findings.add(path, 0, `another file stands in its place, which was written as ${lineage.path}`);
  return { group, newest, lineage };
}

/** The message, with the rows that the damage hides. */
function withRows({ message, offset }: CorruptionError, table: SsTable): string {
  const rows = table.rowsAt(offset);
  return rows === undefined ? message : `${message}; it holds rows ${quote(rows.first)} to ${quote(rows.last)}`;
}
