/**
 * platform: the adapters that touch the machine, one for each seam and component of env. Rooms above receive them as
 * arguments; only boot, and tests, make them.
 */
export { type OpenDirectory, openDirectory } from './directory/directory.ts';
export { type DirectoryLock, lockDirectory } from './locks/directory-lock.ts';
export { type PosixFileSystem, type PosixOptions, shareFiles } from './posix/posix-file-system.ts';
export {
  findDirectory,
  type LogFiles,
  openDirectoryToRead,
  openLoneFile,
  openReadOnlyDirectory,
  type ReadOnlyDirectory,
  type ReadOnlyOptions,
} from './directory/posix-read-only.ts';
export { openS3Store } from './s3/s3-store.ts';
export { openSharedDirectory } from './shared/shared-directory.ts';
export type { SharedStore } from './shared/shared-store.ts';
export { openReadCache, type ReadCache, type ReadCacheOptions } from './read-cache/read-cache.ts';
export { nodeSyscalls, type Syscalls } from './posix/posix-syscalls.ts';
export { type LockFilesRead, readAllLockFiles } from './locks/lock-file-check.ts';
export { openLocalLockService } from './locks/local-lock-service.ts';
export { LockServiceClient } from './locks/lock-service-client.ts';
export { LockServiceHandler, sharedLeases } from './locks/lock-service-handler.ts';
export { descriptorLimit, environmentVariables, memoryBytes } from './machine/machine.ts';
export { nativeCodecs } from './codecs/native-codecs.ts';
export { moduleUrl, mustThreadModule, threadModule, warnOfNoThreads } from './threads/packages.ts';
export { modeForOthers } from './machine/permissions.ts';
export { PortPeer } from './ports/port-peer.ts';
export { PortTransport } from './ports/port-transport.ts';
export { KeepAlive } from './machine/keep-alive.ts';
export { stackOf, watchStrayErrors } from './machine/stray-errors.ts';
export { systemClock } from './machine/system-clock.ts';
export { systemRandom } from './machine/system-random.ts';
export { startThread, ThreadWorkers, type ThreadWorkersOptions } from './threads/threads.ts';
export { type EtcdAddress, parseEtcdAddress } from './etcd/address.ts';
export { type EtcdLockService, type EtcdOptions, openEtcdLockService } from './etcd/etcd-lock-service.ts';
