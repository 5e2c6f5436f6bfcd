/**
 * One row of the data model in its plainest form: a map of maps of maps, changed by the same mutations. Slow, obvious,
 * and the judge of everything else. A row is a value: a change gives another row. Bytes are text with a character a
 * byte.
 *
 * Garbage collection: rules are applied when a row is read, to the versions then visible. What a rule has hidden once a
 * compaction may have removed by now, and it may not: such a version is in doubt. It shows again only where the rule is
 * relaxed or a newer version is deleted, and there alone both outcomes are right; one that should show and does not is
 * gone for good.
 */
import type { GcRule } from '../../src/embedded/index.ts';
import { type AggregateKind, aggregateInput, mergeAggregates } from '../../src/model/index.ts';

export type Step =
  | {
      readonly kind: 'set';
      readonly family: string;
      readonly qualifier: string;
      readonly timestamp: bigint;
      readonly value: string;
    }
  | {
      readonly kind: 'add';
      readonly family: string;
      readonly qualifier: string;
      readonly timestamp: bigint;
      readonly input: bigint | string;
    }
  | {
      readonly kind: 'delete';
      readonly family: string;
      readonly qualifier: string;
      readonly since?: bigint;
      readonly until?: bigint;
    }
  | { readonly kind: 'deleteFamily'; readonly family: string }
  | { readonly kind: 'deleteRow' };

export interface PlainCell {
  readonly row: string;
  readonly family: string;
  readonly qualifier: string;
  readonly timestamp: bigint;
  readonly value: string;
}

export interface PlainFamily {
  readonly gcRule?: GcRule | undefined;
  readonly aggregate?: AggregateKind | undefined;
}

export type PlainFamilies = ReadonlyMap<string, PlainFamily>;

interface Version {
  readonly value: string;
  /** A compaction may have removed it. */
  readonly inDoubt: boolean;
}

type Versions = ReadonlyMap<bigint, Version>;
type Columns = ReadonlyMap<string, Versions>;
export type PlainRow = ReadonlyMap<string, Columns>;

export const NO_CELLS: PlainRow = new Map();

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
export const byteOrder = (a: string, b: string): number => Buffer.compare(bytesOf(a), bytesOf(b));
const newestFirst = (versions: Versions): [bigint, Version][] => [...versions].sort(([a], [b]) => (a < b ? 1 : -1));

/** `nowMicros`: when it is done, which decides what rules hide before it. */
export function changed(row: PlainRow, steps: readonly Step[], families: PlainFamilies, nowMicros: number): PlainRow {
  let next = doubted(row, families, nowMicros);
  for (const step of steps) next = afterStep(next, step, families);
  return next;
}

/** The row with the integer in the column grown by `amount`, and the integer; the newest version counts. */
export function incremented(
  row: PlainRow,
  families: PlainFamilies,
  column: { family: string; qualifier: string; amount: bigint; nowMicros: number },
): [PlainRow, bigint] {
  const { family, qualifier, amount, nowMicros } = column;
  const [newest] = newestFirst(row.get(family)?.get(qualifier) ?? new Map());
  const now = BigInt(nowMicros);
  const value = Buffer.alloc(8);
  value.writeBigInt64BE(
    BigInt.asIntN(64, (newest === undefined ? 0n : bytesOf(newest[1].value).readBigInt64BE()) + amount),
  );
  const timestamp = newest !== undefined && newest[0] > now ? newest[0] : now;
  return [
    changed(row, [{ kind: 'set', family, qualifier, timestamp, value: textOf(value) }], families, nowMicros),
    value.readBigInt64BE(),
  ];
}

/** Cells that rules hide now are in doubt from now on. To be called before the rules change. */
export function doubted(row: PlainRow, families: PlainFamilies, nowMicros: number): PlainRow {
  return eachColumn(row, (versions, family) => {
    const rule = families.get(family)?.gcRule;
    if (rule === undefined) return versions;
    const marked = newestFirst(versions).map(([timestamp, version], index): [bigint, Version] => [
      timestamp,
      version.inDoubt || keeps(rule, index, timestamp, nowMicros) ? version : { ...version, inDoubt: true },
    ]);
    return new Map(marked);
  });
}

/** The cells that a read shows if nothing in doubt was removed. */
export function cellsOf(key: string, row: PlainRow, families: PlainFamilies, nowMicros: number): PlainCell[] {
  const cells: PlainCell[] = [];
  for (const family of [...row.keys()].sort(byteOrder)) {
    const columns = row.get(family) as Columns;
    for (const qualifier of [...columns.keys()].sort(byteOrder)) {
      for (const [timestamp, { value }] of shown(
        newestFirst(columns.get(qualifier) as Versions),
        families.get(family),
        nowMicros,
      )) {
        cells.push({ row: key, family, qualifier, timestamp, value });
      }
    }
  }
  return cells;
}

/** True when a read at that time may have shown these cells of the row. */
export function mayShow(
  key: string,
  row: PlainRow,
  cells: readonly PlainCell[],
  families: PlainFamilies,
  nowMicros: number,
): boolean {
  const left = resolved(row, cells, families, nowMicros);
  const want = cellsOf(key, left, families, nowMicros);
  return want.length === cells.length && want.every((cell, i) => isSame(cell, cells[i] as PlainCell));
}

/** The row without what these cells, read at that time, show to be gone. */
export function resolved(
  row: PlainRow,
  cells: readonly PlainCell[],
  families: PlainFamilies,
  nowMicros: number,
): PlainRow {
  const seen = new Set(cells.map(({ family, qualifier, timestamp }) => `${family}:${qualifier}@${timestamp}`));
  return eachColumn(row, (versions, family, qualifier) => {
    const sorted = newestFirst(versions);
    if (!sorted.some(([, { inDoubt }]) => inDoubt)) return versions;
    const isThere = ([timestamp, { inDoubt }]: [bigint, Version]): boolean =>
      !inDoubt || seen.has(`${family}:${qualifier}@${timestamp}`);
    const gone = sorted.filter((one) => {
      if (isThere(one)) return false;
      const withIt = sorted.filter((other) => other === one || isThere(other));
      return shown(withIt, families.get(family), nowMicros).includes(one);
    });
    return gone.length === 0 ? versions : new Map(sorted.filter((one) => !gone.includes(one)));
  });
}

/** Cells in order, for people. */
export function describeCells(cells: readonly PlainCell[]): string {
  const text = (bytes: string): string =>
    bytes.length > 24 ? `${JSON.stringify(bytes.slice(0, 24))}… (${bytes.length} bytes)` : JSON.stringify(bytes);
  return (
    cells
      .map(({ family, qualifier, timestamp, value }) => `${family}:${qualifier}@${timestamp}=${text(value)}`)
      .join(' ') || '(nothing)'
  );
}

function afterStep(row: PlainRow, step: Step, families: PlainFamilies): PlainRow {
  switch (step.kind) {
    case 'set':
      return withVersions(row, step, (versions) =>
        new Map(versions).set(step.timestamp, { value: step.value, inDoubt: false }),
      );
    case 'add': {
      const kind = families.get(step.family)?.aggregate as AggregateKind;
      const added = aggregateInput(kind, typeof step.input === 'string' ? bytesOf(step.input) : step.input);
      return withVersions(row, step, (versions) => {
        const before = versions.get(step.timestamp);
        const state = before === undefined ? added : mergeAggregates(kind, bytesOf(before.value), added);
        return new Map(versions).set(step.timestamp, { value: textOf(state), inDoubt: false });
      });
    }
    case 'delete':
      return withVersions(row, step, (versions) => {
        const isDeleted = (timestamp: bigint): boolean =>
          (step.since === undefined || timestamp >= step.since) && (step.until === undefined || timestamp < step.until);
        return new Map([...versions].filter(([timestamp]) => !isDeleted(timestamp)));
      });
    case 'deleteFamily':
      return new Map([...row].filter(([family]) => family !== step.family));
    case 'deleteRow':
      return NO_CELLS;
  }
}

function withVersions(
  row: PlainRow,
  { family, qualifier }: { family: string; qualifier: string },
  change: (versions: Versions) => Versions,
): PlainRow {
  const columns = new Map(row.get(family));
  const versions = change(columns.get(qualifier) ?? new Map());
  if (versions.size > 0) columns.set(qualifier, versions);
  else columns.delete(qualifier);
  const families = new Map(row);
  if (columns.size > 0) families.set(family, columns);
  else families.delete(family);
  return families;
}

function eachColumn(
  row: PlainRow,
  change: (versions: Versions, family: string, qualifier: string) => Versions,
): PlainRow {
  return new Map(
    [...row].map(([family, columns]) => [
      family,
      new Map([...columns].map(([qualifier, versions]) => [qualifier, change(versions, family, qualifier)])),
    ]),
  );
}

function shown(
  versions: readonly [bigint, Version][],
  family: PlainFamily | undefined,
  nowMicros: number,
): [bigint, Version][] {
  const rule = family?.gcRule;
  return rule === undefined
    ? [...versions]
    : versions.filter(([timestamp], index) => keeps(rule, index, timestamp, nowMicros));
}

/** `index`: of the visible versions of the column, newest = 0. */
function keeps(rule: GcRule, index: number, timestamp: bigint, nowMicros: number): boolean {
  switch (rule.kind) {
    case 'maxVersions':
      return index < rule.versions;
    case 'maxAge':
      return timestamp >= BigInt(nowMicros) - BigInt(rule.ageMicros);
    case 'union':
      return rule.rules.every((part) => keeps(part, index, timestamp, nowMicros));
    case 'intersection':
      return rule.rules.length === 0 || rule.rules.some((part) => keeps(part, index, timestamp, nowMicros));
  }
}

function isSame(a: PlainCell, b: PlainCell): boolean {
  return (
    a.row === b.row &&
    a.family === b.family &&
    a.qualifier === b.qualifier &&
    a.timestamp === b.timestamp &&
    a.value === b.value
  );
}
