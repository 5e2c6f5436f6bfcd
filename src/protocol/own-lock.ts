/**
 * Whether a process still has its place in the lock service: the lock that it took and, once it is announced, its file.
 * A process without one of them is not found by others, and ends.
 */
import type { LockHandle, LockService } from '../env/index.ts';

/** Rejects where the lock service does not answer. */
export async function hasPlace(lockService: LockService, lock: LockHandle, isAnnounced: boolean): Promise<boolean> {
  const [holder, file] = await Promise.all([lockService.holder(lock.path), lockService.read(lock.path)]);
  return holder?.epoch === lock.epoch && (file !== undefined || !isAnnounced);
}
