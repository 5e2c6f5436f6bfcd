/**
 * master: the master: assignment of tablets, tables' creation, change and deletion, and the sweep of files that no row
 * refers to.
 */
export { Master } from './master.ts';
