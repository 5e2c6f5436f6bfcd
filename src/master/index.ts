/**
 * master: the master: assignment of tablets, tables' creation, change and deletion, and the sweep of files that no row
 * refers to.
 */
export { chooseMoves } from './balance.ts';
export type { SortedLogSizes } from './log-sorting.ts';
export { Master } from './master.ts';
