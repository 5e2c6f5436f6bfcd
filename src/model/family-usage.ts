/** The storage that a column family takes. */
export interface FamilyUsage {
  readonly family: string;
  /** Versions of columns, including those that a compaction would drop. */
  readonly cells: number;
  /** Sum over cells of row key, family and qualifier, 8 for the timestamp, and value. */
  readonly logicalBytes: number;
  /** Its share of SSTables: each file is divided by the families' logical bytes. */
  readonly diskBytes: number;
  /** Its share of memtables, and of the files of in-memory locality groups. */
  readonly memoryBytes: number;
}

/** The sum of the usages, by family name, ascending. */
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
