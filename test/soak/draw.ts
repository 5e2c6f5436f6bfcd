/** Random rows, mutations, rules and layouts of locality groups for the soak. */
import type { GcRule, GroupLayout } from '../../src/embedded/index.ts';
import type { Random } from '../../src/env/index.ts';
import type { PlainFamilies, Step } from '../behaviour/plain-row.ts';

export const WRITERS = 6;
const ROWS_EACH = 40;
const HOUR_MICROS = 3_600_000_000;

export class Draw {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Below `limit`. */
  number(limit: number): number {
    return Math.floor(this.#random.float() * limit);
  }

  one<T>(of: readonly T[]): T {
    return of[this.number(of.length)] as T;
  }

  chance(share: number): boolean {
    return this.#random.float() < share;
  }
}

export const keyOf = (writer: number, row: number): string => `w${writer}-${String(row).padStart(3, '0')}`;
export const keysOf = (writer: number): string[] => Array.from({ length: ROWS_EACH }, (_, row) => keyOf(writer, row));
export const SPLITS = ['w1-020', 'w3', 'w4-031'];

/** Deleted and made again now and then. */
export const PASSING_FAMILY = 'passing';
export const COUNTERS = 'n';
export const PLAIN = 'f';

export const FAMILIES: PlainFamilies = new Map([
  [PLAIN, {}],
  ['capped', { gcRule: { kind: 'maxVersions', versions: 2 } }],
  ['aged', { gcRule: { kind: 'maxAge', ageMicros: HOUR_MICROS } }],
  [
    'mixed',
    {
      gcRule: {
        kind: 'intersection',
        rules: [
          { kind: 'maxVersions', versions: 1 },
          { kind: 'maxAge', ageMicros: HOUR_MICROS },
        ],
      },
    },
  ],
  [PASSING_FAMILY, {}],
  [COUNTERS, { gcRule: { kind: 'maxVersions', versions: 1 } }],
  ['sum', { aggregate: 'sum' }],
  ['least', { aggregate: 'min' }],
  ['most', { aggregate: 'max' }],
  ['seen', { aggregate: 'hll' }],
]);

/** Families whose rule changes, and to what. */
export function drawRule(draw: Draw): { readonly family: string; readonly gcRule: GcRule | undefined } {
  const versions: GcRule = { kind: 'maxVersions', versions: 1 + draw.number(4) };
  const age: GcRule = { kind: 'maxAge', ageMicros: HOUR_MICROS * (1 + draw.number(5)) };
  const rule = draw.one<GcRule | undefined>([
    versions,
    age,
    { kind: 'union', rules: [versions, age] },
    { kind: 'intersection', rules: [versions, age] },
    undefined,
  ]);
  return { family: draw.one(['capped', 'aged', 'mixed']), gcRule: rule };
}

export function drawGroups(draw: Draw): GroupLayout {
  const names = [...FAMILIES.keys()].filter((name) => name !== PASSING_FAMILY);
  const kinds = ['none', 'lz4', 'zstd', 'zstd-dict', 'two-pass'] as const;
  const group = (families: readonly string[]): GroupLayout[string] => ({
    families,
    compression: { kind: draw.one(kinds) },
    bloomFilter: draw.one(['none', 'row', 'row-column'] as const),
    ...(draw.chance(0.3) ? { inMemory: true } : {}),
  });
  const hot = names.filter(() => draw.chance(0.3));
  const cold = names.filter((name) => !hot.includes(name) && draw.chance(0.4));
  return { ...(hot.length > 0 ? { hot: group(hot) } : {}), ...(cold.length > 0 ? { cold: group(cold) } : {}) };
}

/** `hasPassing`: whether there is that family now. */
export function drawSteps(draw: Draw, nowMicros: number, hasPassing: boolean): Step[] {
  const steps: Step[] = [];
  for (let left = 1 + draw.number(4); left > 0; left--) steps.push(drawStep(draw, nowMicros, hasPassing));
  return steps;
}

const plainFamilies = (hasPassing: boolean): string[] => [
  PLAIN,
  'capped',
  'aged',
  'mixed',
  ...(hasPassing ? [PASSING_FAMILY] : []),
];
const AGGREGATES = ['sum', 'least', 'most', 'seen'];

function drawStep(draw: Draw, nowMicros: number, hasPassing: boolean): Step {
  const family = draw.one(plainFamilies(hasPassing));
  const qualifier = draw.one(['', 'a', 'b', 'b\x00']);
  const drawn = draw.number(100);
  if (drawn < 55)
    return { kind: 'set', family, qualifier, timestamp: drawTime(draw, nowMicros), value: drawValue(draw) };
  if (drawn < 72) {
    const aggregate = draw.one(AGGREGATES);
    return {
      kind: 'add',
      family: aggregate,
      qualifier,
      timestamp: BigInt(draw.number(2)),
      input: aggregate === 'seen' ? `visitor ${draw.number(5000)}` : BigInt(draw.number(2000) - 1000),
    };
  }
  if (drawn < 80)
    return { kind: 'delete', family: draw.chance(0.3) ? draw.one([...AGGREGATES, COUNTERS]) : family, qualifier };
  if (drawn < 90) {
    const [a, b] = [drawTime(draw, nowMicros), drawTime(draw, nowMicros)];
    return {
      kind: 'delete',
      family,
      qualifier,
      since: a < b ? a : b,
      ...(draw.chance(0.5) ? { until: a < b ? b : a } : {}),
    };
  }
  if (drawn < 96)
    return { kind: 'deleteFamily', family: draw.chance(0.3) ? draw.one([...AGGREGATES, COUNTERS]) : family };
  return { kind: 'deleteRow' };
}

/** Few different ones, most within the hours that rules speak of. */
function drawTime(draw: Draw, nowMicros: number): bigint {
  if (draw.chance(0.1)) return BigInt(draw.number(4));
  const quarter = HOUR_MICROS / 4;
  return BigInt((Math.floor(nowMicros / quarter) - draw.number(24)) * quarter);
}

function drawValue(draw: Draw): string {
  const length = draw.chance(0.05) ? 2000 + draw.number(20_000) : draw.number(200);
  // half of it compresses
  let value = 'value '.repeat(length / 12);
  while (value.length < length) value += String.fromCharCode(draw.number(256));
  return value;
}
