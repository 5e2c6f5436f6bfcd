/**
 * The faults of a cluster test, and the order in which a seed draws them: a deck of all kinds, shuffled again and
 * again, so that a long run meets each of them.
 */
import { SeededRandom } from '../../src/env/index.ts';
import type { Role } from './network.ts';
import type { StoreKind } from './store.ts';

export type FaultKind =
  | 'kill a server'
  | 'kill two servers'
  | 'kill all servers'
  | 'kill a server and the master'
  | 'start a killed server at once'
  | 'stop a server for longer than its lease'
  | 'stop a server shortly'
  | 'kill the master'
  | 'stop the master for longer than its lease'
  | 'kill the leader of etcd'
  | 'stop the leader of etcd for longer than a lease'
  | 'slow etcd'
  | 'refusing, slow store'
  | 'cut';

export interface Fault {
  readonly kind: FaultKind;
  /** A cut loses the packets from the first to the second. */
  readonly between?: readonly [from: Role, to: Role];
  /** How long it lasts where it does not end by itself. */
  readonly holdMs: number;
  /** Chooses among processes. */
  readonly choice: number;
}

/** Pairs of roles between which there are connections, in each direction. */
const CUTS: readonly (readonly [Role, Role])[] = [
  ['client', 'server'],
  ['server', 'client'],
  ['server', 'server'],
  ['server', 'master'],
  ['master', 'server'],
  ['server', 'etcd'],
  ['etcd', 'server'],
  ['server', 'store'],
  ['store', 'server'],
  ['master', 'etcd'],
  ['etcd', 'master'],
  ['master', 'store'],
  ['store', 'master'],
  ['etcd', 'etcd'],
];

/** A session's lease, and how long after it a stopped process goes on at least. */
const LEASE_MS = 10_000;
const BEYOND_LEASE_MS = 4000;
const SLOW_ETCD_MS = 30_000;
const SLOW_STORE_MS = 20_000;

/** The shortest and the longest time of each kind; a cut may be shorter or longer than the lease. */
const HOLDS: Partial<Record<FaultKind, readonly [leastMs: number, mostMs: number]>> = {
  'stop a server for longer than its lease': [LEASE_MS + BEYOND_LEASE_MS, LEASE_MS + 2 * BEYOND_LEASE_MS],
  'stop a server shortly': [1000, LEASE_MS / 2],
  'stop the master for longer than its lease': [LEASE_MS + BEYOND_LEASE_MS, LEASE_MS + 2 * BEYOND_LEASE_MS],
  'kill the leader of etcd': [3000, 8000],
  'stop the leader of etcd for longer than a lease': [LEASE_MS + BEYOND_LEASE_MS, LEASE_MS + 2 * BEYOND_LEASE_MS],
  'slow etcd': [SLOW_ETCD_MS, SLOW_ETCD_MS],
  'refusing, slow store': [SLOW_STORE_MS, SLOW_STORE_MS],
  cut: [3000, 2 * LEASE_MS],
};

export interface DrawOptions {
  readonly seed: number;
  readonly servers: number;
  readonly store: StoreKind;
  /** Whether machines can be cut from one another. */
  readonly canCut: boolean;
  /** Only the faults that matter most, one after the other. */
  readonly isShort: boolean;
  /** Only those whose names contain it. */
  readonly only: string;
}

const SHORT: readonly FaultKind[] = ['kill the master', 'kill a server', 'stop a server for longer than its lease'];
const SHORT_CUT = ['server', 'etcd'] as const;

type Card = Pick<Fault, 'kind' | 'between'>;

/** The faults of a run: those of a short one once, otherwise without an end. */
export function* drawFaults({ seed, servers, store, canCut, isShort, only }: DrawOptions): Generator<Fault> {
  const random = new SeededRandom(seed);
  const kinds: FaultKind[] = [
    'kill a server',
    ...(servers > 3 ? (['kill two servers'] as const) : []),
    'kill all servers',
    'kill a server and the master',
    'start a killed server at once',
    'stop a server for longer than its lease',
    'stop a server shortly',
    'kill the master',
    'stop the master for longer than its lease',
    'kill the leader of etcd',
    'stop the leader of etcd for longer than a lease',
    'slow etcd',
    ...(store === 's3' ? (['refusing, slow store'] as const) : []),
  ];
  const cuts = CUTS.filter((roles) => canCut && (store === 's3' || !roles.includes('store')));
  const full: Card[] = [
    ...kinds.map((kind) => ({ kind })),
    ...cuts.map((between) => ({ kind: 'cut', between }) as const),
  ];
  const short: Card[] = [
    ...SHORT.map((kind) => ({ kind })),
    ...(canCut ? [{ kind: 'cut', between: SHORT_CUT } as const] : []),
  ];
  const asked = [...(isShort ? short : full)].filter((card) => nameOf(card).includes(only));
  if (asked.length === 0) return;
  do {
    for (const card of isShort ? asked : shuffled(asked, random)) {
      const [leastMs, mostMs] = HOLDS[card.kind] ?? [0, 0];
      yield { ...card, holdMs: leastMs + random.float() * (mostMs - leastMs), choice: random.float() };
    }
  } while (!isShort);
}

function shuffled<T>(cards: readonly T[], random: SeededRandom): readonly T[] {
  const deck = [...cards];
  for (let i = deck.length - 1; i > 0; i--) {
    const j = Math.floor(random.float() * (i + 1));
    [deck[i], deck[j]] = [deck[j]!, deck[i]!];
  }
  return deck;
}

export const nameOf = ({ kind, between }: Pick<Fault, 'kind' | 'between'>): string =>
  between === undefined ? kind : `cut from ${between[0]} to ${between[1]}`;
