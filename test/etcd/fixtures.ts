/** For tests of the lock service on a real etcd. */
import { silentLogger } from '../../src/env/index.ts';
import {
  type EtcdLockService,
  type EtcdOptions,
  openEtcdLockService,
  parseEtcdAddress,
  systemClock,
  systemRandom,
} from '../../src/platform/index.ts';

let prefixes = 0;

/** A prefix that no other test of this process uses. */
export function newPrefix(): string {
  return `p${process.pid}-${++prefixes}`;
}

export function openAt(
  endpoints: readonly string[],
  prefix: string,
  more: Partial<EtcdOptions> = {},
): Promise<EtcdLockService> {
  return openEtcdLockService({
    address: parseEtcdAddress(`etcd://${endpoints.join(',')}/${prefix}`),
    clock: systemClock,
    random: systemRandom,
    logger: silentLogger,
    ...more,
  });
}
