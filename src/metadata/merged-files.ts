/**
 * The files of two neighbours that become one tablet. Each file is listed once, for the rows for which either tablet
 * listed it. For a file that both have listed since a split that may be all rows. For any other it is the range of its
 * one tablet: its rows in the other's range were compacted away there, and perhaps also the deletions that hid them
 * (docs/decisions/0015-splits-and-merges.md).
 */
import { assert, ownOf } from '../base/index.ts';
import { normalizeRanges, type RowRange } from '../model/index.ts';
import type { MetadataRow } from './metadata-row.ts';

type Files = Pick<MetadataRow, 'files' | 'clips'>;

export function mergedFiles(low: MetadataRow, high: MetadataRow): Files {
  const groups = new Set([...Object.keys(low.files), ...Object.keys(high.files)]);
  const files: Record<string, readonly string[]> = Object.create(null);
  const clips: Record<string, readonly RowRange[]> = Object.create(null);
  for (const group of groups) {
    const paths = mergedLists(ownOf(low.files, group) ?? [], ownOf(high.files, group) ?? []);
    files[group] = paths;
    for (const path of paths) {
      const parts = normalizeRanges([...partsOf(low, group, path), ...partsOf(high, group, path)]);
      assert(parts.length > 0, 'a file of a merged tablet is listed for some rows');
      const [first] = parts;
      const isWhole = parts.length === 1 && first?.start === low.range.start && first.end === high.range.end;
      if (!isWhole) clips[path] = parts;
    }
  }
  return { files, clips: Object.keys(clips).length === 0 ? undefined : clips };
}

/** The rows for which the tablet lists the file. */
function partsOf({ files, clips, range }: MetadataRow, group: string, path: string): readonly RowRange[] {
  if (!(ownOf(files, group) ?? []).includes(path)) return [];
  return ownOf(clips, path) ?? [range];
}

/**
 * Keeps both orders, which agree on their common files; files of different tablets share no row, so the order between
 * them does not matter.
 */
function mergedLists(a: readonly string[], b: readonly string[]): string[] {
  const merged: string[] = [];
  const taken = new Set<string>();
  const take = (path: string): void => {
    if (!taken.has(path)) merged.push(path);
    taken.add(path);
  };
  let at = 0;
  for (const path of a) {
    const inB = b.indexOf(path, at);
    for (; at <= inB; at++) take(b[at]!);
    take(path);
  }
  for (const path of b.slice(at)) take(path);
  for (const list of [a, b]) assertOrderKept(merged, list);
  return merged;
}

/** Newer files come before older ones in both lists: a merge must keep that order. */
function assertOrderKept(merged: readonly string[], list: readonly string[]): void {
  let at = -1;
  for (const path of list) {
    const next = merged.indexOf(path, at + 1);
    assert(next > at, 'a merge of two tablets keeps all their files, in their order');
    at = next;
  }
}
