/** Looks inside an SSTable: its layout, a check of every block, its entries. Format: docs/formats/sstable.md. */
import { type Clock, type Codecs, type FileSystem, Metrics, Pacer } from '../env/index.ts';
import { CursorState, type Entry } from '../model/index.ts';
import { BlockCache, describeSsTable, SsTable, type SsTableLayout } from '../sstable/index.ts';

export interface SsTableComponents {
  readonly fileSystem: FileSystem;
  readonly codecs: Codecs;
  readonly clock: Clock;
}

export interface InspectedSsTable {
  readonly layout: SsTableLayout;
  /** The counts of the check of all blocks, if it was requested; it fails at the first damage. */
  readonly verified: { readonly blocks: number; readonly entries: number; readonly blockBytes: number } | undefined;
}

/**
 * CorruptionError if the file is damaged, NOT_FOUND if it does not exist, FAILED_PRECONDITION if a newer Edubba wrote
 * it.
 */
export async function inspectSsTable(
  components: SsTableComponents,
  path: string,
  options: { readonly verify?: boolean } = {},
): Promise<InspectedSsTable> {
  const layout = await describeSsTable(components, path);
  if (!options.verify) return { layout, verified: undefined };
  const table = await openTable(components, path);
  try {
    return { layout, verified: await table.verify() };
  } finally {
    table.close();
  }
}

/** All entries in their order, from the first row at or above `startRow` on. Each block is checked as it is read. */
export async function* ssTableEntries(
  components: SsTableComponents,
  path: string,
  startRow = '',
): AsyncIterable<Entry> {
  const table = await openTable(components, path);
  try {
    yield* entriesOf(table, components.clock, startRow);
  } finally {
    table.close();
  }
}

/** Like `ssTableEntries`, of a file that is open. */
export async function* entriesOf(table: SsTable, clock: Clock, startRow = ''): AsyncIterable<Entry> {
  const cursor = table.cursor();
  const pacer = new Pacer(clock);
  try {
    cursor.seekRow(startRow);
    for (;;) {
      if (cursor.state === CursorState.needsLoad) await cursor.load();
      else if (cursor.state === CursorState.done) return;
      else {
        const { row, column, kind, timestamp, rangeEnd } = cursor;
        yield { row, column, kind, timestamp, rangeEnd, value: cursor.value() };
        cursor.next();
        if (pacer.due()) await pacer.pause();
      }
    }
  } finally {
    cursor.close();
  }
}

export function openTable({ fileSystem, codecs, clock }: SsTableComponents, path: string): Promise<SsTable> {
  const metrics = new Metrics();
  return SsTable.open({ fileSystem, codecs, clock, path, metrics, cache: new BlockCache({ limitBytes: 0, metrics }) });
}
