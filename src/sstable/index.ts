/**
 * sstable: the immutable sorted files that tablets consist of (docs/formats/sstable.md). They are written from any
 * layer's cursor and read through a block cache with the cursor contract of a memtable; they have Bloom filters,
 * compressed blocks and a cache of rows. The room knows nothing of tablets; its file system, codecs and clock are
 * passed in.
 */
export { BlockCache } from './cache/block-cache.ts';
export { describeSsTable, type SsTableLayout } from './layout.ts';
export type { FileLineage, RecordPoint } from './format/lineage.ts';
export { importedPath, isImportedPath, writtenPath } from './imported-path.ts';
export { IndexCache } from './cache/index-cache.ts';
export { MemoryBudget } from './cache/memory-budget.ts';
export { totalEntries } from './format/properties.ts';
export { type OwnedResidency, Residency } from './cache/residency.ts';
export { RowCache } from './cache/row-cache.ts';
export { SsTable } from './ss-table.ts';
export { DEFAULT_BLOCK_SIZE_BYTES, type SsTableWriteOptions, writeSsTable } from './write/write-ss-table.ts';
