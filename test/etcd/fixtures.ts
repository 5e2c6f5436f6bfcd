/** For tests of the lock service on a real etcd. */
import assert from 'node:assert/strict';
import { silentLogger } from '../../src/env/index.ts';
import {
  type EtcdLockService,
  type EtcdOptions,
  openEtcdLockService,
  parseEtcdAddress,
  systemClock,
  systemRandom,
} from '../../src/platform/index.ts';
import type { EtcdCluster } from './etcd-cluster.ts';
import { closedAtEnd } from './opened.ts';

let prefixes = 0;

/** A prefix that no other test of this process uses. */
export function newPrefix(): string {
  return `p${process.pid}-${++prefixes}`;
}

export async function openAt(
  endpoints: readonly string[],
  prefix: string,
  more: Partial<EtcdOptions> = {},
): Promise<EtcdLockService> {
  const address = parseEtcdAddress(`etcd://${endpoints.join(',')}/${prefix}`);
  const parts = { clock: systemClock, random: systemRandom, logger: silentLogger };
  return closedAtEnd(await openEtcdLockService({ address, ...parts, ...more }));
}

/** Forgets revisions below that one. */
export async function compact(etcd: EtcdCluster, revision: number): Promise<void> {
  await gateway(etcd, 'kv/compaction', { revision: `${revision}` });
}

/** A call of etcd's JSON gateway. */
export async function gateway(etcd: EtcdCluster, path: string, request: object, token?: string): Promise<unknown> {
  const answer = await fetch(`http://${etcd.endpoints[0]}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(request),
    ...(token !== undefined && { headers: { authorization: token } }),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${path}: ${text}`);
  return JSON.parse(text);
}
