/**
 * Judges of a run that look at the storage itself, as recovery would find it: METADATA partitions every table, and no
 * file that it lists is missing or damaged, at any instant (I3, I4); after the faults no file is left over (I8).
 */
import { ManualClock } from '../../src/env/index.ts';
import { checkDatabase, type CheckReport } from '../../src/inspect/index.ts';
import { nativeCodecs } from '../../src/platform/index.ts';
import type { Cluster } from './cluster.ts';

/** Findings that a report of a failure has. */
const MAX_FINDINGS = 5;

/** All of the storage at one instant: the check takes no simulated time. Throws what the judge of the logs has seen. */
export async function checkStorage({ store, locks }: Cluster): Promise<CheckReport> {
  const { violation } = store.logJudge;
  if (violation !== undefined) throw new Error(violation);
  const files = (await locks.service.list('')).filter(({ sessionId }) => sessionId === undefined);
  return checkDatabase({
    fileSystem: store.files,
    codecs: nativeCodecs(),
    // it stands still, so the check never yields
    clock: new ManualClock(),
    readAllLockFiles: async () => ({ files, damages: [], count: files.length }),
  });
}

/** What is damaged, in words; undefined if nothing is. */
export function damageIn({ findings }: CheckReport): string | undefined {
  if (findings.length === 0) return undefined;
  const lines = findings.slice(0, MAX_FINDINGS).map((finding) => JSON.stringify(finding));
  return `the storage is damaged: ${lines.join('\n')}`;
}
