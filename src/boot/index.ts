/**
 * boot: settings -> adapters -> roles: gives the service of a database in a directory or in memory, or of a server at an address.
 */
export { connect } from './connect.ts';
export { findDirectory, openFileForInspection, openForInspection } from './inspection.ts';
export { openDatabase } from './open-database.ts';
export type { DatabaseSettings } from './settings.ts';
