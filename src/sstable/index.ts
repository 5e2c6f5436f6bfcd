/**
 * sstable: the immutable sorted files that tablets are made of (docs/formats/sstable.md): written from any layer's cursor, read through a
 * block cache by the same cursor contract as a memtable; with Bloom filters, compressed blocks and a cache of rows.
 * Knows nothing of tablets; gets its file system, codecs and clock handed in.
 */
export { BlockCache } from './cache/block-cache.ts';
export { describeSsTable, type SsTableLayout } from './layout.ts';
export type { FileLineage, RecordPoint } from './format/lineage.ts';
export { MemoryBudget } from './cache/memory-budget.ts';
export { RowCache } from './cache/row-cache.ts';
export { SsTable } from './ss-table.ts';
export { DEFAULT_BLOCK_SIZE_BYTES, type SsTableWriteOptions, writeSsTable } from './write/write-ss-table.ts';
