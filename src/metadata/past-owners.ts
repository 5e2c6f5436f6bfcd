/**
 * The owners that a tablet had, as far as their logs are kept for its change stream
 * (docs/decisions/0105-change-streams.md).
 *
 * Invariant: a row of a table with a change stream names each owner since the stream began, the present one aside,
 * until its changes are older than the stream's retention, or their bytes are beyond its limit. Of one row of the
 * table there is one owner at each epoch, so the records of a row are ordered by (epoch, sequence), whatever splits and
 * merges there were.
 */
import { assert } from '../base/index.ts';
import type { MetadataRow, PastOwner } from './metadata-row.ts';

/** More are not kept: a row of METADATA stays small. The oldest go first. */
export const MAX_PAST_OWNERS = 200;

/** The row, with its present owner among the past ones. Rows without a change stream stay as they are. */
export function withPastOwner(row: MetadataRow, atMicros: number): MetadataRow {
  const { pastOwners, changesFrom, changesUntil, server, epoch } = row;
  if (pastOwners === undefined || server === undefined) {
    assert(changesFrom === undefined, 'changes are kept of a tablet that a server has');
    return row;
  }
  assert(
    pastOwners.every((owner) => owner.epoch < epoch || owner.server !== server.name),
    'an owner becomes a past one once',
  );
  const { changesFrom: _from, changesUntil: _until, ...released } = row;
  const owner = {
    server: server.name,
    epoch,
    untilMicros: atMicros,
    ...(changesFrom !== undefined && { changesFrom }),
    ...(changesUntil !== undefined && { changesUntil }),
  };
  return { ...released, pastOwners: bounded([...pastOwners, owner]) };
}

/** Those of both tablets of a merge, which have no owner now. */
export function mergedOwners(low: MetadataRow, high: MetadataRow): Pick<MetadataRow, 'pastOwners'> {
  if (low.pastOwners === undefined && high.pastOwners === undefined) return {};
  const all = new Map<string, PastOwner>();
  for (const owner of [...(low.pastOwners ?? []), ...(high.pastOwners ?? [])]) {
    const key = `${owner.epoch} ${owner.server}`;
    const other = all.get(key);
    all.set(key, other === undefined ? owner : spanning(other, owner));
  }
  return { pastOwners: bounded([...all.values()]) };
}

/** One owner of both: two parts of one tablet may have left it at different times. */
function spanning(a: PastOwner, b: PastOwner): PastOwner {
  assert(a.server === b.server && a.epoch === b.epoch, 'it is the same owner');
  // a part that the owner never served has no changes
  const parts = [a, b].filter(({ changesFrom }) => changesFrom !== undefined);
  const ends = parts.map(({ changesUntil }) => changesUntil);
  return {
    server: a.server,
    epoch: a.epoch,
    untilMicros: Math.max(a.untilMicros, b.untilMicros),
    ...(parts.length > 0 && { changesFrom: Math.min(...parts.map(({ changesFrom }) => changesFrom!)) }),
    ...(parts.length > 0 && !ends.includes(undefined) && { changesUntil: Math.max(...ends.map((end) => end!)) }),
  };
}

/** Those whose changes may be younger than `sinceMicros`. */
export function ownersSince(owners: readonly PastOwner[], sinceMicros: number): readonly PastOwner[] {
  const kept = owners.filter(({ untilMicros }) => untilMicros >= sinceMicros);
  return kept.length === owners.length ? owners : kept;
}

function bounded(owners: readonly PastOwner[]): readonly PastOwner[] {
  return [...owners].sort(byEpoch).slice(-MAX_PAST_OWNERS);
}

function byEpoch(a: PastOwner, b: PastOwner): number {
  if (a.epoch !== b.epoch) return a.epoch - b.epoch;
  return a.server < b.server ? -1 : 1;
}
