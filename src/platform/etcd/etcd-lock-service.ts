/**
 * The lock service on etcd, for the processes of a cluster (docs/decisions/0080-etcd.md, docs/formats/etcd.md).
 *
 * Invariants:
 * - Every change is one transaction, conditional on all that it depends on: the file's revision, the lock's, the life
 *   of the session. So a try whose answer was lost may be repeated: of the tries of a call at most one happens, and one
 *   that comes late is refused.
 * - A version is the revision of the file's last change, an epoch that of the lock's creation: etcd reuses none.
 * - A session is a lease, and a key under it. All that dies with the session is under the lease too, and ends with it
 *   in one revision.
 */
import { assert, BigtableError, Code, toBytes, unavailable } from '../../base/index.ts';
import {
  checkContents,
  checkPath,
  type Clock,
  directoryOf,
  type Guard,
  type LockEvent,
  type LockHandle,
  type Logger,
  type LockService,
  type Random,
  sessionEnded,
  type SmallFile,
} from '../../env/index.ts';
import type { EtcdAddress } from './address.ts';
import { type Answered, type EtcdAccess, EtcdClient } from './etcd-client.ts';
import { warnOfOldRelease } from './etcd-release.ts';
import { GuardedChange } from './guarded-change.ts';
import { KeyLayout } from './key-layout.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import {
  type EtcdMethod,
  type Header,
  type KeyValue,
  LEASE_GRANT,
  LEASE_REVOKE,
  type Operation,
  RANGE,
  type RangeAnswer,
  TXN,
  type TxnAnswer,
  type TxnRequest,
} from './messages.ts';
import { cutPage, isFull, nextLimit } from './page.ts';
import { drawSessionId, leaseOfSession } from './session-id.ts';
import { decodeStoredFile, encodeStoredFile, isWrittenBy } from './stored-file.ts';
import { created, deleteKey, modified, put, readBy, readKey, SessionState, textOf, valued } from './transactions.ts';
import { WatchStream } from './watch-stream.ts';

export interface EtcdOptions extends Omit<EtcdAccess, 'endpoints'> {
  readonly address: EtcdAddress;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface EtcdLockService extends LockService {
  /** Ends the connections, the watches and the keep-alives: sessions that are open lapse. */
  close(): Promise<void>;
}

/** A session that is not kept alive for so long ends. */
const SESSION_SECONDS = 10;
/** The version of the layout of keys and values. */
const FORMAT = '1';

/**
 * The lock service under the address's prefix. Fails as etcd does where it cannot be reached or refuses the user, with
 * the member and the reason; FAILED_PRECONDITION if the prefix holds another format.
 */
export async function openEtcdLockService(options: EtcdOptions): Promise<EtcdLockService> {
  const { address, clock, random, logger, ...rest } = options;
  const { endpoints, prefix } = address;
  const access: EtcdAccess = { ...rest, endpoints };
  const client = new EtcdClient({ ...access, clock, random });
  const layout = new KeyLayout(prefix);
  try {
    const { answer } = await client.call(TXN, {
      compare: [created(layout.format, 0)],
      success: [put(layout.format, FORMAT, undefined)],
      failure: [readKey(layout.format)],
    });
    const found = readBy(answer, 0);
    if (found !== undefined && textOf(found) !== FORMAT)
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `prefix ${JSON.stringify(prefix)} of etcd: written in format ${JSON.stringify(textOf(found))}, this release reads format ${FORMAT}`,
      );
    await warnOfOldRelease(client, logger);
    const keeper = new LeaseKeeper(access, logger);
    const watches = new WatchStream({ client, layout, clock, logger });
    return new Adapter({ client, layout, keeper, random, watches }, answer.header);
  } catch (error) {
    client.close();
    throw error;
  }
}

interface Parts {
  readonly client: EtcdClient;
  readonly layout: KeyLayout;
  readonly keeper: LeaseKeeper;
  readonly random: Random;
  readonly watches: WatchStream;
}

/** A session that this adapter has opened. */
interface OwnSession {
  /** The place of its lease in shared memory. */
  readonly slot: number;
  /**
   * The last revision of its key, as far as is known. A release of a lock changes the key, and an attempt to take one
   * is conditional on its revision: so no attempt of before a release happens after it.
   */
  revision: number;
}

class Adapter implements EtcdLockService {
  readonly #parts: Parts;
  readonly #layout: KeyLayout;
  readonly #sessions = new Map<string, OwnSession>();
  /** The greatest revision that an answer has had. */
  #seen = 0;

  constructor(parts: Parts, header: Header | undefined) {
    this.#parts = parts;
    this.#layout = parts.layout;
    this.#see(header);
  }

  // sessions

  async openSession(): Promise<string> {
    const { keeper, random } = this.#parts;
    const sessionId = drawSessionId(random);
    const lease = leaseOfSession(sessionId)!;
    const slot = keeper.reserve();
    try {
      const sent = keeper.leases.now();
      const seconds = await this.#grant(lease);
      const key = this.#layout.session(sessionId);
      const { answer } = await this.#transact({
        compare: [created(key, 0)],
        success: [put(key, SessionState.open, lease)],
        failure: [readKey(key)],
      });
      const revision = answer.succeeded ? revisionOf(answer) : readBy(answer, 0)?.modRevision;
      assert(revision !== undefined, 'a key that exists is read');
      assert(!this.#sessions.has(sessionId), 'a session has an id of its own');
      keeper.leases.renewed(slot, sent, seconds * 1000);
      keeper.keep(slot, lease);
      this.#sessions.set(sessionId, { slot, revision });
      return sessionId;
    } catch (error) {
      keeper.release(slot);
      throw hasCode(error, Code.NOT_FOUND) ? unavailable('a session has ended before it was open', error) : error;
    }
  }

  async closeSession(sessionId: string): Promise<void> {
    const lease = leaseOfSession(sessionId);
    if (lease === undefined) return;
    const own = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    if (own !== undefined) this.#parts.keeper.drop(own.slot);
    // watchers shall not take it for one that has expired
    await this.#replaceKey(sessionId, lease, SessionState.closed);
    await this.#call(LEASE_REVOKE, { id: lease }).catch((error: unknown) => {
      if (!hasCode(error, Code.NOT_FOUND)) throw error;
    });
  }

  leaseHolds(sessionId: string): boolean {
    const own = this.#sessions.get(sessionId);
    return own !== undefined && this.#parts.keeper.leases.holds(own.slot);
  }

  // files

  async read(path: string): Promise<SmallFile | undefined> {
    checkPath(path);
    const found = await this.#readKey(this.#layout.file(path));
    return found && decodeStoredFile(path, found);
  }

  async list(prefix: string, after = ''): Promise<SmallFile[]> {
    const range = this.#layout.files(prefix, after);
    if (range === undefined) return [];
    const files: SmallFile[] = [];
    const rangeEnd = toBytes(range.to);
    let key: Uint8Array = toBytes(range.from);
    let revision: number | undefined;
    for (;;) {
      const request = { key, rangeEnd, limit: nextLimit(files), ...(revision !== undefined && { revision }) };
      const { kvs, more, header }: RangeAnswer = await this.#call(RANGE, request).catch((error: unknown) => {
        // the revision of a page that has begun was compacted: it ends here
        if (files.length > 0 && hasCode(error, Code.OUT_OF_RANGE)) return { kvs: [] };
        throw error;
      });
      for (const kv of kvs) files.push(this.#fileOf(kv));
      if (!more || isFull(files)) return cutPage(files);
      revision ??= header?.revision;
      key = Buffer.concat([kvs.at(-1)?.key ?? key, Buffer.of(0)]);
    }
  }

  async write(
    path: string,
    contents: Uint8Array,
    options: Guard & { readonly sessionId?: string } = {},
  ): Promise<number> {
    checkPath(path);
    checkContents(path, contents);
    const call = this.#parts.random.uniqueName();
    const value = encodeStoredFile(call, contents);
    const { sessionId } = options;
    const lease = sessionId === undefined ? undefined : leaseOfSession(sessionId);
    const answer = await this.#change(path, options, put(this.#layout.file(path), value, lease), call);
    return answer.succeeded ? revisionOf(answer) : (readBy(answer, 0)?.modRevision ?? 0);
  }

  async remove(path: string, guard: Guard = {}): Promise<boolean> {
    checkPath(path);
    const answer = await this.#change(path, guard, deleteKey(this.#layout.file(path)), undefined);
    return (answer.responses[0]?.delete?.deleted ?? 0) > 0;
  }

  async lastRemoval(path: string): Promise<number> {
    checkPath(path);
    return (await this.#readKey(this.#layout.removals(directoryOf(path))))?.modRevision ?? 0;
  }

  // locks

  async tryAcquire(path: string, sessionId: string): Promise<LockHandle | undefined> {
    checkPath(path);
    const lease = leaseOfSession(sessionId);
    if (lease === undefined) throw sessionEnded(sessionId);
    const [key, session] = [this.#layout.lock(path), this.#layout.session(sessionId)];
    let revision = this.#sessions.get(sessionId)?.revision ?? 0;
    for (let mayHaveHappened = false; ; ) {
      const { answer, isRepeated } = await this.#transact({
        compare: [created(key, 0), modified(session, revision), valued(session, SessionState.open)],
        success: [put(key, sessionId, lease)],
        failure: [readKey(key), readKey(session)],
      });
      if (answer.succeeded) return { path, sessionId, epoch: revisionOf(answer) };
      mayHaveHappened ||= isRepeated;
      const [held, living] = [readBy(answer, 0), readBy(answer, 1)];
      if (living === undefined || textOf(living) !== SessionState.open) throw sessionEnded(sessionId);
      if (held !== undefined) {
        const lock = lockOf(path, held);
        if (lock.sessionId === sessionId) return lock;
        // a try that comes late would take a lock of which its session does not know
        if (mayHaveHappened) await this.#replaceKey(sessionId, lease, SessionState.open);
        return undefined;
      }
      revision = living.modRevision ?? 0;
      this.#knowRevision(sessionId, revision);
    }
  }

  async release({ path, sessionId, epoch }: LockHandle): Promise<void> {
    const lease = leaseOfSession(sessionId);
    if (lease === undefined) return;
    const key = this.#layout.lock(path);
    const { answer } = await this.#transact({
      compare: [created(key, epoch), valued(key, sessionId)],
      success: [deleteKey(key), put(this.#layout.session(sessionId), SessionState.open, lease)],
      failure: [],
    });
    if (answer.succeeded) this.#knowRevision(sessionId, revisionOf(answer));
  }

  async holder(path: string): Promise<LockHandle | undefined> {
    checkPath(path);
    const held = await this.#readKey(this.#layout.lock(path));
    return held && lockOf(path, held);
  }

  async holders(prefix: string): Promise<LockHandle[]> {
    const { from, to } = this.#layout.locks(prefix);
    const { kvs }: RangeAnswer = await this.#call(RANGE, { key: toBytes(from), rangeEnd: toBytes(to) });
    return kvs.map((held) => {
      const meaning = held.key && this.#layout.meaningOf(held.key);
      assert(meaning?.kind === 'lock', 'a list of locks holds locks');
      return lockOf(meaning.path, held);
    });
  }

  watch(prefix: string, listener: (event: LockEvent) => void): () => void {
    return this.#parts.watches.watch(prefix, this.#seen, listener);
  }

  async close(): Promise<void> {
    this.#parts.watches.close();
    this.#parts.client.close();
    await this.#parts.keeper.close();
  }

  /** Resolves with the lease's length, s. */
  async #grant(lease: bigint): Promise<number> {
    try {
      const { ttlSeconds = 0 } = await this.#call(LEASE_GRANT, { ttlSeconds: SESSION_SECONDS, id: lease });
      return ttlSeconds;
    } catch (error) {
      // leases are numbered by chance: one that exists was granted to an earlier try
      if (!hasCode(error, Code.ALREADY_EXISTS)) throw error;
      return SESSION_SECONDS;
    }
  }

  /** Writes a session's key anew where the session lives. */
  async #replaceKey(sessionId: string, lease: bigint, state: string): Promise<void> {
    const key = this.#layout.session(sessionId);
    const { answer } = await this.#transact({
      compare: [valued(key, SessionState.open)],
      success: [put(key, state, lease)],
      failure: [],
    });
    if (answer.succeeded) this.#knowRevision(sessionId, revisionOf(answer));
  }

  /**
   * Carries out an operation on a file if its guards hold; without a version, on whichever it has. Resolves with the
   * answer that it has happened, or with a refusal whose file was written by an earlier try of the same `call`.
   * UNAVAILABLE where it is refused, and an earlier try may have happened.
   */
  async #change(
    path: string,
    guard: Guard & { readonly sessionId?: string },
    operation: Operation,
    call: string | undefined,
  ): Promise<TxnAnswer> {
    const change = new GuardedChange(this.#layout, path, guard);
    let before = guard.version ?? (await this.#readKey(this.#layout.file(path)))?.modRevision ?? 0;
    const start = this.#seen;
    for (let mayHaveHappened = false; ; ) {
      const { answer, isRepeated } = await this.#transact(change.request(before, operation));
      const found = change.fileOf(answer);
      if (answer.succeeded || (call !== undefined && found !== undefined && isWrittenBy(call, found))) return answer;
      mayHaveHappened ||= isRepeated;
      before = found?.modRevision ?? 0;
      const refusal = change.refusalOf(answer);
      if (refusal === undefined) continue;
      // a file that was not changed since the call began was not changed by it
      const isUnchanged = before > 0 && before <= start;
      if (!mayHaveHappened || isUnchanged) throw refusal;
      throw unavailable(`it is not known if a change happened, and now: ${refusal.message}`);
    }
  }

  async #readKey(key: Uint8Array): Promise<KeyValue | undefined> {
    return (await this.#call(RANGE, { key })).kvs[0];
  }

  #fileOf(kv: KeyValue): SmallFile {
    const meaning = kv.key && this.#layout.meaningOf(kv.key);
    assert(meaning?.kind === 'file', 'a list of files holds files');
    return decodeStoredFile(meaning.path, kv);
  }

  async #transact(request: TxnRequest): Promise<Answered<TxnAnswer>> {
    const answered = await this.#parts.client.call(TXN, request);
    this.#see(answered.answer.header);
    return answered;
  }

  async #call<Q, A extends { readonly header?: Header }>(method: EtcdMethod<Q, A>, request: Q): Promise<A> {
    const { answer } = await this.#parts.client.call(method, request);
    this.#see(answer.header);
    return answer;
  }

  #see(header: Header | undefined): void {
    this.#seen = Math.max(this.#seen, header?.revision ?? 0);
  }

  #knowRevision(sessionId: string, revision: number): void {
    const own = this.#sessions.get(sessionId);
    if (own !== undefined) own.revision = Math.max(own.revision, revision);
  }
}

/** The revision of a transaction that has changed something. */
function revisionOf({ header }: TxnAnswer): number {
  const revision = header?.revision ?? 0;
  assert(revision > 0, 'an answer of etcd has its revision');
  return revision;
}

function lockOf(path: string, held: KeyValue): LockHandle {
  return { path, sessionId: textOf(held), epoch: held.createRevision ?? 0 };
}

function hasCode(error: unknown, code: Code): boolean {
  return error instanceof BigtableError && error.code === code;
}
