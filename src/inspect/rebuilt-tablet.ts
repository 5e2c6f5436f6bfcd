/**
 * One tablet that is rebuilt: the records in the logs after its files are replayed into memtables, one for each
 * locality group, and written as SSTables.
 *
 * A family takes a record only after its own redo point, so that nothing is applied twice, whatever groups families
 * were moved between; and a deletion of a row is replayed as one of each family that needs it.
 */
import { isAfter, type LogRecord, type RedoPoint } from '../commitlog/index.ts';
import type { Clock, Codecs, FileSystem } from '../env/index.ts';
import { type AggregateOf, Memtable } from '../memtable/index.ts';
import {
  DEFAULT_GROUP,
  intersectRanges,
  isEmptyRange,
  type Mutation,
  type RowRange,
  rangeContains,
  storageFamily,
  type TableSchema,
} from '../model/index.ts';
import { writeSsTable } from '../sstable/index.ts';
import type { PlannedTablet } from './repair-plan.ts';

export interface FileTarget {
  readonly fileSystem: FileSystem;
  readonly codecs: Codecs;
  readonly clock: Clock;
  newFilePath(): string;
}

const WRITTEN_AS = { compression: { kind: 'lz4' }, bloomFilter: 'row' } as const;

export class RebuiltTablet {
  readonly range: RowRange;
  readonly #files = new Map<string, string[]>();
  /** The last record in files. */
  redo: RedoPoint = { epoch: 0, sequence: 0 };
  /** No server has given a later time to a cell of it, as far as files and records state; 0 if they state none. */
  lastServerMicros = 0;
  /** Records that were replayed, in whole or in part. */
  replayed = 0;
  readonly #schema: TableSchema;
  readonly #plan: PlannedTablet;
  readonly #familiesOf = new Map<string, string[]>();
  readonly #groupOf = new Map<string, string>();
  readonly #aggregateOf: AggregateOf;
  #memtables = new Map<string, Memtable>();
  #applied: RedoPoint | undefined;

  constructor(schema: TableSchema, plan: PlannedTablet) {
    this.range = plan.range;
    this.#schema = schema;
    this.#plan = plan;
    const aggregates = new Map<string, ReturnType<AggregateOf>>();
    for (const { name, generation, group = DEFAULT_GROUP, valueType } of Object.values(schema.families)) {
      const stored = storageFamily(name, generation);
      this.#groupOf.set(stored, group);
      this.#familiesOf.set(group, [...(this.#familiesOf.get(group) ?? []), stored]);
      aggregates.set(stored, valueType?.aggregate?.kind);
    }
    this.#aggregateOf = (stored) => aggregates.get(stored);
    for (const { group, path, newest, lastServerMicros } of plan.files) {
      this.lastServerMicros = Math.max(this.lastServerMicros, lastServerMicros);
      this.#files.set(group, [...(this.#files.get(group) ?? []), path]);
      if (isAfter(newest, this.redo)) this.redo = newest;
    }
  }

  /** By locality group, newest first. */
  get files(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(this.#files);
  }

  get memoryBytes(): number {
    return [...this.#memtables.values()].reduce((sum, memtable) => sum + memtable.sizeBytes, 0);
  }

  /** Returns a description of the part that could not be replayed. Records come in their order. */
  apply(record: LogRecord): string | undefined {
    const { body, commitMicros } = record;
    if (body.kind === 'dropRows') return this.#dropRows(record, intersectRanges(body.range, this.range));
    let isNeeded = false;
    for (const { row, mutations } of body.rows) {
      if (!rangeContains(this.range, row)) continue;
      // of all records: an earlier version read the clock once for a cell and again for its record, and no field says
      // which version wrote this one
      // which version wrote this one
      if (typeof commitMicros === 'number') this.lastServerMicros = Math.max(this.lastServerMicros, commitMicros);
      for (const [group, needed] of this.#needed(record, mutations)) {
        this.#memtable(group).apply(row, needed, this.#aggregateOf);
        isNeeded = true;
      }
    }
    if (isNeeded) this.#replayed(record);
    return undefined;
  }

  /** Writes the replayed records. */
  async flush({ newFilePath, ...target }: FileTarget): Promise<void> {
    const newest = this.#applied;
    if (newest === undefined) return;
    for (const [group, memtable] of this.#memtables) {
      const families = this.#familiesOf.get(group) ?? [];
      const path = newFilePath();
      const cursor = memtable.cursor();
      try {
        const lineage = { tableId: this.#schema.id, range: this.range, families, since: this.#sinceOf(families) };
        const written = await writeSsTable(
          { ...target, path, group, newest, lineage, lastServerMicros: this.lastServerMicros, ...WRITTEN_AS },
          cursor,
          memtable.rowRangeDeletions(),
        );
        if (written) this.#files.set(group, [path, ...(this.#files.get(group) ?? [])]);
      } finally {
        cursor.close();
      }
    }
    if (isAfter(newest, this.redo)) this.redo = newest;
    this.#since = newest;
    this.#memtables = new Map();
  }

  /** The last record that an earlier `flush` wrote. */
  #since: RedoPoint | undefined;

  #sinceOf(families: readonly string[]): RedoPoint | undefined {
    if (this.#since !== undefined) return this.#since;
    return families.reduce<RedoPoint | undefined>((last, family) => {
      const point = this.#plan.redo.get(family);
      return point !== undefined && (last === undefined || isAfter(point, last)) ? point : last;
    }, undefined);
  }

  #isNeeded(family: string, record: RedoPoint): boolean {
    const point = this.#plan.redo.get(family);
    return point === undefined || isAfter(record, point);
  }

  /** The mutations that are in no file yet, by group. */
  #needed(record: RedoPoint, mutations: readonly Mutation[]): Map<string, Mutation[]> {
    const byGroup = new Map<string, Mutation[]>();
    const add = (family: string, mutation: Mutation): void => {
      const group = this.#groupOf.get(family);
      if (group === undefined || !this.#isNeeded(family, record)) return;
      const list = byGroup.get(group);
      if (list) list.push(mutation);
      else byGroup.set(group, [mutation]);
    };
    for (const mutation of mutations) {
      if (mutation.kind !== 'deleteFromRow') add(mutation.family, mutation);
      else for (const family of this.#groupOf.keys()) add(family, { kind: 'deleteFromFamily', family });
    }
    return byGroup;
  }

  #dropRows(record: RedoPoint, range: RowRange): string | undefined {
    if (isEmptyRange(range)) return undefined;
    let unsaved: string | undefined;
    for (const [group, families] of this.#familiesOf) {
      const needing = families.filter((family) => this.#isNeeded(family, record));
      if (needing.length === families.length) {
        this.#memtable(group).dropRows(range);
        this.#replayed(record);
      } else if (needing.length > 0) {
        unsaved = `a deletion of a range of rows of table ${this.#schema.id} (record ${record.sequence} of epoch ${record.epoch}) is in some files of group ${group} and not in others: rows may be there again`;
      }
    }
    return unsaved;
  }

  #replayed(record: RedoPoint): void {
    this.#applied = { epoch: record.epoch, sequence: record.sequence };
    this.replayed++;
  }

  #memtable(group: string): Memtable {
    let memtable = this.#memtables.get(group);
    if (memtable === undefined) this.#memtables.set(group, (memtable = new Memtable()));
    return memtable;
  }
}
