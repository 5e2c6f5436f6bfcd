/**
 * tabletserver: one server incarnation: its session and log, the tablets given to it, the budget of their memtables,
 * and the answers to the internal calls.
 */
export { TabletServer, type TabletServerSettings } from './tablet-server.ts';
export { SORTED_DIRECTORY } from '../commitlog/index.ts';
