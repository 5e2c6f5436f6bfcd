/**
 * memtable: the newest writes of a tablet in memory, a layer of the merged read: rows in a tree, each an immutable
 * generation, so that a reader takes a row as of one instant at no cost. Imports base and model only.
 */
export { foldAggregates } from './fold-aggregates.ts';
export { type AggregateOf, Memtable, type RowChangeInProgress } from './memtable.ts';
