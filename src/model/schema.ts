/**
 * Schemas: a table's families, their garbage-collection rules and value types (API: google.bigtable.admin.v2.Table,
 * ColumnFamily, GcRule, Type). Plain frozen data, kept as a small file in the lock service.
 */
import { ownOf } from '../base/index.ts';
import type { RestoredFrom } from './backup.ts';

/**
 * The rule for the versions that a family may drop. `union`: those that any rule drops; `intersection`: those that
 * every rule drops.
 */
export type GcRule =
  | { readonly kind: 'maxVersions'; readonly versions: number }
  | { readonly kind: 'maxAge'; readonly ageMicros: number }
  | { readonly kind: 'union'; readonly rules: readonly GcRule[] }
  | { readonly kind: 'intersection'; readonly rules: readonly GcRule[] };

export type AggregateKind = 'sum' | 'min' | 'max' | 'hll';

/** The aggregate of a family, and the type of its inputs. */
export interface AggregateType {
  readonly kind: AggregateKind;
  readonly input: 'int64' | 'bytes';
}

/**
 * A family's value type. Only aggregates change how cells behave; any other type is kept and returned as the client
 * wrote it (`encoded`: the serialized google.bigtable.admin.v2.Type, base64).
 */
export interface ValueType {
  readonly aggregate?: AggregateType;
  readonly encoded?: string;
}

export interface FamilySchema {
  readonly name: string;
  /**
   * 0 or left out at first; one more each time a family of this name is created again after it was dropped. Tablets
   * store cells under `storageFamily(name, generation)`, so that cells of an earlier generation are never seen again: a
   * drop is one atomic change of the schema, and compactions remove the bytes later.
   */
  readonly generation?: number;
  readonly gcRule?: GcRule;
  readonly valueType?: ValueType;
  /** The locality group it is stored in, one of the table's. Left out: `default`. */
  readonly group?: string;
  /** Most bytes that it may take, on disk and in memory together. Left out: any number. */
  readonly quotaBytes?: number;
}

/** The locality group of families that name none; every table has it. */
export const DEFAULT_GROUP = 'default';

/** The compression of the blocks of a group's SSTables; `level` is that of zstd, 1 to 19, default 3. */
export interface GroupCompression {
  readonly kind: 'none' | 'lz4' | 'zstd' | 'zstd-dict' | 'two-pass';
  readonly level?: number;
}

/** Tuning of a locality group (paper section 6) for the writing and reading of its SSTables. */
export interface LocalityGroup {
  /** Size at which a block is closed. Default: the server's setting, 64 KiB. */
  readonly blockSizeBytes?: number;
  /** Default: lz4. Blocks that do not shrink are stored uncompressed. */
  readonly compression?: GroupCompression;
  /** The keys of the Bloom filter, which spares look-ups of missing rows or columns the disk. Default: row. */
  readonly bloomFilter?: 'none' | 'row' | 'row-column';
  /** Its SSTables are loaded into memory when first read and then read without the file system. Default: false. */
  readonly inMemory?: boolean;
}

/**
 * A request for a table's locality groups: their tuning, and the families in each. Families that no group names are in
 * `default`.
 */
export type GroupLayout = Readonly<Record<string, LocalityGroup & { readonly families?: readonly string[] }>>;

/** Timestamps of a table are multiples of a millisecond or of a microsecond; fixed at creation. */
export type Granularity = 'millis' | 'micros';

/** The changes of the table's rows are kept, and can be read (Bigtable.ReadChangeStream). */
export interface ChangeStream {
  /** How long they are kept at least, microseconds: 1 to 7 days. */
  readonly retentionMicros: number;
}

export interface TableSchema {
  /** The full resource name: projects/P/instances/I/tables/T. */
  readonly name: string;
  /** Assigned by the master, never reused: eight lower-case hexadecimal digits. */
  readonly id: string;
  readonly granularity: Granularity;
  readonly families: Readonly<Record<string, FamilySchema>>;
  /** Locality groups by name, with the tuning that was set; `default` exists whether or not it is named. */
  readonly groups?: Readonly<Record<string, LocalityGroup>>;
  readonly deletionProtection: boolean;
  /** Undefined: none. */
  readonly changeStream?: ChangeStream | undefined;
  /** Most bytes that its families may take together. Left out: any number. */
  readonly quotaBytes?: number;
  /** Undefined: its rows are from no backup. */
  readonly restoredFrom?: RestoredFrom | undefined;
  /** The next generation of each family name that was ever dropped. */
  readonly nextGenerations?: Readonly<Record<string, number>>;
  /** Fields of the API that Edubba keeps without effect, serialized, by name, base64. */
  readonly extra?: Readonly<Record<string, string>>;
}

/**
 * The family part of column keys on disk and in logs. The mark sorts below every character of a family name, so the
 * order is kept.
 */
export function storageFamily(name: string, generation = 0): string {
  return generation === 0 ? name : `${name}\x01${generation}`;
}

/** The name that a storage family was made from. */
export function familyName(stored: string): string {
  const at = stored.indexOf('\x01');
  return at < 0 ? stored : stored.slice(0, at);
}

/** The family of that name; undefined where the table has none. */
export function familyOfTable(schema: TableSchema, name: string): FamilySchema | undefined {
  return ownOf(schema.families, name);
}
