/**
 * Reads the changes of a tablet's rows from the logs of its owners, for change streams
 * (docs/decisions/0105-change-streams.md): those of past owners up to their ends, then this server's own, on and on.
 *
 * Invariants:
 * - Changes of a row come in their order, each at least once, and none is passed over: a part of a log that is gone
 *   ends the reading with OUT_OF_RANGE.
 * - Only changes that are durable come, and no owner's that METADATA does not name: they are all in the tablet, or will
 *   be after a replay.
 * - No change comes of a family that the table does not have any more, nor of an earlier one of the same name.
 */
import { assert, BigtableError, Code, derived } from '../base/index.ts';
import { type EncodedRecord, type LogRecord, Origin, readEncodedAppends, type ServerLog } from '../commitlog/index.ts';
import {
  checkContext,
  type Clock,
  type FileSystem,
  type LogMemo,
  type LogPosition,
  Pacer,
  type RequestContext,
  sleep,
} from '../env/index.ts';
import type { PastOwner } from '../metadata/index.ts';
import {
  type ChangeBatch,
  type ChangePosition,
  comparePositions,
  familyName,
  intersectRanges,
  isEmptyRange,
  type Mutation,
  rangeContains,
  type RowChange,
  type RowRange,
  storageFamily,
  type StreamProgress,
  type TableSchema,
} from '../model/index.ts';
import { logPathOf, notServing, type ReadChangesMessage } from '../protocol/index.ts';
import type { ChangeRetention } from './change-retention.ts';
import type { ServedTablet } from './tablet-map.ts';

/** A batch is sent when it has this many changes, or values of about this many bytes. */
const BATCH_CHANGES = 500;
const BATCH_BYTES = 256 * 1024;
/** What a reading of a log has in memory, next to what it sends. */
const READING_BYTES = 1024 * 1024;
/** The time between two looks at the end of the log, and for memory. */
const POLL_MS = 100;
/** Clocks of servers may differ by this much. */
const CLOCK_TOLERANCE_MICROS = 1e6;

export interface ChangeReaderOptions {
  readonly clock: Clock;
  readonly fileSystem: Pick<FileSystem, 'readLog'>;
  readonly log: Pick<ServerLog, 'newestPosition' | 'pendingBytes'>;
  readonly retention: Pick<ChangeRetention, 'before'>;
  readonly serverName: string;
  /** True while the server has the tablet. */
  isServed(served: ServedTablet): boolean;
}

/** An owner's part of the tablet's history. */
interface Part {
  readonly server: string;
  readonly epoch: number;
  /** When it may have begun at the earliest. */
  readonly sinceMicros: number;
  /** Its changes are in appends at this position or above. */
  readonly changesFrom: LogPosition;
  /** When it ended; undefined: it has not. */
  readonly untilMicros: number | undefined;
  /** Its changes are in appends at this position or below. Undefined: up to the end of the log. */
  readonly changesUntil?: LogPosition | undefined;
}

/** What the next batch is made of. */
class Gathering {
  changes: RowChange[] = [];
  position: ChangePosition | undefined;
  watermarkMicros = 0;
  isEnd = false;
  #bytes = 0;

  add(change: RowChange): void {
    this.changes.push(change);
    for (const mutation of change.mutations) if (mutation.kind === 'setCell') this.#bytes += mutation.value.length;
  }

  get isFull(): boolean {
    return this.changes.length >= BATCH_CHANGES || this.#bytes >= BATCH_BYTES;
  }

  take(): ChangeBatch {
    const { changes, position, watermarkMicros, isEnd } = this;
    this.changes = [];
    this.#bytes = 0;
    return { changes, position, watermarkMicros, isEnd };
  }
}

export class ChangeReader {
  readonly #options: ChangeReaderOptions;
  readonly #served: ServedTablet;
  readonly #message: ReadChangesMessage;
  readonly #context: RequestContext;
  readonly #gathering = new Gathering();
  readonly #pacer: Pacer;
  readonly #memos = new Map<string, LogMemo>();
  #lastSentMs: number;

  constructor(
    options: ChangeReaderOptions,
    served: ServedTablet,
    message: ReadChangesMessage,
    context: RequestContext,
  ) {
    const { range } = message;
    assert(
      message.progress.every((one) => !isEmptyRange(intersectRanges(one.range, range))),
      'the progress of a reading is that of its range',
    );
    this.#options = options;
    this.#served = served;
    this.#message = message;
    this.#context = context;
    this.#pacer = new Pacer(options.clock);
    this.#lastSentMs = options.clock.monotonicMs();
  }

  async *read(): AsyncGenerator<ChangeBatch, void> {
    try {
      yield* this.#readParts();
    } catch (error) {
      // what is gone, or was never here, may be with the tablet's next owner
      this.#checkServed();
      throw error;
    }
  }

  async *#readParts(): AsyncGenerator<ChangeBatch, void> {
    const parts = this.#parts();
    const first = firstPlace(this.#message.progress);
    const begin = first === undefined ? 0 : this.#partOf(parts, first);
    for (const [i, part] of parts.entries()) {
      if (i < begin || (first === undefined && this.#isTooOld(part))) continue;
      const after = i === begin ? first : undefined;
      if (part.server === this.#options.serverName && part.epoch === this.#served.epoch)
        yield* this.#follow(part, after);
      else yield* this.#readLog(part, after);
      if (this.#gathering.isEnd) return;
    }
  }

  /** The time from which changes are wanted. Servers' clocks may say that they are a little older. */
  get #wantedMicros(): number {
    return Math.min(...this.#message.progress.map(({ fromMicros }) => fromMicros));
  }

  /** True for a part that ended before the reading is to begin. */
  #isTooOld({ untilMicros }: Part): boolean {
    return untilMicros !== undefined && untilMicros < this.#wantedMicros - CLOCK_TOLERANCE_MICROS;
  }

  /** By epoch; the last is this server's own. */
  #parts(): Part[] {
    const { row } = this.#served.host;
    const owners: readonly PastOwner[] = row.pastOwners ?? [];
    // one without a place in its log was given the tablet, and has never served it
    const all: Part[] = owners.flatMap(({ changesFrom, ...owner }) =>
      changesFrom === undefined ? [] : [{ ...owner, sinceMicros: sinceOf(owners, owner.epoch), changesFrom }],
    );
    const { epoch } = this.#served;
    all.push({
      server: this.#options.serverName,
      epoch,
      sinceMicros: sinceOf(owners, epoch),
      untilMicros: undefined,
      changesFrom: row.changesFrom ?? 0,
    });
    return all;
  }

  /** The index of the part in which the place lies. OUT_OF_RANGE where that is not kept any more. */
  #partOf(parts: readonly Part[], { server, epoch }: ChangePosition): number {
    const at = parts.findIndex((part) => part.server === server && part.epoch === epoch);
    if (at < 0) throw gone();
    return at;
  }

  /** This server's own log, on and on. */
  async *#follow(part: Part, first: ChangePosition | undefined): AsyncGenerator<ChangeBatch, void> {
    const { clock, log } = this.#options;
    const { endMicros = Number.POSITIVE_INFINITY } = this.#message;
    let after = first;
    /** The reader's place may lie inside an append. */
    let isInside = true;
    for (;;) {
      this.#checkServed();
      const nowMicros = clock.nowMicros();
      const isQuiet = log.pendingBytes === 0;
      const end = log.newestPosition;
      if (isInside || after === undefined || after.position < end) {
        isInside = false;
        yield* this.#readLog(part, after);
        if (this.#gathering.isEnd) return;
        // appends without a change of this tablet were read, too
        const { position } = this.#gathering;
        if (position !== undefined && position.epoch === part.epoch) after = position;
      }
      // a change that is being logged has its time already
      if (isQuiet) this.#gathering.watermarkMicros = Math.max(this.#gathering.watermarkMicros, nowMicros);
      if (isQuiet && nowMicros > endMicros) {
        this.#gathering.isEnd = true;
        yield this.#send();
        return;
      }
      if (this.#gathering.changes.length > 0 || this.#heartbeatIsDue()) yield this.#send();
      await sleep(clock, POLL_MS, this.#context.signal);
    }
  }

  /** The appends of the part after a place, as far as the log goes now; waits until the budget has memory for it. */
  async *#readLog(part: Part, after: ChangePosition | undefined): AsyncGenerator<ChangeBatch, void> {
    const { clock } = this.#options;
    const { reservation, signal } = this.#context;
    while (!reservation.tryGrow(READING_BYTES)) {
      checkContext(this.#context, clock);
      if (this.#heartbeatIsDue()) yield this.#send();
      await sleep(clock, POLL_MS, signal);
      this.#checkServed();
    }
    try {
      yield* this.#readAppends(part, after);
    } finally {
      reservation.shrink(READING_BYTES);
    }
  }

  async *#readAppends(part: Part, after: ChangePosition | undefined): AsyncGenerator<ChangeBatch, void> {
    const { fileSystem } = this.#options;
    const start =
      after === undefined && this.#isOwn(part)
        ? this.#options.retention.before(this.#wantedMicros - CLOCK_TOLERANCE_MICROS)
        : undefined;
    assert(start === undefined || start <= this.#options.log.newestPosition, 'a reading begins in the log');
    // the whole log is checked to have its beginning
    const earliest = Math.max(start ?? 0, part.changesFrom);
    const from = after?.position ?? (earliest === 0 ? undefined : earliest);
    let isBeginning = true;
    const appends = readEncodedAppends(fileSystem, logPathOf(part.server), from, this.#memoOf(part));
    for await (const { position, previous, records } of appends) {
      if (isBeginning) {
        if (after !== undefined) checkResumed(after.position, position, previous);
        else if (!(start !== undefined && isNext(start, position, previous)) && previous > part.changesFrom)
          this.#checkBeginning(part, records);
        isBeginning = false;
      }
      if (part.changesUntil !== undefined && position > part.changesUntil) break;
      for (const [index, record] of records.entries()) {
        const place = { server: part.server, epoch: part.epoch, position, record: index, row: 0 };
        if (after !== undefined && isBefore(place, after)) continue;
        if (this.#isWanted(record, part)) this.#gather(record.decode(), place);
        if (this.#gathering.isEnd) {
          yield this.#send();
          return;
        }
        if (this.#gathering.isFull) yield this.#send();
      }
      this.#gathering.position = lastPlace(part, position, records.length);
      if (this.#pacer.due()) {
        await this.#pacer.pause();
        this.#checkServed();
      }
      if (this.#heartbeatIsDue()) yield this.#send();
    }
    // the newest append of a log is kept: without one it has no change of the tablet
    if (isBeginning && after !== undefined && !this.#isOwn(part)) throw gone();
  }

  /** What was learned of the log of the part's owner: it is read for each of its parts, and the own one each time. */
  #memoOf({ server }: Part): LogMemo {
    let memo = this.#memos.get(server);
    if (memo === undefined) this.#memos.set(server, (memo = {}));
    return memo;
  }

  #isOwn({ server }: Part): boolean {
    return server === this.#options.serverName;
  }

  #isWanted(record: EncodedRecord, { epoch }: Part): boolean {
    return record.tableId === this.#served.tableId && record.epoch === epoch && record.touches(this.#message.range);
  }

  /** Adds the record's changes of wanted rows. */
  #gather({ body, commitMicros, origin }: LogRecord, place: ChangePosition): void {
    const { progress, endMicros = Number.POSITIVE_INFINITY } = this.#message;
    // of the time before the stream began: since then rows are deleted one by one
    if (body.kind === 'dropRows') return;
    const families = storedFamilies(this.#served.host.schema(this.#served.tableId));
    const atMicros = Number(commitMicros);
    if (atMicros > endMicros) {
      this.#gathering.isEnd = true;
      return;
    }
    for (const [index, { row, mutations }] of body.rows.entries()) {
      const position = { ...place, row: index };
      const of = progress.find(({ range }) => rangeContains(range, row));
      if (of === undefined || !rangeContains(this.#message.range, row)) continue;
      if (atMicros < of.fromMicros || (of.after !== undefined && comparePositions(position, of.after) <= 0)) continue;
      const told = mutations.filter((mutation) => mutation.kind === 'deleteFromRow' || families.has(mutation.family));
      // the family was deleted, and with it the rule that says who may read it
      if (told.length === 0) continue;
      this.#gathering.add({
        row,
        mutations: told.map(withFamilyName),
        commitMicros: atMicros,
        origin: origin === Origin.garbageCollection ? 'garbageCollection' : 'user',
        position,
      });
      this.#gathering.position = position;
    }
    this.#gathering.watermarkMicros = Math.max(this.#gathering.watermarkMicros, atMicros);
  }

  /** The log has lost its beginning. That may be older than what the reader wants. */
  #checkBeginning({ sinceMicros }: Part, records: readonly EncodedRecord[]): void {
    const wantedMicros = Math.max(sinceMicros, this.#wantedMicros);
    const firstMicros = Number(records[0]?.decode().commitMicros ?? 0);
    if (firstMicros > wantedMicros + CLOCK_TOLERANCE_MICROS) throw gone();
  }

  #checkServed(): void {
    const { tableId, range } = this.#served;
    if (!this.#options.isServed(this.#served)) throw notServing(tableId, range.start);
  }

  #heartbeatIsDue(): boolean {
    return this.#options.clock.monotonicMs() - this.#lastSentMs >= this.#message.heartbeatMs;
  }

  #send(): ChangeBatch {
    this.#lastSentMs = this.#options.clock.monotonicMs();
    return this.#gathering.take();
  }
}

/** The earliest place of a reading; undefined where a part of it has read nothing yet. */
function firstPlace(progress: readonly StreamProgress[]): ChangePosition | undefined {
  let first: ChangePosition | undefined;
  for (const { after } of progress) {
    if (after === undefined) return undefined;
    if (first === undefined || comparePositions(after, first) < 0) first = after;
  }
  return first;
}

/** The time at which the owner before that epoch ceased to be it; 0: none is known. */
function sinceOf(owners: readonly PastOwner[], epoch: number): number {
  return Math.max(0, ...owners.filter((owner) => owner.epoch < epoch).map(({ untilMicros }) => untilMicros));
}

/** True for a record all of whose rows lie before the place. */
function isBefore(place: ChangePosition, after: ChangePosition): boolean {
  return place.position < after.position || (place.position === after.position && place.record < after.record);
}

/** The place after all records of an append. */
function lastPlace({ server, epoch }: Part, position: number, records: number): ChangePosition {
  return { server, epoch, position, record: records, row: 0 };
}

function checkResumed(after: number, position: number, previous: number): void {
  if (!isNext(after, position, previous)) throw gone();
}

/** True where the first append that is left after a place is that of the place, or follows it. */
function isNext(after: number, position: number, previous: number): boolean {
  return position === after || previous === after + 1;
}

/** The names under which the table's families are stored. */
const storedFamilies = derived(
  ({ families }: TableSchema): ReadonlySet<string> =>
    new Set(Object.values(families).map(({ name, generation }) => storageFamily(name, generation))),
);

function withFamilyName(mutation: Mutation): Mutation {
  return mutation.kind === 'deleteFromRow' ? mutation : { ...mutation, family: familyName(mutation.family) };
}

function gone(): BigtableError {
  return new BigtableError(
    Code.OUT_OF_RANGE,
    'changes that the stream has not delivered are no longer kept: they are older than the retention period of the table, or their bytes were too many for the setting changeLogBytes or for the disk',
  );
}

/** The part of a tablet's rows that a stream reads is all in the tablet. */
export function checkWithin(served: ServedTablet, range: RowRange): void {
  if (intersectRanges(range, served.range) !== range) throw notServing(served.tableId, range.start);
}
