/**
 * Bounds the bytes of all memtables of a server, and the length of its log. Above half of the limit the largest
 * memtables are flushed; at the limit writes wait. A log above its limit makes the tablets with the oldest records
 * flush. Several are flushed at the same time, as far as there is room (flush-room.ts). METADATA's tablets flush long
 * before that: they are small, every flush of another writes to them, and their unflushed records would keep a log that
 * no other tablet needs, to be read after a crash. The log is trimmed after flushes.
 *
 * Invariants: METADATA's tablets never wait and are flushed first (every other flush commits to them); the log is
 * trimmed only before records that were durable when a flush began and that no tablet still holds in memory.
 */
import { assert, BigtableError, checksInvariants, Code, inParallel, toBigtableError } from '../base/index.ts';
import type { ServerLog } from '../commitlog/index.ts';
import {
  type Clock,
  type FileSystem,
  type Logger,
  type Metrics,
  type RequestContext,
  sleep,
  type StorageSpace,
} from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { type FlushLimits, FlushRoom } from './flush-room.ts';
import { isRace } from './races.ts';
import type { ServedTablet } from './tablet-map.ts';
import { WaitList } from './wait-list.ts';

/**
 * METADATA's memtables are flushed at this size, so that the root is soon read again after a crash; where METADATA's
 * tablets are split at a smaller size, at that: what is in memory alone does not split a tablet.
 */
const METADATA_FLUSH_BYTES = 4 * 1024 * 1024;
/** Number of parts in which the log's limit is measured. */
const LOG_MARKS = 4;
const RETRY_MS = 1000;

/** The part of the server's log that the budget needs. */
export type TrimmableLog = Pick<ServerLog, 'newestPosition' | 'sizeBytes' | 'trimBefore'>;
/** From which position on appends are kept, when no replay needs those below `position`. */
export type KeptLog = (position: number, space: StorageSpace | undefined) => number;

/** A trim of the log asks every tablet. With more tablets than this it comes after several flushes. */
const TABLETS_PER_FLUSH = 256;

export interface MemtableBudgetOptions {
  readonly limitBytes: number;
  readonly logLimitBytes: number;
  /** The size at which METADATA's tablets are split. */
  readonly metadataTabletBytes: number;
  readonly flushLimits?: FlushLimits | undefined;
  readonly log: TrimmableLog;
  /** Default: nothing is kept that no replay needs. */
  readonly keptFrom?: KeptLog;
  /** Default: the space of the disk is not known. */
  readonly fileSystem?: Pick<FileSystem, 'space'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export class MemtableBudget {
  readonly #options: MemtableBudgetOptions;
  readonly #metadataFlushBytes: number;
  /** Tablets from their load on, until they need no record of the log: it is kept for all of them. */
  readonly #tablets = new Set<ServedTablet>();
  /** Tablets whose rows still list logs of dead servers. */
  readonly #replayed = new Set<ServedTablet>();
  #totalBytes = 0;
  #writtenBytes = 0;
  #flushesSinceTrim = 0;
  /** Position of the newest append when a flush began that has ended. */
  #newestAtFlush = 0;
  readonly #waiting: WaitList;
  #running: Promise<void> | undefined;
  readonly #room: FlushRoom;
  /** Tablets that are being flushed. */
  readonly #flushing = new Set<ServedTablet>();
  /** Bytes of their memtables when that began. */
  #flushingBytes = 0;
  /** A flush has failed of a cause that others have, too: no other begins before a pause. */
  #hasFailed = false;
  /** Tablets whose flush met another change of them: others do not wait for their next attempt. */
  readonly #raced = new Set<ServedTablet>();
  /** Called when the next flush ends. */
  #onFlushed: (() => void) | undefined;
  /** Aborts when the server ends: a wait for the next attempt is cut short. */
  readonly #stop = new AbortController();
  /** The error of the last flush if it failed; undefined once one succeeds or none is due. */
  #flushFailure: BigtableError | undefined;
  /** Tablets are being loaded: flushes that no write waits for come later. */
  #isPaused = false;
  /** The last positions that the log had reached each time it had grown by a quarter of its limit. */
  readonly #marks: number[] = [];
  #markedBytes = 0;
  /** Some tablet may hold records that are older than all marks. */
  #logDue = false;
  /** Some tablet of METADATA has a large memtable, or may hold records that are older than the mark before the last. */
  #metadataDue = false;

  constructor(options: MemtableBudgetOptions) {
    assert(
      options.limitBytes > 0 && options.logLimitBytes > 0,
      'a budget allows some bytes: without any, writes would wait for ever',
    );
    this.#options = options;
    this.#metadataFlushBytes = Math.min(METADATA_FLUSH_BYTES, options.metadataTabletBytes);
    this.#room = new FlushRoom(options.flushLimits);
    this.#waiting = new WaitList(options.clock, 'a flush');
  }

  /** Bytes of all memtables, as last counted. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  get limitBytes(): number {
    return this.#options.limitBytes;
  }

  /** True when the last flush failed and will be retried. */
  get flushFails(): boolean {
    return this.#flushFailure !== undefined;
  }

  /**
   * True when it failed because the disk or the process has run out of something: writes that would wait for a flush
   * are refused.
   */
  get refuses(): boolean {
    return this.#flushFailure?.code === Code.RESOURCE_EXHAUSTED;
  }

  get logLimitBytes(): number {
    return this.#options.logLimitBytes;
  }

  /** The growth of memtables since the server began: about the size of its log and of the records it has replayed. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** True when a write may begin without a wait. */
  get open(): boolean {
    return this.#totalBytes < this.#options.limitBytes;
  }

  /** A tablet was loaded. */
  add(served: ServedTablet): void {
    assert(!this.#tablets.has(served) && served.countedBytes === 0, 'a tablet is added once');
    this.#tablets.add(served);
    this.count(served);
  }

  /** Counts a tablet anew after it was written to or flushed. */
  count(served: ServedTablet): void {
    const bytes = served.tablet.memtableBytes;
    assert(this.#tablets.has(served), 'a tablet is counted after it is added and before it is removed');
    assert(bytes >= 0, 'memtables take no less than nothing');
    this.#totalBytes += bytes - served.countedBytes;
    if (bytes > served.countedBytes) this.#writtenBytes += bytes - served.countedBytes;
    served.countedBytes = bytes;
    if (served.tableId === METADATA_TABLE_ID && bytes >= this.#metadataFlushBytes) this.#metadataDue = true;
    if (checksInvariants) this.assertConsistent();
    if (this.#running === undefined && this.#isDue() && !this.#isPaused) this.#start();
    if (this.open) this.#waiting.wake();
  }

  /** Walks all tablets. */
  assertConsistent(): void {
    let bytes = 0;
    for (const { countedBytes } of this.#tablets) bytes += countedBytes;
    assert(bytes === this.#totalBytes, 'the bytes of all memtables are the sum of each');
    for (const served of this.#replayed) {
      assert(this.#tablets.has(served), 'a tablet to be flushed was added and not removed');
    }
  }

  /** Begins no flush until `resume`, unless a write waits for it: replayed records in memory are to be read first. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#running === undefined && !this.#stopped && this.#isDue()) this.#start();
  }

  /** The tablet is unloaded, and needs no record of the log any more. */
  remove(served: ServedTablet): void {
    this.#tablets.delete(served);
    this.#replayed.delete(served);
    this.#raced.delete(served);
    this.#totalBytes -= served.countedBytes;
    served.countedBytes = 0;
    assert(this.#totalBytes >= 0, 'all memtables together take no less than nothing');
    if (checksInvariants) this.assertConsistent();
    if (this.open) this.#waiting.wake();
  }

  /** The tablet's row lists logs of dead servers: `flushReplayed` flushes it. */
  markReplayed(served: ServedTablet): void {
    assert(this.#tablets.has(served), 'a tablet to be flushed was added and not removed');
    this.#replayed.add(served);
  }

  /** Flushes the tablets that were named to `markReplayed`. */
  async flushReplayed(): Promise<void> {
    const newest = this.#options.log.newestPosition;
    const all = [...this.#replayed];
    const isOfMetadata = ({ tableId }: ServedTablet): boolean => tableId === METADATA_TABLE_ID;
    for (const served of all.filter(isOfMetadata)) await this.#flushReplayedOf(served);
    const others = all.filter((served) => !isOfMetadata(served));
    await inParallel(others, this.#room.limits.count, (served) => this.#flushReplayedOf(served));
    await this.#trim(newest);
  }

  /**
   * Waits until memtables are below their limit; UNAVAILABLE if the server ends first, RESOURCE_EXHAUSTED if the disk
   * has no space for a flush.
   */
  async wait(context: RequestContext): Promise<void> {
    this.#options.metrics.add('tabletserver.writesThatWaited');
    while (!this.open) {
      if (this.#stopped) throw new BigtableError(Code.UNAVAILABLE, 'the tablet server is ending');
      if (this.#running === undefined) this.#start();
      if (this.#flushFailure && this.refuses) throw this.#refused(this.#flushFailure);
      await this.#waiting.next(context);
    }
  }

  /**
   * Flushes one tablet once there is room, and trims the log; where there are many tablets, after several of these
   * calls.
   */
  flush(served: ServedTablet): Promise<void> {
    return this.#flushInRoom(served).finally(() => this.#onFlushed?.());
  }

  async #flushInRoom(served: ServedTablet): Promise<void> {
    const bytes = served.tablet.memtableBytes;
    // METADATA's do not wait: all others commit to them
    const waits = served.tableId !== METADATA_TABLE_ID;
    if (waits && !this.#room.tryTake(bytes)) await this.#room.take(bytes);
    // another one of the same tablet may be under way: it counts once
    const isCounted = !this.#flushing.has(served);
    if (isCounted) {
      this.#flushing.add(served);
      this.#flushingBytes += bytes;
    }
    try {
      await this.#flushNow(served);
    } finally {
      if (waits) this.#room.giveBack(bytes);
      if (isCounted) {
        this.#flushing.delete(served);
        this.#flushingBytes -= bytes;
        assert(this.#flushingBytes >= 0, 'a flush ends once');
      }
    }
  }

  async #flushNow(served: ServedTablet): Promise<void> {
    const newest = this.#options.log.newestPosition;
    await served.tablet.flush();
    this.#flushFailure = undefined;
    this.#replayed.delete(served);
    if (this.#tablets.has(served)) this.count(served);
    this.#newestAtFlush = Math.max(this.#newestAtFlush, newest);
    this.#flushesSinceTrim++;
    if (this.#flushesSinceTrim * TABLETS_PER_FLUSH >= this.#tablets.size) await this.#trim(newest);
  }

  /** Begins no further flush, and waits for those under way. A failed flush is not retried. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#waiting.wake();
    await this.#running;
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  #isDue(): boolean {
    this.#mark();
    return this.#logDue || this.#metadataDue || this.#memoryIsDue();
  }

  #memoryIsDue(): boolean {
    return this.#totalBytes - this.#flushingBytes >= this.#options.limitBytes / 2;
  }

  /**
   * Positions are opaque, so the age of the log is measured by the position it had each time it had grown by a part.
   */
  #mark(): void {
    const { log, logLimitBytes } = this.#options;
    const bytes = log.sizeBytes();
    if (bytes < this.#markedBytes) this.#markedBytes = bytes;
    if (bytes - this.#markedBytes < logLimitBytes / LOG_MARKS) return;
    this.#markedBytes = bytes;
    assert(log.newestPosition >= (this.#marks.at(-1) ?? 0), 'positions of the log ascend');
    this.#marks.push(log.newestPosition);
    this.#metadataDue ||= this.#marks.length > 1;
    if (this.#marks.length <= LOG_MARKS) return;
    this.#marks.shift();
    this.#logDue = true;
  }

  #start(): void {
    assert(this.#running === undefined, 'one round of flushes runs at a time');
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    await this.#flushDue();
    if (this.#flushesSinceTrim > 0) await this.#trim(this.#newestAtFlush);
  }

  async #flushDue(): Promise<void> {
    for (;;) {
      this.#startFlushes();
      if (this.#flushing.size > 0) await new Promise<void>((resolve) => (this.#onFlushed = resolve));
      else if (this.#stopped || !(this.#hasFailed || this.#raced.size > 0)) break;
      else {
        await sleep(this.#options.clock, RETRY_MS, this.#stop.signal).catch(() => {});
        this.#hasFailed = false;
        this.#raced.clear();
      }
    }
    this.#flushFailure = undefined;
  }

  #startFlushes(): void {
    while (!this.#stopped && !this.#hasFailed && this.#isDue()) {
      const next = this.#choose();
      if (next === undefined) return;
      if (next.tableId !== METADATA_TABLE_ID && !this.#room.hasRoom(next.tablet.memtableBytes)) return;
      void this.#flushOne(next);
    }
  }

  async #flushOne(served: ServedTablet): Promise<void> {
    try {
      await this.#flushInRoom(served);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      // those that were begun with it fail of the same cause
      if (isRace(error)) return void this.#raced.add(served);
      if (!this.#hasFailed)
        this.#options.logger.error('a minor compaction failed and will be tried again', {
          table: served.tableId,
          error: error.message,
        });
      this.#hasFailed = true;
      this.#flushFailure = error;
      this.#waiting.wake();
    } finally {
      this.#onFlushed?.();
    }
  }

  #refused(cause: BigtableError): BigtableError {
    const { limitBytes } = this.#options;
    const message = `the memtables have reached their limit of ${limitBytes} bytes and cannot be flushed: nothing was written: ${cause.message}`;
    return new BigtableError(Code.RESOURCE_EXHAUSTED, message, { cause });
  }

  #choose(): ServedTablet | undefined {
    const old = this.#marks[0] ?? 0;
    const oldForMetadata = this.#marks.at(-2) ?? 0;
    let largest: ServedTablet | undefined;
    let oldest: ServedTablet | undefined;
    for (const served of this.#tablets) {
      if (this.#flushing.has(served) || this.#raced.has(served)) continue;
      const bytes = served.tablet.memtableBytes;
      const position = served.tablet.oldestUnflushed;
      if (
        served.tableId === METADATA_TABLE_ID &&
        (bytes >= this.#metadataFlushBytes || (position !== undefined && position < oldForMetadata))
      )
        return served;
      if (bytes > (largest?.tablet.memtableBytes ?? 0)) largest = served;
      if (position !== undefined && position < (oldest?.tablet.oldestUnflushed ?? old)) oldest = served;
    }
    // one that is being flushed may fail
    const areAllSeen = this.#flushing.size === 0 && this.#raced.size === 0;
    if (areAllSeen) this.#metadataDue = false;
    if (this.#logDue && oldest) return oldest;
    if (areAllSeen) this.#logDue = false;
    return this.#memoryIsDue() ? largest : undefined;
  }

  async #flushReplayedOf(served: ServedTablet): Promise<void> {
    if (this.#stopped || !this.#replayed.has(served)) return;
    try {
      await this.flush(served);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (!isRace(error))
        this.#options.logger.warn('a tablet still lists the logs of dead servers', {
          table: served.tableId,
          error: error.message,
        });
    }
  }

  /** `newest`: the newest append when the flush began, so that all records before it were applied long ago. */
  async #trim(newest: number): Promise<void> {
    const { log, clock, keptFrom, fileSystem } = this.#options;
    this.#flushesSinceTrim = 0;
    await clock.yield();
    // a disk that does not tell its space has no bound
    const space = keptFrom && (await fileSystem?.space?.().catch(() => undefined));
    assert(log.newestPosition >= newest, 'positions of the log ascend');
    let keep = newest;
    for (const { tablet } of this.#tablets) keep = Math.min(keep, tablet.oldestUnflushed ?? newest);
    log.trimBefore(keep, keptFrom?.(keep, space));
  }
}
