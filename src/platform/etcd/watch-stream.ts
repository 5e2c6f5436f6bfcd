/**
 * The watches of an adapter: one stream of etcd's events of all keys of the cluster, given on to each watcher.
 *
 * Invariants:
 * - A watcher gets each event above the revision that the adapter had seen when the watch began: of changes that were
 *   answered before it hears nothing, of all later ones it does.
 * - A stream that breaks is resumed after the last revision that was whole. Where that was compacted every watcher gets
 *   a gap, and the stream begins at the first revision that is left.
 * - The stream is there while it has watchers. If it cannot be resumed for GIVE_UP_MS, or for good, all watchers are
 *   told and none is left.
 */
import { BigtableError, Code, toBigtableError, toBytes, unavailable } from '../../base/index.ts';
import { type Clock, type LockChange, type LockEvent, type Logger, sleep } from '../../env/index.ts';
import type { EtcdClient } from './etcd-client.ts';
import type { KeyLayout } from './key-layout.ts';
import { WATCH, type WatchAnswer, type WatchEvent } from './messages.ts';
import { changeOf, concerns } from './watch-events.ts';

/** As long as sessions outlast without their keep-alives, and some more. */
const GIVE_UP_MS = 30_000;
const PAUSE_MS = 100;
/** No later attempt will do better. */
const FINAL: ReadonlySet<Code> = new Set([
  Code.INVALID_ARGUMENT,
  Code.PERMISSION_DENIED,
  Code.UNAUTHENTICATED,
  Code.UNIMPLEMENTED,
]);

interface Watcher {
  readonly prefix: string;
  readonly listener: (event: LockEvent) => void;
  /** The revision that was seen when it began. */
  readonly after: number;
  isEstablished: boolean;
  stopped: boolean;
}

export interface WatchParts {
  readonly client: EtcdClient;
  readonly layout: KeyLayout;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class WatchStream {
  readonly #parts: WatchParts;
  readonly #watchers = new Set<Watcher>();
  /** Ends the stream that runs. */
  #running: AbortController | undefined;
  /** True from when etcd has confirmed the stream that runs. */
  #isCreated = false;
  /** Events below it have been given on. */
  #next = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** `after`: the revision that the adapter has seen. */
  watch(prefix: string, after: number, listener: (event: LockEvent) => void): () => void {
    const watcher: Watcher = { prefix, listener, after, isEstablished: false, stopped: false };
    this.#watchers.add(watcher);
    if (this.#running === undefined) {
      this.#next = after + 1;
      this.#running = new AbortController();
      void this.#run(this.#running.signal);
    } else if (this.#isCreated) this.#establish();
    return () => {
      watcher.stopped = true;
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop();
    };
  }

  /** Every watcher gets its end. */
  close(): void {
    this.#stop();
    for (const watcher of this.#watchers) report(watcher, { kind: 'ended' });
    this.#watchers.clear();
  }

  #stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#isCreated = false;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { client, clock, logger } = this.#parts;
    let brokenSinceMs: number | undefined;
    let isSignedInAnew = false;
    const onCreated = (): void => {
      brokenSinceMs = undefined;
      isSignedInAnew = false;
    };
    while (!signal.aborted) {
      const error = await this.#follow(signal, onCreated).catch(toBigtableError);
      if (signal.aborted) return;
      if (error === undefined) continue;
      brokenSinceMs ??= clock.monotonicMs();
      const isFinal = FINAL.has(error.code) && isSignedInAnew;
      if (isFinal || clock.monotonicMs() - brokenSinceMs > GIVE_UP_MS) {
        logger.error('etcd cannot be watched', { error: error.message });
        return this.close();
      }
      // CANCELLED: the client has gone to another member
      if (error.code === Code.CANCELLED) continue;
      if (FINAL.has(error.code)) {
        // some releases say "permission denied" for a token that is no longer good
        client.signOut();
        isSignedInAnew = true;
      }
      await sleep(clock, PAUSE_MS, signal).catch(() => {});
    }
  }

  /** Gives events on until the stream ends. Resolves where it can go on immediately. */
  async #follow(signal: AbortSignal, onCreated: () => void): Promise<undefined> {
    const { client, layout } = this.#parts;
    const { from, to } = layout.all;
    const create = {
      key: toBytes(from),
      rangeEnd: toBytes(to),
      startRevision: this.#next,
      previous: true,
      fragment: true,
    };
    let parts: WatchEvent[] = [];
    for await (const answer of client.stream(WATCH, { create }, signal)) {
      if (signal.aborted) return;
      if (answer.canceled) return this.#cancelled(answer);
      if (answer.created) {
        onCreated();
        this.#isCreated = true;
        this.#establish();
      }
      parts.push(...answer.events);
      if (answer.fragment) continue;
      this.#giveOn(parts);
      parts = [];
    }
    throw unavailable('etcd has ended the watch');
  }

  #cancelled({ compactRevision = 0, cancelReason = 'it gives no reason' }: WatchAnswer): undefined {
    if (compactRevision === 0) {
      const isRefused = /permission denied|auth/.test(cancelReason);
      const code = isRefused ? Code.PERMISSION_DENIED : Code.UNAVAILABLE;
      throw new BigtableError(code, `etcd has ended the watch: ${cancelReason}`);
    }
    this.#next = Math.max(this.#next, compactRevision);
    this.#reportGap();
  }

  /** Whole revisions, in their order. */
  #giveOn(events: readonly WatchEvent[]): void {
    // a member that lags behind was seen to send events of before the beginning
    const later = events.filter(({ kv }) => (kv?.modRevision ?? 0) >= this.#next);
    for (const event of later) {
      const change = changeOf(this.#parts.layout, event);
      if (change === 'unclear') this.#reportGap();
      else if (change !== undefined) this.#report(change, event.kv?.modRevision ?? 0);
    }
    this.#next = Math.max(this.#next, ...later.map(({ kv }) => (kv?.modRevision ?? 0) + 1));
  }

  #establish(): void {
    for (const watcher of this.#watchers) {
      if (watcher.isEstablished) continue;
      watcher.isEstablished = true;
      report(watcher, { kind: 'established' });
    }
  }

  #reportGap(): void {
    this.#establish();
    for (const watcher of this.#watchers) report(watcher, { kind: 'gap' });
  }

  #report(change: LockChange, revision: number): void {
    for (const watcher of this.#watchers)
      if (revision > watcher.after && concerns(change, watcher.prefix)) report(watcher, change);
  }
}

/** In microtasks, so that a listener never runs inside a call that watches or ends a watch; they keep their order. */
function report(watcher: Watcher, event: LockEvent): void {
  void Promise.resolve().then(() => {
    if (!watcher.stopped) watcher.listener({ ...event });
  });
}
