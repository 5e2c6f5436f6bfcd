/**
 * The tablets about which something is to be done, each by itself (docs/decisions/0067-assignment-queue.md): reads the
 * row of each, if it is not known, has the tablet assigned, and loaded. A death adds what the dead server had.
 *
 * Invariants: a tablet is in work once at a time; what happens to it meanwhile is taken up afterwards. The root tablet
 * goes before METADATA's others, and those before users': a tablet is put aside while the one that holds its row is in
 * the queue, and users' tablets while the master does not know which tablet holds their rows. Nothing else waits for
 * it: the tablets whose rows lie in one tablet of METADATA are a group, with commits of its own, and no group waits for
 * another one. The root tablet is a group by itself.
 */
import { assert, type BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import type { Env, RequestContext, Timer } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import {
  isMetadataTablet,
  keyOfRow,
  type MetadataKey,
  metadataKey,
  type MetadataRow,
  ROOT_KEY,
} from '../metadata/index.ts';
import { isDeposed } from '../protocol/index.ts';
import type { Assignment, Placement } from './assignment.ts';
import type { LiveServer } from './live-server.ts';
import type { Loads } from './loads.ts';
import type { MetadataTablets } from './metadata-tablets.ts';
import type { Servers } from './servers.ts';
import { RETRY_MS } from './work-schedule.ts';

/** The number of rows of one tablet of METADATA that are read, and in one commit. */
const MAX_BATCH_ROWS = 256;
/** In place of a tablet of METADATA: what holds the root tablet's row, and what is not known yet. */
const [LOCK_SERVICE, UNKNOWN] = ['lock service', 'unknown'];
/** A row that is not read by then is tried again later. */
const READ_MS = 2000;
/** The interval of attempts to serve a tablet whose files are damaged. */
const DAMAGED_AGAIN_MS = 30_000;
/**
 * A walk over all rows waits while more tablets than this are to be begun. A walk passes one tablet of METADATA after
 * another: that many are enough for several groups to be in work.
 */
const MAX_WAITING = 16_384;

export interface AssignmentQueueOptions {
  readonly env: Env;
  readonly metadata: MetadataClient;
  readonly metadataTablets: MetadataTablets;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly loads: Loads;
  readonly context: () => RequestContext;
  /** Throws while the master may not work. */
  readonly check: () => void;
  /** A later master has taken the place of this one. */
  readonly onDeposed: () => void;
  /** A tablet of METADATA could not be assigned, and will be tried again. */
  readonly onMetadataFailure: (error: BigtableError) => void;
  /** A row was not read, though its tablet of METADATA is not in the queue. */
  readonly onNotRead: () => void;
}

/**
 * `waiting`: to be begun. `aside`: until its tablet of METADATA is known and leaves the queue. `held`: until a merge is over.
 * `sorting`: until the logs of its dead servers are sorted. `failing`: until it is tried again.
 */
type Phase = 'waiting' | 'aside' | 'held' | 'sorting' | 'active' | 'failing';

/** The tablets whose rows lie in one tablet of METADATA. */
interface Group {
  readonly waiting: Set<Entry>;
  /** In work, with their rows. */
  readonly ready: Entry[];
  /** The number of those that are ready, or whose rows are being read. */
  inWork: number;
  isAssigning: boolean;
}

interface Entry {
  readonly key: MetadataKey;
  group: Group;
  phase: Phase;
  /** Its row as it was read, if it was. */
  row: MetadataRow | undefined;
  /** The server that shall have it. */
  preferred: string | undefined;
  /** Its server has died, so the tablet below it may be unknown: the notice of a split may have been lost. */
  isRecovered: boolean;
  /** Something has happened to it since it was begun: it is begun again. */
  isStale: boolean;
  failure: BigtableError | undefined;
  retry: Timer | undefined;
  readonly onSettled: ((failure: BigtableError | undefined) => void)[];
}

/** Keeps tablets out of work. */
export interface Hold {
  /** Aborts when the server of one of them dies. */
  readonly signal: AbortSignal;
  /** They may be worked on again. */
  release(): void;
}

export class AssignmentQueue {
  readonly #options: AssignmentQueueOptions;
  readonly #entries = new Map<MetadataKey, Entry>();
  readonly #counts: Record<Phase, number> = { waiting: 0, aside: 0, held: 0, sorting: 0, active: 0, failing: 0 };
  /** By the tablet of METADATA. */
  readonly #groups = new Map<MetadataKey, Group>();
  /** By the tablet of METADATA that they wait for; UNKNOWN: until that is known. */
  readonly #aside = new Map<MetadataKey, Entry[]>();
  readonly #held = new Map<MetadataKey, AbortController>();
  #ended = false;
  #isDue = false;
  readonly #underWay = new Set<Promise<void>>();
  #onRoom: (() => void)[] = [];
  #onIdle: (() => void)[] = [];

  constructor(options: AssignmentQueueOptions) {
    this.#options = options;
  }

  /** The number of tablets that could not be served at the last attempt, or wait for others. */
  get unserved(): number {
    return this.#counts.failing + this.#counts.aside + this.#counts.sorting;
  }

  /** True while tablets are in work. */
  get isBusy(): boolean {
    return this.#counts.waiting + this.#counts.active + this.#counts.sorting > 0;
  }

  has(key: MetadataKey): boolean {
    return this.#entries.has(key);
  }

  /** A look at the row has found that something is to be done. */
  found(row: MetadataRow): void {
    const entry = this.#entries.get(keyOfRow(row));
    if (entry !== undefined && entry.phase !== 'failing') return;
    this.#begin(entry ?? this.#newEntry(keyOfRow(row)), row);
  }

  /** The server of the tablets is dead. */
  recover(keys: readonly MetadataKey[]): void {
    for (const key of keys) {
      this.#held.get(key)?.abort();
      const entry = this.#add(key, undefined);
      entry.isRecovered = true;
    }
  }

  /** Looks at the tablet, and settles when that is done, with the failure if it is not served. */
  look(key: MetadataKey, row?: MetadataRow, preferred?: string): Promise<BigtableError | undefined> {
    const entry = this.#add(key, row);
    entry.preferred = preferred;
    return this.#settled(entry);
  }

  /** Settles when the tablet is not in work, with the failure of the last attempt if there was one. */
  async settled(key: MetadataKey): Promise<BigtableError | undefined> {
    const entry = this.#entries.get(key);
    return entry && (entry.failure ?? this.#settled(entry));
  }

  /** METADATA's tablets are known: the others may begin once theirs is served. */
  metadataIsKnown(): void {
    this.#takeBack(UNKNOWN);
  }

  /** Resolves when there is room for tablets that a walk finds. */
  async room(): Promise<void> {
    while (this.#counts.waiting > MAX_WAITING && !this.#ended)
      await new Promise<void>((resolve) => this.#onRoom.push(resolve));
  }

  /** Resolves when every tablet was tried. */
  async idle(): Promise<void> {
    while (this.isBusy && !this.#ended) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Keeps tablets that are not in work out of it. */
  hold(keys: readonly MetadataKey[]): Hold {
    const abort = new AbortController();
    for (const key of keys) {
      assert(!this.#entries.has(key) && !this.#held.has(key), 'a tablet that is held is not in work');
      this.#held.set(key, abort);
    }
    return {
      signal: abort.signal,
      release: () => {
        for (const key of keys) {
          this.#held.delete(key);
          const entry = this.#entries.get(key);
          if (entry?.phase === 'held') this.#begin(entry, undefined);
        }
      },
    };
  }

  /** No more work begins. */
  end(): void {
    this.#ended = true;
    for (const abort of this.#held.values()) abort.abort();
    this.#options.loads.end();
    for (const entry of this.#entries.values()) {
      entry.retry?.cancel();
      for (const notify of entry.onSettled.splice(0)) notify(unavailable('the master has ended'));
    }
    this.#notify();
  }

  /** Resolves when the work that has begun is over. */
  async over(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #newEntry(key: MetadataKey): Entry {
    const entry: Entry = {
      key,
      group: this.#groupOf(key),
      phase: 'failing',
      row: undefined,
      preferred: undefined,
      isRecovered: false,
      isStale: false,
      failure: undefined,
      retry: undefined,
      onSettled: [],
    };
    this.#entries.set(key, entry);
    this.#counts.failing++;
    return entry;
  }

  #add(key: MetadataKey, row: MetadataRow | undefined): Entry {
    const entry = this.#entries.get(key) ?? this.#newEntry(key);
    if (entry.phase === 'active') entry.isStale = true;
    else this.#begin(entry, row);
    return entry;
  }

  #settled(entry: Entry): Promise<BigtableError | undefined> {
    if (this.#ended) return Promise.resolve(unavailable('the master has ended'));
    return new Promise((resolve) => entry.onSettled.push(resolve));
  }

  /** The tablet is begun, from the reading of its row. */
  #begin(entry: Entry, row: MetadataRow | undefined): void {
    entry.retry?.cancel();
    entry.failure = undefined;
    entry.isStale = false;
    entry.row = row ?? (entry.phase === 'waiting' ? entry.row : undefined);
    if (entry.phase === 'aside') return;
    if (this.#held.has(entry.key)) return this.#enter(entry, 'held');
    if (entry.phase === 'waiting') return;
    this.#enter(entry, 'waiting');
    entry.group = this.#groupOf(entry.key);
    entry.group.waiting.add(entry);
    this.#dispatchLater();
  }

  #groupOf(key: MetadataKey): Group {
    const holder = this.#options.metadataTablets.holderOf(key) ?? (key === ROOT_KEY ? LOCK_SERVICE : UNKNOWN);
    let group = this.#groups.get(holder);
    if (group === undefined) {
      group = { waiting: new Set(), ready: [], inWork: 0, isAssigning: false };
      this.#groups.set(holder, group);
    }
    return group;
  }

  #enter(entry: Entry, phase: Phase): void {
    if (entry.phase === 'waiting') entry.group.waiting.delete(entry);
    this.#counts[entry.phase]--;
    assert(this.#counts[entry.phase] >= 0, 'a tablet leaves the phase that it is in');
    entry.phase = phase;
    this.#counts[phase]++;
  }

  #dispatchLater(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    void Promise.resolve().then(() => {
      this.#isDue = false;
      this.#dispatch();
    });
  }

  /** Begins what may begin. */
  #dispatch(): void {
    if (this.#ended || this.#counts.waiting === 0) return;
    try {
      this.#options.check();
    } catch {
      // the lease may have lapsed: either it holds again soon, or the master ends
      this.#options.env.clock.timer(RETRY_MS, () => this.#dispatchLater());
      return;
    }
    for (const group of this.#groups.values()) {
      for (const entry of group.waiting) {
        if (group.inWork >= MAX_BATCH_ROWS) break;
        if (this.#putAside(entry)) continue;
        this.#enter(entry, 'active');
        group.inWork++;
        if (entry.row !== undefined) this.#isReady(entry);
        else void this.#track(this.#read(entry));
      }
    }
    this.#notify();
  }

  /** Puts the tablet aside if the one that holds its row is in the queue, or is not known. */
  #putAside(entry: Entry): boolean {
    if (entry.key === ROOT_KEY) return false;
    const holder = this.#options.metadataTablets.holderOf(entry.key) ?? UNKNOWN;
    if (holder !== UNKNOWN && !this.#entries.has(holder)) return false;
    this.#enter(entry, 'aside');
    entry.row = undefined;
    const others = this.#aside.get(holder);
    if (others === undefined) this.#aside.set(holder, [entry]);
    else others.push(entry);
    return true;
  }

  async #track(work: Promise<void>): Promise<void> {
    this.#underWay.add(work);
    await work.finally(() => this.#underWay.delete(work));
  }

  async #read(entry: Entry): Promise<void> {
    const { metadata, env, loads } = this.#options;
    try {
      const deadlineMs = env.clock.monotonicMs() + READ_MS;
      entry.row = await metadata.readRow(entry.key, { ...this.#options.context(), deadlineMs });
    } catch (thrown) {
      this.#isOutOfWork(entry);
      const holder = this.#options.metadataTablets.holderOf(entry.key);
      if (holder === undefined || !this.#entries.has(holder)) this.#options.onNotRead();
      return this.#failed(entry, toBigtableError(thrown), 'its row was not read');
    }
    if (entry.row !== undefined) return this.#isReady(entry);
    this.#isOutOfWork(entry);
    loads.isGone(entry.key);
    this.#done(entry);
  }

  #isReady(entry: Entry): void {
    const { group } = entry;
    assert(entry.phase === 'active' && entry.row !== undefined, 'a tablet in work is ready once its row is known');
    group.ready.push(entry);
    if (!group.isAssigning) void this.#track(this.#assignReady(group));
  }

  /** The row of another tablet may be read in its place. */
  #isOutOfWork({ group }: Entry): void {
    group.inWork--;
    assert(group.inWork >= 0, 'work on a tablet ends once');
    if (group.waiting.size > 0) this.#dispatchLater();
  }

  /** Assigns tablets of one group, until none of it is ready: those that get ready meanwhile share a commit. */
  async #assignReady(group: Group): Promise<void> {
    assert(!group.isAssigning, 'tablets of a group are assigned one batch after another');
    group.isAssigning = true;
    // once those that get ready now are all there
    await Promise.resolve();
    while (group.ready.length > 0) {
      const batch = group.ready.splice(0, MAX_BATCH_ROWS);
      try {
        const candidates = batch.map(({ row, preferred }) => ({ row: row!, preferred }));
        const placements = await this.#options.assignment.assign(candidates, this.#options.context());
        assert(placements.length === batch.length, 'something comes of each tablet');
        batch.forEach((entry, i) => this.#isPlaced(entry, placements[i]!));
      } catch (thrown) {
        for (const entry of batch) {
          this.#isOutOfWork(entry);
          this.#failed(entry, toBigtableError(thrown));
        }
      }
    }
    group.isAssigning = false;
  }

  #isPlaced(entry: Entry, placement: Placement): void {
    if (entry.isRecovered) this.#lookBelow(entry);
    if (placement.kind === 'changed' && placement.row !== undefined) {
      entry.row = placement.row;
      return this.#isReady(entry);
    }
    this.#isOutOfWork(entry);
    if (placement.kind === 'sorting') return this.#waitForLogs(entry, placement.until);
    if (placement.kind === 'load') void this.#track(this.#load(entry, placement.server, placement.row));
    else this.#done(entry);
  }

  #waitForLogs(entry: Entry, until: Promise<unknown>): void {
    if (entry.isStale) return this.#begin(entry, undefined);
    this.#enter(entry, 'sorting');
    const begin = (): void => {
      if (!this.#ended && entry.phase === 'sorting') this.#begin(entry, entry.row);
    };
    void until.then(begin, begin);
  }

  /** The tablet that ends where this one begins may be a part of a split of which the master was not notified. */
  #lookBelow({ row }: Entry): void {
    if (row === undefined || row.range.start === '') return;
    const below = metadataKey(row.tableId, row.range.start);
    if (!this.#entries.has(below) && !this.#held.has(below) && !this.#options.servers.have(below))
      this.recover([below]);
  }

  async #load(entry: Entry, server: LiveServer, row: MetadataRow): Promise<void> {
    const { loads, assignment } = this.#options;
    const ref = { key: entry.key, epoch: row.epoch };
    let failure = await loads.load(server, ref);
    if (failure === undefined) return this.#done(entry);
    // it has released the tablet at this epoch, or is about to: it gets it at a later one
    if (failure.code === Code.FAILED_PRECONDITION && !isDeposed(failure)) {
      // for callers: another attempt mends it
      failure = unavailable(failure.message, failure);
      await assignment.release(server, ref, this.#options.context()).catch((thrown: unknown) => {
        failure = toBigtableError(thrown);
      });
    }
    this.#failed(entry, failure);
  }

  #done(entry: Entry): void {
    if (entry.isStale) return this.#begin(entry, undefined);
    assert(entry.phase === 'active', 'work on a tablet ends after it has begun');
    this.#entries.delete(entry.key);
    this.#counts.active--;
    for (const notify of entry.onSettled.splice(0)) notify(undefined);
    this.#takeBack(entry.key);
    this.#notify();
  }

  /** Those that were put aside for the tablet may begin. */
  #takeBack(key: MetadataKey): void {
    const aside = this.#aside.get(key);
    if (aside === undefined) return;
    this.#aside.delete(key);
    for (const entry of aside) {
      this.#enter(entry, 'failing');
      this.#begin(entry, undefined);
    }
  }

  /** The tablet is tried again later. */
  #failed(entry: Entry, error: BigtableError, delayed?: 'its row was not read'): void {
    const { env, onDeposed, onMetadataFailure } = this.#options;
    if (isDeposed(error)) onDeposed();
    if (this.#ended) return;
    assert(entry.phase === 'active', 'work on a tablet fails after it has begun');
    entry.row = undefined;
    entry.preferred = undefined;
    if (entry.isStale) return this.#begin(entry, undefined);
    this.#enter(entry, 'failing');
    if (delayed === undefined) {
      entry.failure = error;
      for (const notify of entry.onSettled.splice(0)) notify(error);
      if (isMetadataTablet(entry.key)) onMetadataFailure(error);
    }
    entry.retry = env.clock.timer(error.code === Code.DATA_LOSS ? DAMAGED_AGAIN_MS : RETRY_MS, () => {
      assert(entry.phase === 'failing', 'a tablet that is begun is not tried again later');
      this.#begin(entry, undefined);
    });
    this.#notify();
  }

  #notify(): void {
    if (this.#counts.waiting <= MAX_WAITING || this.#ended) for (const notify of this.#onRoom.splice(0)) notify();
    if (!this.isBusy || this.#ended) for (const notify of this.#onIdle.splice(0)) notify();
  }
}
