/** Events of etcd as changes of the lock service. Pure. */
import type { LockChange } from '../../env/index.ts';
import type { KeyLayout } from './key-layout.ts';
import type { WatchEvent } from './messages.ts';
import { SessionState, textOf } from './transactions.ts';

const DELETED = 1;

/**
 * The change that the event is; undefined for none that is reported. 'unclear': what the key was before is needed, and
 * was compacted.
 */
export function changeOf(layout: KeyLayout, { type, kv, previous }: WatchEvent): LockChange | 'unclear' | undefined {
  const meaning = kv?.key && layout.meaningOf(kv.key);
  if (meaning === undefined) return undefined;
  const isDeleted = type === DELETED;
  if (meaning.kind === 'file') {
    const { path } = meaning;
    return isDeleted ? { kind: 'deleted', path } : { kind: 'changed', path, version: kv?.modRevision ?? 0 };
  }
  if (!isDeleted) return undefined;
  if (previous?.value === undefined) return 'unclear';
  const before = textOf(previous);
  if (meaning.kind === 'session')
    // a session that its owner has closed has not expired
    return before === SessionState.closed ? undefined : { kind: 'session-expired', sessionId: meaning.sessionId };
  return { kind: 'lock-lost', path: meaning.path, sessionId: before };
}

/** True when a watcher of paths that start with `prefix` gets the change. */
export function concerns(change: LockChange, prefix: string): boolean {
  return change.kind === 'session-expired' || change.path.startsWith(prefix);
}
