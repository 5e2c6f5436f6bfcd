/**
 * Releases of etcd whose known errors break what the lock service promises: leases ended by a leader that has been
 * replaced, and events lost after a compaction (docs/decisions/0080-etcd.md).
 */
import type { Logger } from '../../env/index.ts';
import type { EtcdClient } from './etcd-client.ts';
import { MEMBER_STATUS } from './messages.ts';

/** The first sound release of each line; those after the last line are sound. */
const SOUND: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [3, 4, 31],
  [3, 5, 13],
];

/** `version`: as etcd tells it. False for one of another form. */
export function isOldRelease(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? [];
  if (major === 0) return false;
  const line = SOUND.find((one) => one[0] === major && one[1] === minor);
  if (line !== undefined) return patch < line[2];
  return major < 3 || (major === 3 && minor < 4);
}

/** Looks at the member that is used now. One that refuses to tell its version is not judged. */
export async function warnOfOldRelease(client: EtcdClient, logger: Logger): Promise<void> {
  const { version = '' } = await client.call(MEMBER_STATUS, {}).then(
    ({ answer }) => answer,
    () => ({ version: '' }),
  );
  if (isOldRelease(version))
    logger.warn('etcd may end leases too early and lose events: use 3.4.31, 3.5.13 or a later release', { version });
}
