/**
 * Chooses the tablets to move from one server to another, so that all have about the same number, and none much more
 * than its share of the requests or of the bytes. A pure function of the figures that the servers report.
 *
 * Invariants: carrying out its moves leads to a state for which it has none, and it moves no tablet twice. Numbers are
 * made even only when they differ by more than MAX_UNEVEN_SHARE, and then by the least number of moves. Requests and
 * bytes are moved only away from a server above its limit, and only to one that stays below all of its limits and
 * leaves the numbers that even: so each such move reduces what is above the limits, and no move raises it.
 */
import { assert } from '../base/index.ts';
import type { MetadataKey } from '../metadata/index.ts';

export interface TabletLoad {
  readonly key: MetadataKey;
  readonly epoch: number;
  readonly sizeBytes: number;
  /** Calls of clients a second, a whole number. */
  readonly requestRate: number;
  /** True when it counts and is not to be moved now. */
  readonly isFixed?: boolean;
  /** True when it is moved only to make numbers even: rates change, and it shall not move back and forth. */
  readonly wasMoved?: boolean;
}

export interface ServerLoad {
  readonly name: string;
  readonly tablets: readonly TabletLoad[];
}

export interface Move {
  readonly tablet: TabletLoad;
  readonly from: string;
  readonly to: string;
}

/** Numbers of tablets may differ by this share of the average, and always by one. */
const MAX_UNEVEN_SHARE = 0.1;
/** The number of tablets of a server that are compared for a move, so that a plan of very many takes little time. */
const MAX_COMPARED = 64;
/** A tablet that was moved lately is moved again if there is hardly another one. */
const MOVED_UNFITNESS = 10;
/** A server may have this much of the average. */
const LIMIT_SHARE = 1.25;

interface Measure {
  readonly of: (tablet: TabletLoad) => number;
  /** A server may have this much more than its limit by share: less is not worth a move. */
  readonly slack: number;
  /** A tablet with less is not moved for the sake of this measure. */
  readonly minUseful: number;
}

/** The first is evened out first. */
const MEASURES: readonly Measure[] = [
  { of: ({ requestRate }) => requestRate, slack: 100, minUseful: 10 },
  { of: ({ sizeBytes }) => sizeBytes, slack: 64 * 1024 * 1024, minUseful: 16 * 1024 * 1024 },
];

interface Side {
  readonly name: string;
  readonly tablets: TabletLoad[];
  /** By measure. */
  readonly sums: number[];
  /** The number of tablets that it is to have, once numbers are made even. */
  share: number;
}

interface State {
  readonly sides: readonly Side[];
  readonly averageNumber: number;
  /** By measure. */
  readonly averages: readonly number[];
  readonly limits: readonly number[];
}

/** All moves that are worthwhile, the most useful first. */
export function chooseMoves(servers: readonly ServerLoad[]): Move[] {
  const plan = planMoves(servers);
  let step = plan.next();
  while (!step.done) step = plan.next();
  return step.value;
}

/** `chooseMoves` in steps: a plan of tens of thousands of moves takes a third of a second. */
export function* planMoves(servers: readonly ServerLoad[]): Generator<void, Move[], void> {
  const sides = servers.map(
    ({ name, tablets }): Side => ({
      name,
      tablets: [...tablets],
      sums: MEASURES.map(({ of }) => tablets.reduce((sum, tablet) => sum + of(tablet), 0)),
      share: 0,
    }),
  );
  const averages = MEASURES.map((_, m) => average(sides.map(({ sums }) => sums[m]!)));
  const state: State = {
    sides,
    averageNumber: average(sides.map(({ tablets }) => tablets.length)),
    averages,
    limits: MEASURES.map(({ slack }, m) => LIMIT_SHARE * averages[m]! + slack),
  };
  // by tablet, the servers that it comes from and ends at
  const paths = new Map<TabletLoad, { readonly from: string; to: string }>();
  const move = (tablet: TabletLoad, from: Side, to: Side): void => {
    assert(from.name !== to.name, 'a tablet is moved to another server');
    carryOut(tablet, from, to);
    const path = paths.get(tablet);
    if (path === undefined) paths.set(tablet, { from: from.name, to: to.name });
    else path.to = to.name;
  };
  yield* evenNumbers(state, move);
  while (relieve(state, move)) yield;
  return [...paths].flatMap(([tablet, { from, to }]) => (from === to ? [] : [{ tablet, from, to }]));
}

type MoveTablet = (tablet: TabletLoad, from: Side, to: Side) => void;

/** Gives every server the average number, rounded: the fullest round up. */
function* evenNumbers({ sides, averageNumber, averages }: State, move: MoveTablet): Generator<void, void, void> {
  if (unevenness(sides) <= allowedUnevenness(averageNumber)) return;
  const least = Math.floor(averageNumber);
  const byNumber = [...sides].sort((a, b) => b.tablets.length - a.tablets.length);
  const roundedUp = sides.reduce((sum, { tablets }) => sum + tablets.length, 0) - least * sides.length;
  for (const [i, side] of byNumber.entries()) side.share = i < roundedUp ? least + 1 : least;
  const excess = ({ tablets, share }: Side): number => tablets.length - share;
  const donors = byNumber.filter((side) => excess(side) > 0);
  for (;;) {
    // those that cannot give any more are left as they are
    const from = greatest(donors, excess);
    const to = greatest(sides, (side) => -excess(side));
    if (from === undefined || to === undefined || excess(from) <= 0 || excess(to) >= 0) return;
    // each tablet takes an even part of what the one has too much, and the other too little
    const wanted = MEASURES.map((_, m) => {
      const surplus = (from.sums[m]! - averages[m]!) / excess(from);
      const room = (averages[m]! - to.sums[m]!) / -excess(to);
      return Math.max(0, (surplus + room) / 2);
    });
    const unfitness = (tablet: TabletLoad): number =>
      MEASURES.reduce(
        (sum, { of, slack }, m) => sum + Math.abs(of(tablet) - wanted[m]!) / (averages[m]! + slack),
        tablet.wasMoved ? MOVED_UNFITNESS : 0,
      );
    const tablet = greatest(sampleOf(from.tablets), (one) => -unfitness(one));
    if (tablet === undefined) donors.splice(donors.indexOf(from), 1);
    else move(tablet, from, to);
    yield;
  }
}

/** Those that may be moved, or, if there are many, some of them. */
function sampleOf(tablets: readonly TabletLoad[]): TabletLoad[] {
  const step = Math.max(1, tablets.length / MAX_COMPARED);
  const some: TabletLoad[] = [];
  for (let at = 0; at < tablets.length; at += step) some.push(tablets[Math.floor(at)]!);
  const movable = some.filter(({ isFixed }) => !isFixed);
  return movable.length > 0 ? movable : tablets.filter(({ isFixed }) => !isFixed).slice(0, MAX_COMPARED);
}

/** Moves one tablet away from a server that is above a limit. False: no such move is of use. */
function relieve(state: State, move: MoveTablet): boolean {
  const { sides, averages, limits } = state;
  for (const [m, { of }] of MEASURES.entries()) {
    const over = sides.filter(({ sums }) => sums[m]! > limits[m]!).sort((a, b) => b.sums[m]! - a.sums[m]!);
    if (over.length === 0) continue;
    const under = [...sides].sort((a, b) => a.sums[m]! - b.sums[m]!);
    for (const from of over) {
      const useful = usefulTablets(from, m, averages[m]!);
      for (const to of under) {
        if (to.sums[m]! >= averages[m]! || !staysEven(state, from, to)) continue;
        const tablet = useful.find((one) => MEASURES.every((each, i) => to.sums[i]! + each.of(one) <= limits[i]!));
        if (tablet === undefined) continue;
        assert(of(tablet) > 0, 'a move takes something away from a server above its limit');
        move(tablet, from, to);
        return true;
      }
    }
  }
  return false;
}

/** Tablets whose move brings the server closer to its share, the largest first. */
function usefulTablets({ tablets, sums }: Side, m: number, averageOfAll: number): TabletLoad[] {
  const { of, minUseful } = MEASURES[m]!;
  const surplus = sums[m]! - averageOfAll;
  return tablets
    .filter((tablet) => !tablet.isFixed && !tablet.wasMoved && of(tablet) >= minUseful && of(tablet) <= surplus)
    .sort((a, b) => of(b) - of(a));
}

/** True when the numbers of tablets are even enough after a move. */
function staysEven({ sides, averageNumber }: State, from: Side, to: Side): boolean {
  return unevenness(sides, from, to) <= allowedUnevenness(averageNumber);
}

function allowedUnevenness(averageNumber: number): number {
  return Math.max(1, Math.floor(MAX_UNEVEN_SHARE * averageNumber));
}

/** The difference between the greatest and the least number of tablets, after a move if one is given. */
function unevenness(sides: readonly Side[], from?: Side, to?: Side): number {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const side of sides) {
    const number = side.tablets.length + (side === from ? -1 : side === to ? 1 : 0);
    least = Math.min(least, number);
    most = Math.max(most, number);
  }
  return sides.length === 0 ? 0 : most - least;
}

function carryOut(tablet: TabletLoad, from: Side, to: Side): void {
  const at = from.tablets.indexOf(tablet);
  assert(at >= 0, 'a server gives away a tablet that it has');
  from.tablets.splice(at, 1);
  to.tablets.push(tablet);
  for (const [m, { of }] of MEASURES.entries()) {
    from.sums[m] = from.sums[m]! - of(tablet);
    to.sums[m] = to.sums[m]! + of(tablet);
    assert(from.tablets.length > 0 || from.sums[m] === 0, 'a server without tablets has no load');
  }
}

function average(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The first of those for which `of` is greatest. */
function greatest<T>(items: readonly T[], of: (item: T) => number): T | undefined {
  let best: T | undefined;
  let most = Number.NEGATIVE_INFINITY;
  for (const item of items) {
    const value = of(item);
    if (best !== undefined && value <= most) continue;
    best = item;
    most = value;
  }
  return best;
}
