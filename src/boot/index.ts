/**
 * boot: settings -> adapters -> roles: gives the service of a database in a directory or in memory, or of a server at an address.
 */
export { type Connection, connect } from './connect.ts';
export { type DatabasePlace, type OpenDatabase, type OpenOptions, openDatabase } from './open-database.ts';
export { checkSettings, type DatabaseSettings, DEFAULT_SETTINGS } from './settings.ts';
