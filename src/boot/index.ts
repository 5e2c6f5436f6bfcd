/**
 * boot: settings -> adapters -> roles: makes the service of a database in a directory or in memory, or of a server at
 * an address, and starts the roles of a cluster.
 */
export { checkDirectory } from './directory/check-directory.ts';
export type { CertificateFiles, ClusterAccess } from './cluster/cluster-access.ts';
export { isBucket } from './store/store-address.ts';
export { connectCluster, startMaster, startTabletServer } from './cluster/on-demand.ts';
export type { RoleClusterOptions, RunningMaster, RunningTabletServer } from './cluster/start-roles.ts';
export { connect, type Connection, type ConnectOptions as ServerAccess } from './open/connect.ts';
export { connectionLimit } from './open/descriptors.ts';
export { filePathOf } from './directory/file-url.ts';
export { findDirectory, openFileForInspection, openForInspection } from './directory/inspection.ts';
export { readInput, warnOfOthers } from './open/input-files.ts';
export { type OpenDatabase, openDatabase } from './open/open-database.ts';
export { AcceptTurns, type AcceptTurnsOptions } from './threads/accept-turns.ts';
export { openThreadedDatabase, type ThreadedDatabase } from './threads/open-threaded-database.ts';
export { type Listener, runServerThread } from './threads/thread-program.ts';
export { repairDirectory, type RepairReport } from './directory/repair-directory.ts';
export { defaultOf, isValueOf, type Setting, type SettingsOf, type SettingValue } from './settings/setting.ts';
export { boundsText, defaultText, formatSetting, parseSetting, wantedText } from './settings/setting-text.ts';
export {
  checkShares,
  DATABASE_SETTINGS,
  type DatabaseSettings,
  serverCacheBytes,
  serverIndexBytes,
} from './settings/settings.ts';
export {
  memoryBytes,
  modeForOthers,
  moduleUrl,
  mustThreadModule,
  KeepAlive,
  systemClock,
  watchStrayErrors,
} from '../platform/index.ts';
