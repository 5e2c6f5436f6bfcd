/**
 * embedded: the library. `open` a directory or ':memory:' and use tables in this very process. What this door exports is the package's public
 * interface; everything else may change.
 */
export { type ByteString, BigtableError, Code, CorruptionError, fromBytes, toBytes } from '../base/index.ts';
export type { DatabaseSettings } from '../boot/index.ts';
export type { RowFilter } from '../filter/index.ts';
export type { FamilySchema, FamilyUsage, GcRule, Granularity, GroupLayout, LocalityGroup, ReadModifyWriteRule, TableSchema } from '../model/index.ts';
export { BatchError, type BatchFailure } from './batch-error.ts';
export { Database, open, overService, type TableOptions } from './database.ts';
export type { FamilyOptions } from './families.ts';
export type { Bytes, Column, Timestamp, Value } from './input.ts';
export { Cell, Row } from './row.ts';
export { Mutations, RowMutation, type TimeRange } from './row-mutation.ts';
export type { ScanOptions } from './scan.ts';
export { type CheckAndMutateOutcomes, type Predicate, Table } from './table.ts';
