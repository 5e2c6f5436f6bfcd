/** What a column family takes: the accounting of storage by family. */
export interface FamilyUsage {
  readonly family: string;
  /** Versions of columns, those included that a compaction would drop. */
  readonly cells: number;
  /** Sum over cells of row key, family and qualifier, 8 for the timestamp, and value. */
  readonly logicalBytes: number;
  /** Its share of SSTables: of a file by the family's logical bytes. */
  readonly diskBytes: number;
  /** Its share of memtables, and of the files of in-memory locality groups. */
  readonly memoryBytes: number;
}

/** The usages together, by family name, ascending. */
export function sumUsages(usages: readonly FamilyUsage[]): FamilyUsage[] {
  const sums = new Map<string, FamilyUsage>();
  for (const usage of usages) {
    const { family } = usage;
    const sum = sums.get(family);
    sums.set(
      family,
      sum === undefined
        ? usage
        : {
            family,
            cells: sum.cells + usage.cells,
            logicalBytes: sum.logicalBytes + usage.logicalBytes,
            diskBytes: sum.diskBytes + usage.diskBytes,
            memoryBytes: sum.memoryBytes + usage.memoryBytes,
          },
    );
  }
  return [...sums.values()].sort((a, b) => (a.family < b.family ? -1 : 1));
}
