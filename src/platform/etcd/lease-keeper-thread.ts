/**
 * The thread that keeps leases of etcd alive, and publishes in shared memory until when each surely holds: with
 * connections of its own, so that it depends on no other thread.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../base/index.ts';
import { sleep } from '../../env/index.ts';
import { systemClock } from '../machine/system-clock.ts';
import { systemRandom } from '../machine/system-random.ts';
import { EtcdClient } from './etcd-client.ts';
import type { KeeperAnswer, KeeperData, KeeperMessage } from './lease-keeper.ts';
import { LEASE_KEEP_ALIVE } from './messages.ts';
import { SharedLeases } from './shared-leases.ts';

/** Four of them may fail before the lease of 10 s lapses. */
const KEEP_ALIVE_MS = 2000;
/** After one that failed. */
const PAUSE_MS = 200;

const port = parentPort;
assert(port, 'this module runs in a thread');
const { access, memory } = workerData as KeeperData;
const client = new EtcdClient({ ...access, clock: systemClock, random: systemRandom });
const leases = new SharedLeases(memory);
/** What ends the keep-alives of each slot. */
const kept = new Map<number, AbortController>();

async function keepAlive(slot: number, lease: bigint, signal: AbortSignal): Promise<void> {
  let delayMs = KEEP_ALIVE_MS;
  for (;;) {
    await sleep(systemClock, delayMs, signal).catch(() => {});
    if (signal.aborted) return;
    // counted from the first try, whichever was answered
    const sent = leases.now();
    try {
      const { ttlSeconds = 0 } = (await client.call(LEASE_KEEP_ALIVE, { id: lease })).answer;
      if (signal.aborted) return;
      if (ttlSeconds <= 0) return leases.ended(slot);
      leases.renewed(slot, sent, ttlSeconds * 1000);
      delayMs = KEEP_ALIVE_MS;
    } catch {
      // the lease lapses by itself, and holds again when a later keep-alive is answered in time
      delayMs = PAUSE_MS;
    }
  }
}

port.on('message', ({ kind, slot, lease }: KeeperMessage) => {
  if (kind === 'drop') return kept.get(slot)?.abort();
  assert(lease !== undefined && !kept.has(slot), 'a slot has one lease');
  const abort = new AbortController();
  kept.set(slot, abort);
  void keepAlive(slot, lease, abort.signal).finally(() => {
    kept.delete(slot);
    port.postMessage({ dropped: slot } satisfies KeeperAnswer);
  });
});
