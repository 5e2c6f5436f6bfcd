/**
 * platform: the adapters that touch the machine, one for each seam and component of env. Rooms above get them handed in; only
 * boot, and tests, make them.
 */
export { type OpenDirectory, openDirectory } from './directory.ts';
export { type DirectoryLock, lockDirectory } from './directory-lock.ts';
export { type PosixFileSystem, type PosixOptions, shareFiles } from './posix-file-system.ts';
export { findDirectory, type LogFiles, openDirectoryToRead, openLoneFile, openReadOnlyDirectory, type ReadOnlyDirectory, type ReadOnlyOptions } from './posix-read-only.ts';
export { nodeSyscalls, type Syscalls } from './posix-syscalls.ts';
export { type LockFilesRead, readAllLockFiles } from './lock-file-check.ts';
export { openLocalLockService } from './local-lock-service.ts';
export { LockServiceClient } from './lock-service-client.ts';
export { LockServiceHost, sharedLeases } from './lock-service-host.ts';
export { descriptorLimit, memoryBytes } from './machine.ts';
export { nativeCodecs } from './native-codecs.ts';
export { moduleUrl, mustThreadModule, threadModule, warnOfNoThreads } from './packages.ts';
export { modeForOthers } from './permissions.ts';
export { PortPeer } from './port-peer.ts';
export { PortTransport } from './port-transport.ts';
export { ProcessHold } from './process-hold.ts';
export { stackOf, watchStrayErrors } from './stray-errors.ts';
export { systemClock } from './system-clock.ts';
export { systemRandom } from './system-random.ts';
export { startThread, ThreadWorkers, type ThreadWorkersOptions } from './threads.ts';
