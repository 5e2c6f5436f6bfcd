/**
 * Garbage collection on read: a read never returns a cell that the family's rule drops, applied to the visible cells
 * (docs/ARCHITECTURE.md, "Order and deletion"). Each read uses one `now`.
 *
 * Versions of a column come newest first, so every rule is monotone: once it drops a version it drops all after it.
 * `keeps` may therefore end a column at its first refusal.
 */
import type { Int64 } from '../base/index.ts';
import type { GcRule } from './schema.ts';

/** True when the version is kept; `index` counts the column's visible versions, newest = 0. */
export type VersionKeeper = (index: number, timestamp: Int64) => boolean;

const keepAll: VersionKeeper = () => true;

/** The rule prepared for one read at `nowMicros`. */
export function versionKeeper(rule: GcRule | undefined, nowMicros: number): VersionKeeper {
  if (rule === undefined) return keepAll;
  switch (rule.kind) {
    case 'maxVersions': {
      const most = rule.versions;
      return (index) => index < most;
    }
    case 'maxAge': {
      const oldest = nowMicros - rule.ageMicros;
      return (_index, timestamp) => timestamp >= oldest;
    }
    case 'union': {
      const keepers = rule.rules.map((part) => versionKeeper(part, nowMicros));
      return (index, timestamp) => keepers.every((keeps) => keeps(index, timestamp));
    }
    case 'intersection': {
      if (rule.rules.length === 0) return keepAll;
      const keepers = rule.rules.map((part) => versionKeeper(part, nowMicros));
      return (index, timestamp) => keepers.some((keeps) => keeps(index, timestamp));
    }
  }
}
