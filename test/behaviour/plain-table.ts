/**
 * The data model in its plainest form: a map of maps of maps of maps, changed by the same mutations. Slow, obvious, and the judge of everything
 * else. Deletions take what is there; GC rules are applied when rows are read, to the cells then visible.
 */

export type Step =
  | { readonly kind: 'set'; readonly family: string; readonly qualifier: string; readonly timestamp: bigint; readonly value: string }
  | { readonly kind: 'delete'; readonly family: string; readonly qualifier: string; readonly since?: bigint; readonly until?: bigint }
  | { readonly kind: 'deleteFamily'; readonly family: string }
  | { readonly kind: 'deleteRow' };

export interface PlainCell {
  readonly row: string;
  readonly family: string;
  readonly qualifier: string;
  readonly timestamp: bigint;
  readonly value: string;
}

type Versions = Map<bigint, string>;
type Columns = Map<string, Versions>;
type Families = Map<string, Columns>;

const byteOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'));

export class PlainTable {
  readonly #rows = new Map<string, Families>();
  readonly #maxVersions: ReadonlyMap<string, number>;

  constructor(maxVersions: ReadonlyMap<string, number>) {
    this.#maxVersions = maxVersions;
  }

  apply(row: string, steps: readonly Step[]): void {
    for (const step of steps) this.#step(row, step);
  }

  increment(row: string, family: string, qualifier: string, amount: bigint, timestampNow: bigint): bigint {
    const versions = this.#column(row, family, qualifier);
    const newest = [...versions.keys()].sort((a, b) => (a < b ? 1 : -1))[0];
    const old = newest === undefined ? 0n : Buffer.from(versions.get(newest) as string, 'latin1').readBigInt64BE();
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt.asIntN(64, old + amount));
    versions.set(newest !== undefined && newest > timestampNow ? newest : timestampNow, bytes.toString('latin1'));
    return bytes.readBigInt64BE();
  }

  dropRows(start: string, end: string | undefined): void {
    for (const row of [...this.#rows.keys()]) {
      if (byteOrder(row, start) >= 0 && (end === undefined || byteOrder(row, end) < 0)) this.#rows.delete(row);
    }
  }

  /** All visible cells in order. */
  cells(): PlainCell[] {
    const cells: PlainCell[] = [];
    for (const row of [...this.#rows.keys()].sort(byteOrder)) {
      const families = this.#rows.get(row) as Families;
      for (const family of [...families.keys()].sort(byteOrder)) {
        const columns = families.get(family) as Columns;
        for (const qualifier of [...columns.keys()].sort(byteOrder)) {
          const versions = [...(columns.get(qualifier) as Versions)].sort(([a], [b]) => (a < b ? 1 : -1));
          const kept = versions.slice(0, this.#maxVersions.get(family) ?? versions.length);
          for (const [timestamp, value] of kept) cells.push({ row, family, qualifier, timestamp, value });
        }
      }
    }
    return cells;
  }

  #step(row: string, step: Step): void {
    switch (step.kind) {
      case 'set':
        this.#column(row, step.family, step.qualifier).set(step.timestamp, step.value);
        break;
      case 'delete': {
        const versions = this.#column(row, step.family, step.qualifier);
        for (const timestamp of [...versions.keys()]) {
          if ((step.since === undefined || timestamp >= step.since) && (step.until === undefined || timestamp < step.until)) versions.delete(timestamp);
        }
        break;
      }
      case 'deleteFamily':
        this.#rows.get(row)?.delete(step.family);
        break;
      case 'deleteRow':
        this.#rows.delete(row);
        break;
    }
  }

  #column(row: string, family: string, qualifier: string): Versions {
    const families = this.#rows.get(row) ?? new Map<string, Columns>();
    this.#rows.set(row, families);
    const columns = families.get(family) ?? new Map<string, Versions>();
    families.set(family, columns);
    const versions = columns.get(qualifier) ?? new Map<bigint, string>();
    columns.set(qualifier, versions);
    return versions;
  }
}
