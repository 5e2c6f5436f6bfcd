/**
 * Chooses the tablets to move from one server to another, so that all have about the same number, and about the same
 * bytes. A pure function of the figures that the servers report.
 *
 * Invariant: carrying out its moves leads to a state for which it has none, so no tablet moves back: a move by size
 * never makes the numbers differ by more than one, and a move by number is made only if they differ by two.
 */
import { assert } from '../base/index.ts';
import type { MetadataKey } from '../metadata/index.ts';

export interface TabletLoad {
  readonly key: MetadataKey;
  readonly epoch: number;
  readonly sizeBytes: number;
}

export interface ServerLoad {
  readonly name: string;
  /** Those that may be moved. */
  readonly tablets: readonly TabletLoad[];
}

export interface Move {
  readonly tablet: TabletLoad;
  readonly from: string;
  readonly to: string;
}

/** A smaller difference is not worth a move, which makes a tablet's rows wait for a moment. */
const MIN_DIFFERENCE_BYTES = 64 * 1024 * 1024;

interface Side {
  readonly name: string;
  readonly tablets: TabletLoad[];
  sizeBytes: number;
}

/** At most `maxMoves` moves, the most useful first. */
export function chooseMoves(servers: readonly ServerLoad[], maxMoves: number): Move[] {
  const sides = servers.map(
    ({ name, tablets }): Side => ({
      name,
      tablets: [...tablets],
      sizeBytes: tablets.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    }),
  );
  const moves: Move[] = [];
  while (moves.length < maxMoves) {
    const move = byNumber(sides) ?? bySize(sides);
    if (move === undefined) break;
    assert(move.from !== move.to, 'a tablet is moved to another server');
    moves.push(move);
    carryOut(sides, move);
  }
  return moves;
}

function byNumber(sides: readonly Side[]): Move | undefined {
  const from = greatest(sides, ({ tablets }) => tablets.length);
  const to = greatest(sides, ({ tablets }) => -tablets.length);
  if (!from || !to || from.tablets.length - to.tablets.length < 2) return undefined;
  // the tablet that leaves the bytes most even
  const tablet = greatest(from.tablets, ({ sizeBytes }) => -Math.abs(from.sizeBytes - to.sizeBytes - 2 * sizeBytes));
  return tablet && { tablet, from: from.name, to: to.name };
}

function bySize(sides: readonly Side[]): Move | undefined {
  const from = greatest(sides, ({ sizeBytes }) => sizeBytes);
  const to = greatest(sides, ({ sizeBytes }) => -sizeBytes);
  if (!from || !to || from.tablets.length <= to.tablets.length) return undefined;
  const differenceBytes = from.sizeBytes - to.sizeBytes;
  if (differenceBytes < MIN_DIFFERENCE_BYTES) return undefined;
  const useful = from.tablets.filter(
    ({ sizeBytes }) => sizeBytes >= MIN_DIFFERENCE_BYTES / 4 && sizeBytes <= differenceBytes / 2,
  );
  const tablet = greatest(useful, ({ sizeBytes }) => sizeBytes);
  return tablet && { tablet, from: from.name, to: to.name };
}

function carryOut(sides: readonly Side[], { tablet, from, to }: Move): void {
  for (const side of sides) {
    if (side.name === from) {
      const at = side.tablets.indexOf(tablet);
      assert(at >= 0, 'a server gives away a tablet that it has');
      side.tablets.splice(at, 1);
      side.sizeBytes -= tablet.sizeBytes;
      assert(side.tablets.length > 0 || side.sizeBytes === 0, 'a server without tablets has no bytes');
    } else if (side.name === to) {
      side.tablets.push(tablet);
      side.sizeBytes += tablet.sizeBytes;
    }
  }
}

/** The first of those for which `of` is greatest. */
function greatest<T>(items: readonly T[], of: (item: T) => number): T | undefined {
  let best: T | undefined;
  for (const item of items) if (best === undefined || of(item) > of(best)) best = item;
  return best;
}
