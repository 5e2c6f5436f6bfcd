/**
 * Reconstructs METADATA from the lineage that SSTables state (docs/formats/sstable.md). Pure.
 *
 * The ends of all files' ranges cut a table into parts; of each part the files that count are those that no other makes
 * superfluous: compactions leave the files they replaced, and a crash leaves files that were never committed.
 * Neighbouring parts with the same files are one tablet.
 *
 * Invariant: of a family of a tablet, every record of the log up to its redo point is in the tablet's files exactly
 * once; later records are in the logs or nowhere.
 */
import type { ByteString } from '../base/index.ts';
import { isAfter, type RedoPoint } from '../commitlog/index.ts';
import { intersectRanges, isEmptyRange, type RowRange } from '../model/index.ts';
import type { SsTableLayout } from '../sstable/index.ts';

export interface PlacedFile {
  readonly path: string;
  readonly group: string;
  readonly range: RowRange;
  /** Families of which it holds every record between `since` and `newest`, as stored. */
  readonly families: readonly string[];
  /** Families of which it has an entry. */
  readonly held: readonly string[];
  readonly since: RedoPoint;
  readonly newest: RedoPoint;
  readonly createdMicros: number;
  /** No server has given a later time to a cell in it. */
  readonly lastServerMicros: number;
}

export interface PlannedTablet {
  readonly range: RowRange;
  /** Newest first. */
  readonly files: readonly PlacedFile[];
  /** By stored family, the last record in files. A family that no file covers is missing. */
  readonly redo: ReadonlyMap<string, RedoPoint>;
}

const BEGINNING: RedoPoint = Object.freeze({ epoch: 0, sequence: 0 });

/** Undefined if the file does not state enough of its lineage. */
export function placedFile({ path, properties }: SsTableLayout): PlacedFile | undefined {
  const { lineage, newest, group, families = [] } = properties;
  if (lineage === undefined || newest === undefined) return undefined;
  const createdMicros = Number(properties.createdMicros);
  return {
    path,
    group,
    range: lineage.range,
    families: lineage.families,
    held: families.map(({ family }) => family),
    since: lineage.since ?? BEGINNING,
    newest,
    createdMicros,
    lastServerMicros: properties.lastServerMicros ?? Math.min(createdMicros, Number.MAX_SAFE_INTEGER),
  };
}

/** The tablets of one table. `families`: those that it has, as stored; entries of other families no longer count. */
export function planTablets(files: readonly PlacedFile[], families: ReadonlySet<string>): PlannedTablet[] {
  const tablets: PlannedTablet[] = [];
  for (const range of partsOf(files)) {
    const inPart = files.filter((file) => !isEmptyRange(intersectRanges(file.range, range)));
    const counting = inPart
      .filter((file) => !isSuperfluous(file, inPart, families))
      .sort((a, b) => compare(b.newest, a.newest) || (a.path < b.path ? -1 : 1));
    const before = tablets.at(-1);
    if (before && before.files.length === counting.length && before.files.every((file, i) => file === counting[i])) {
      tablets[tablets.length - 1] = { ...before, range: { start: before.range.start, end: range.end } };
    } else {
      tablets.push({ range, files: counting, redo: redoPoints(counting) });
    }
  }
  return tablets;
}

/**
 * Two files that share some records of a family while neither holds all of the other's: no committed compaction leaves
 * such files.
 */
export function overlaps({ files }: PlannedTablet): [PlacedFile, PlacedFile][] {
  const found: [PlacedFile, PlacedFile][] = [];
  for (const [i, a] of files.entries()) {
    for (const b of files.slice(i + 1))
      if (isAfter(b.newest, a.since) && a.held.some((family) => b.held.includes(family))) found.push([a, b]);
  }
  return found;
}

function partsOf(files: readonly PlacedFile[]): RowRange[] {
  const cuts = new Set<ByteString>();
  for (const { range } of files) {
    if (range.start !== '') cuts.add(range.start);
    if (range.end !== undefined) cuts.add(range.end);
  }
  const starts = ['', ...[...cuts].sort()];
  return starts.map((start, i) => ({ start, end: starts[i + 1] }));
}

/** True if for each family that counts another file holds all records that this one holds. */
function isSuperfluous(file: PlacedFile, others: readonly PlacedFile[], families: ReadonlySet<string>): boolean {
  const larger = others.filter((other) => other !== file && holdsAll(other, file));
  const counting = file.held.filter((family) => families.has(family));
  if (counting.length === 0) return larger.some((other) => other.group === file.group);
  return counting.every((family) => larger.some((other) => other.families.includes(family)));
}

/** If two files hold the same records, the later one counts. */
function holdsAll(file: PlacedFile, other: PlacedFile): boolean {
  if (isAfter(file.since, other.since) || isAfter(other.newest, file.newest)) return false;
  if (isAfter(other.since, file.since) || isAfter(file.newest, other.newest)) return true;
  return (
    file.createdMicros > other.createdMicros || (file.createdMicros === other.createdMicros && file.path > other.path)
  );
}

function redoPoints(files: readonly PlacedFile[]): Map<string, RedoPoint> {
  const redo = new Map<string, RedoPoint>();
  for (const { families, newest } of files) {
    for (const family of families) if (isAfter(newest, redo.get(family) ?? BEGINNING)) redo.set(family, newest);
  }
  return redo;
}

function compare(a: RedoPoint, b: RedoPoint): number {
  return a.epoch - b.epoch || a.sequence - b.sequence;
}
