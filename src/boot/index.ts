/**
 * boot: settings -> adapters -> roles: gives the service of a database in a directory or in memory, or of a server at an address.
 */
export { checkDirectory } from './check-directory.ts';
export { connect } from './connect.ts';
export { connectionLimit } from './descriptors.ts';
export { filePathOf } from './file-url.ts';
export { findDirectory, openFileForInspection, openForInspection } from './inspection.ts';
export { type OpenDatabase, openDatabase } from './open-database.ts';
export { openThreadedDatabase, type ThreadedDatabase } from './open-threaded-database.ts';
export { type Door, runServerThread } from './server-thread.ts';
export { repairDirectory, type RepairReport } from './repair-directory.ts';
export { defaultOf, isValueOf, type Setting, type SettingsOf, type SettingValue } from './setting.ts';
export { boundsText, defaultText, formatSetting, parseSetting, wantedText } from './setting-text.ts';
export { checkShares, DATABASE_SETTINGS, type DatabaseSettings, serverCacheBytes } from './settings.ts';
export { memoryBytes, modeForOthers, moduleUrl, mustThreadModule, ProcessHold, systemClock, watchStrayErrors } from '../platform/index.ts';
