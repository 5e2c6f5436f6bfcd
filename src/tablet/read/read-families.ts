/**
 * The families of a table prepared for one read: by the name under which they are stored, each with its GC rule at the
 * "now" of the read.
 */
import { derived } from '../../base/index.ts';
import type { Clock } from '../../env/index.ts';
import type { ColumnSpan } from '../../filter/index.ts';
import {
  type AggregateKind,
  type ColumnKey,
  familyOfTable,
  type GcRule,
  storageFamily,
  type TableSchema,
  type VersionKeeper,
  versionKeeper,
} from '../../model/index.ts';

export interface ReadFamily {
  readonly name: string;
  readonly keeps: VersionKeeper;
  /** True if the rule counts versions, so that none may be skipped unseen. */
  readonly countsVersions: boolean;
  readonly aggregate: AggregateKind | undefined;
}

export class ReadFamilies {
  /** The names that users know. */
  readonly names: readonly string[];
  readonly #byStored = new Map<string, ReadFamily>();
  readonly #schema: TableSchema;
  readonly #renamed: boolean;

  constructor(schema: TableSchema, nowMicros: number) {
    this.#schema = schema;
    this.#renamed = isRenamed(schema);
    this.names = Object.keys(schema.families);
    for (const family of Object.values(schema.families)) {
      this.#byStored.set(storageFamily(family.name, family.generation), {
        name: family.name,
        keeps: versionKeeper(family.gcRule, nowMicros),
        countsVersions: family.gcRule !== undefined && countsVersions(family.gcRule),
        aggregate: family.valueType?.aggregate?.kind,
      });
    }
  }

  /** Returns the same object while the schema stays, unless a rule depends on the time. */
  static of(schema: TableSchema, clock: Pick<Clock, 'nowMicros'>): ReadFamilies {
    return timelessFamilies(schema) ?? new ReadFamilies(schema, clock.nowMicros());
  }

  get(stored: string): ReadFamily | undefined {
    return this.#byStored.get(stored);
  }

  readonly aggregateOf = (stored: string): AggregateKind | undefined => this.#byStored.get(stored)?.aggregate;

  /** Spans over the names of families as spans over the names under which they are stored. */
  storedSpans(spans: readonly ColumnSpan[]): readonly ColumnSpan[] {
    if (!this.#renamed) return spans;
    return spans.map(({ start, end }) => ({
      start: this.#stored(start),
      end: end === undefined ? undefined : this.#stored(end),
    }));
  }

  #stored(column: ColumnKey): ColumnKey {
    const name = /^[^\0\x01]*/.exec(column)?.[0] ?? '';
    return storageFamily(name, familyOfTable(this.#schema, name)?.generation) + column.slice(name.length);
  }
}

/** True if a family is stored under another name than its own. */
export const isRenamed = derived((schema: TableSchema): boolean =>
  Object.values(schema.families).some((family) => family.generation !== undefined && family.generation > 0),
);

/** Undefined for a schema with a rule that depends on the time. */
const timelessFamilies = derived((schema: TableSchema): ReadFamilies | undefined =>
  Object.values(schema.families).some(({ gcRule }) => gcRule !== undefined && dependsOnTime(gcRule))
    ? undefined
    : new ReadFamilies(schema, 0),
);

function dependsOnTime(rule: GcRule): boolean {
  return rule.kind === 'union' || rule.kind === 'intersection'
    ? rule.rules.some(dependsOnTime)
    : rule.kind !== 'maxVersions';
}

function countsVersions(rule: GcRule): boolean {
  if (rule.kind === 'maxVersions') return true;
  return (rule.kind === 'union' || rule.kind === 'intersection') && rule.rules.some(countsVersions);
}
