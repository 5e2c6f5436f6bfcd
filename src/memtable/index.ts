/**
 * memtable: the newest writes of a tablet in memory, a layer of the merged read: rows in a tree, each an immutable version, so that
 * readers take a row as of one instant for nothing. Stands on base and model alone.
 */
export { foldAggregates } from './fold-aggregates.ts';
export { type AggregateOf, Memtable, type RowChangeInProgress } from './memtable.ts';
