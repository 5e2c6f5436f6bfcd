/**
 * The bytes of cells, by family: row key, family, qualifier, 8 for the timestamp, value, as in FamilyUsage.
 *
 * Hot path of every write and read: neighbouring cells of a family are added together, and nothing is allocated.
 */
import type { ByteString } from '../base/index.ts';
import type { ReadBatch } from './cell.ts';
import { type CellRun, isCellRun, type Mutations } from './cell-run.ts';
import type { Mutation } from './mutation.ts';

export const TIMESTAMP_BYTES = 8;
/** The input of an aggregate of numbers. */
const NUMBER_BYTES = 8;

/** Takes the sums. */
export interface ByteTally {
  /** Cells of the family, next to each other in one row. `bytes` 0: deletions. */
  add(family: string, bytes: number): void;
}

/** The cells that the mutations of a row write. */
export function tallyMutations(row: ByteString, mutations: Mutations, tally: ByteTally): void {
  if (isCellRun(mutations)) return tallyRun(row.length + TIMESTAMP_BYTES, mutations, tally);
  let family: string | undefined;
  let bytes = 0;
  for (const mutation of mutations) {
    if (mutation.kind === 'deleteFromRow') continue;
    if (mutation.family !== family) {
      if (family !== undefined) tally.add(family, bytes);
      family = mutation.family;
      bytes = 0;
    }
    bytes += addedBytes(row, mutation);
  }
  if (family !== undefined) tally.add(family, bytes);
}

function addedBytes(row: ByteString, mutation: Exclude<Mutation, { kind: 'deleteFromRow' }>): number {
  switch (mutation.kind) {
    case 'setCell':
      return cellBytes(row, mutation, mutation.value.length);
    case 'addToCell':
      return cellBytes(row, mutation, mutation.input instanceof Uint8Array ? mutation.input.length : NUMBER_BYTES);
    case 'mergeToCell':
      return cellBytes(row, mutation, mutation.state?.length ?? 0);
    case 'deleteFromColumn':
    case 'deleteFromFamily':
      return 0;
  }
}

function cellBytes(
  row: ByteString,
  { family, qualifier }: { readonly family: string; readonly qualifier: ByteString },
  valueBytes: number,
): number {
  return row.length + family.length + qualifier.length + TIMESTAMP_BYTES + valueBytes;
}

function tallyRun(rowBytes: number, { batch, from, length }: CellRun, tally: ByteTally): void {
  const { columns, moreFamilies, moreQualifiers, columnOf, starts, ends } = batch;
  let family: string | undefined;
  let bytes = 0;
  for (let at = from; at < from + length; at++) {
    const index = columnOf[at]!;
    const more = index - columns.length;
    const its = more < 0 ? columns[index]!.family : moreFamilies[more]!;
    if (its !== family) {
      if (family !== undefined) tally.add(family, bytes);
      family = its;
      bytes = 0;
    }
    const qualifierBytes =
      more < 0 ? columns[index]!.qualifier.length : moreQualifiers[2 * more + 1]! - moreQualifiers[2 * more]!;
    bytes += rowBytes + its.length + qualifierBytes + ends[at]! - starts[at]!;
  }
  if (family !== undefined) tally.add(family, bytes);
}

/** The cells of a batch of a read. `onRow` is called before the cells of each row's part. */
export function tallyBatch({ fragments }: ReadBatch, tally: ByteTally, onRow: () => void): void {
  for (const { row, cells } of fragments) {
    onRow();
    let family: string | undefined;
    let bytes = 0;
    for (const { family: its, qualifier, value } of cells) {
      if (its !== family) {
        if (family !== undefined) tally.add(family, bytes);
        family = its;
        bytes = 0;
      }
      bytes += row.length + its.length + qualifier.length + TIMESTAMP_BYTES + value.length;
    }
    if (family !== undefined) tally.add(family, bytes);
  }
}
