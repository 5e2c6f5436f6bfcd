/**
 * The usage of each column family of a tablet. The properties of SSTables hold their part; memtables are walked in
 * slices when it is requested, so that writes pay nothing for it.
 *
 * Versions that are hidden by newer ones or by deletions count until a compaction drops them.
 */
import type { Pacer } from '../../env/index.ts';
import type { Memtable } from '../../memtable/index.ts';
import {
  CursorState,
  familyOf,
  type FamilyUsage,
  isDeletion,
  storageFamily,
  sumUsages,
  type TableSchema,
} from '../../model/index.ts';
import { groupingOf } from './grouping.ts';
import type { TabletFile } from './tablet-file.ts';

const TIMESTAMP_BYTES = 8;

export interface UsageOf {
  readonly files: readonly TabletFile[];
  readonly memtables: readonly Memtable[];
  readonly schema: TableSchema;
  readonly pacer: Pacer;
}

/** All families of the schema, by name. */
export async function familyUsage({ files, memtables, schema, pacer }: UsageOf): Promise<FamilyUsage[]> {
  const names = new Map(
    Object.values(schema.families).map(({ name, generation }) => [storageFamily(name, generation), name]),
  );
  const usages: FamilyUsage[] = [...names.keys()].map((family) => ({
    family,
    cells: 0,
    logicalBytes: 0,
    diskBytes: 0,
    memoryBytes: 0,
  }));
  for (const file of files) usages.push(...usageOfFile(file, schema));
  for (const memtable of memtables) usages.push(...(await usageOfMemtable(memtable, pacer)));
  const named = usages.flatMap((usage) => {
    const name = names.get(usage.family);
    return name === undefined ? [] : [{ ...usage, family: name }];
  });
  return sumUsages(named);
}

function usageOfFile(file: TabletFile, schema: TableSchema): FamilyUsage[] {
  const { properties, sizeBytes, share } = file;
  const { families = [], compression } = properties;
  const totalBytes = families.reduce((sum, { logicalBytes }) => sum + logicalBytes, 0);
  const isInMemory = groupingOf(schema).tuning(file.group).inMemory === true || file.isInMemory;
  const inMemoryBytes = isInMemory ? share * compression.rawBytes : 0;
  return families.map(({ family, cells, logicalBytes }) => {
    const part = totalBytes === 0 ? 0 : logicalBytes / totalBytes;
    return {
      family,
      cells: Math.round(share * cells),
      logicalBytes: Math.round(share * logicalBytes),
      diskBytes: Math.round(part * sizeBytes),
      memoryBytes: Math.round(part * inMemoryBytes),
    };
  });
}

async function usageOfMemtable(memtable: Memtable, pacer: Pacer): Promise<FamilyUsage[]> {
  const found = new Map<string, { cells: number; logicalBytes: number }>();
  let totalBytes = 0;
  const cursor = memtable.cursor();
  try {
    for (cursor.seekRow(''); cursor.state === CursorState.ready; cursor.next()) {
      if (!isDeletion(cursor.kind)) {
        const family = familyOf(cursor.column);
        const bytes = cursor.row.length + cursor.column.length + TIMESTAMP_BYTES + cursor.valueLength;
        const tally = found.get(family) ?? { cells: 0, logicalBytes: 0 };
        tally.cells++;
        tally.logicalBytes += bytes;
        totalBytes += bytes;
        found.set(family, tally);
      }
      if (pacer.due()) await pacer.pause();
    }
  } finally {
    cursor.close();
  }
  const { sizeBytes } = memtable;
  return [...found].map(([family, { cells, logicalBytes }]) => ({
    family,
    cells,
    logicalBytes,
    diskBytes: 0,
    memoryBytes: Math.round((sizeBytes * logicalBytes) / totalBytes),
  }));
}
