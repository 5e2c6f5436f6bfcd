/** What a table takes, and what the calls of clients have moved: usage and traffic, by family and together. */
import type { FamilyUsage } from './family-usage.ts';
import type { TableSchema } from './schema.ts';

/** Rows and bytes of cells that calls have moved. */
interface Moved {
  /** Rows that calls have changed; a call that changes a row of several families counts for each of them. */
  readonly rowsWritten: number;
  /** Rows of which cells were answered. Of a row that comes in several parts each counts. */
  readonly rowsRead: number;
}

/** The traffic of a family. Bytes of a cell: row key, family, qualifier, 8 for the timestamp, value. */
export interface FamilyTraffic extends Moved {
  readonly family: string;
  /** Bytes of the cells that were written. */
  readonly bytesIn: number;
  /** Bytes of the cells that were answered. */
  readonly bytesOut: number;
}

/** The traffic of a table since the start of each server. */
export interface TableTraffic extends Moved {
  /** Calls that read, by tablet: a read of three tablets counts three times. */
  readonly reads: number;
  /** Calls that write, by tablet; those that do both, such as read-modify-writes, count here alone. */
  readonly writes: number;
  readonly families: readonly FamilyTraffic[];
}

/** A family of a table: what it takes, what it may take, and its traffic. */
export interface FamilyTotals extends FamilyUsage, FamilyTraffic {
  /** Undefined: no limit. */
  readonly quotaBytes?: number;
}

export interface TableTotals extends Omit<TableTraffic, 'families'> {
  /** Undefined: no limit. */
  readonly quotaBytes?: number;
}

export interface TableUsage {
  /** By name. */
  readonly families: readonly FamilyTotals[];
  /** The sums of all families. Undefined for callers who do not see all of them. */
  readonly table?: TableTotals | undefined;
}

export const NO_TRAFFIC: TableTraffic = { reads: 0, writes: 0, rowsWritten: 0, rowsRead: 0, families: [] };

/** The sum of what servers have counted. */
export function sumTraffic(all: readonly TableTraffic[]): TableTraffic {
  const families = new Map<string, FamilyTraffic>();
  for (const each of all.flatMap((one) => one.families)) {
    const { family } = each;
    const sum = families.get(family) ?? noTraffic(family);
    families.set(family, {
      family,
      rowsWritten: sum.rowsWritten + each.rowsWritten,
      rowsRead: sum.rowsRead + each.rowsRead,
      bytesIn: sum.bytesIn + each.bytesIn,
      bytesOut: sum.bytesOut + each.bytesOut,
    });
  }
  const total = (of: (one: TableTraffic) => number): number => all.reduce((sum, one) => sum + of(one), 0);
  return {
    reads: total((one) => one.reads),
    writes: total((one) => one.writes),
    rowsWritten: total((one) => one.rowsWritten),
    rowsRead: total((one) => one.rowsRead),
    families: [...families.values()],
  };
}

/** Puts usage, quotas and traffic together, for the families of the schema. */
export function usageOfTable(
  schema: TableSchema,
  usage: readonly FamilyUsage[],
  { families, ...traffic }: TableTraffic,
): TableUsage {
  const usages = new Map(usage.map((each) => [each.family, each]));
  const movements = new Map(families.map((each) => [each.family, each]));
  const all = Object.values(schema.families).sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    families: all.map(({ name, quotaBytes }) => ({
      ...(usages.get(name) ?? noUsage(name)),
      ...(movements.get(name) ?? noTraffic(name)),
      ...(quotaBytes !== undefined && { quotaBytes }),
    })),
    table: { ...traffic, ...(schema.quotaBytes !== undefined && { quotaBytes: schema.quotaBytes }) },
  };
}

function noUsage(family: string): FamilyUsage {
  return { family, cells: 0, logicalBytes: 0, diskBytes: 0, memoryBytes: 0 };
}

function noTraffic(family: string): FamilyTraffic {
  return { family, rowsWritten: 0, rowsRead: 0, bytesIn: 0, bytesOut: 0 };
}

/** The bytes that a quota limits. */
export function quotaUsage({ diskBytes, memoryBytes }: FamilyUsage): number {
  return diskBytes + memoryBytes;
}

/** True where writes to the table may be refused because of a quota. */
export function hasQuota({ quotaBytes, families }: TableSchema): boolean {
  if (quotaBytes !== undefined) return true;
  for (const name in families) if (families[name]!.quotaBytes !== undefined) return true;
  return false;
}
