/**
 * Checks SSTables one by one: every block and section against its checksum, order, index, filter and properties; and
 * keeps of each the facts to compare with the rows of METADATA. One block and one index are held in memory at a time.
 */
import { BigtableError, Code, type CorruptionError, quote, toBigtableError } from '../base/index.ts';
import type { FileInfo } from '../env/index.ts';
import { describeSsTable, type SsTableLayout } from '../sstable/index.ts';
import type { Findings } from './findings.ts';
import { openTable, type SsTableComponents } from './ss-table.ts';

/** The facts that a file states about itself. */
export type CheckedTable = Pick<SsTableLayout['properties'], 'group' | 'newest' | 'lineage'>;

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
  let layout: SsTableLayout;
  try {
    layout = await describeSsTable(components, path);
  } catch (thrown) {
    const error = toBigtableError(thrown);
    if (error.code !== Code.NOT_FOUND) findings.addError(error, path);
    return undefined;
  }
  tally.ssTables++;
  const { group, newest, lineage } = layout.properties;
  try {
    const table = await openTable(components, path);
    try {
      tally.entries += (
        await table.verify((error) => findings.add(path, error.offset, withRows(error, layout)))
      ).entries;
    } finally {
      table.close();
    }
  } catch (thrown) {
    const error = toBigtableError(thrown);
    if (!(thrown instanceof BigtableError)) throw thrown;
    if (error.code !== Code.NOT_FOUND) findings.addError(error, path);
  }
  if (lineage !== undefined && lineage.path !== path)
    findings.add(path, 0, `another file stands in its place, which was written as ${lineage.path}`);
  return { group, newest, lineage };
}

/** The message, with the rows that the damage hides. */
function withRows({ message, offset }: CorruptionError, { blocks }: SsTableLayout): string {
  const block = blocks.find((one) => one.offset === offset);
  return block === undefined
    ? message
    : `${message}; it holds rows ${quote(block.first.row)} to ${quote(block.lastRow)}`;
}
