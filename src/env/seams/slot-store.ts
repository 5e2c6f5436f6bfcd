/**
 * What commit logs need of a store that has no appends, only objects that are created whole: S3 with conditional
 * writes, a shared POSIX directory with `link()`. A log is a row of numbered slots; `SlotLogs` makes the logs of a
 * FileSystem of them (docs/formats/slot-log.md).
 *
 * Promises every adapter keeps:
 * - A slot is whole or absent, durable once its creation has resolved, and never changes until it is deleted.
 * - Of all creations of one slot one succeeds at most, until the slot is deleted.
 * - Each call takes effect at one instant between its beginning and its answer, a page of a list too.
 *
 * A call that fails with UNAVAILABLE or DEADLINE_EXCEEDED may have taken effect, or may yet, at any later time, also
 * after a repetition of it. Every call may be sent again. RESOURCE_EXHAUSTED: it has no effect, now or later.
 *
 * A log's path is as that of a file (`checkFilePath`); a slot is a safe integer of 0 or more.
 */
/** Slots in one call of `delete`. */
export const MAX_DELETED_SLOTS = 1000;

export interface SlotPage {
  /** Ascending. */
  readonly slots: readonly number[];
  /** No slot of the log above these existed. */
  readonly isLast: boolean;
}

export interface SlotStore {
  /**
   * Creates the slot with the concatenation of `parts`, which may be reused after that; false, if it exists. With
   * `reserved` it takes room that is reserved for its log, and is never refused for lack of room.
   */
  create(
    log: string,
    slot: number,
    parts: readonly Uint8Array[],
    options?: { readonly reserved?: boolean },
  ): Promise<boolean>;
  /** Up to `length` bytes from `offset`: fewer where the slot ends before. Undefined, where there is no such slot. */
  read(log: string, slot: number, offset: number, length: number): Promise<Buffer | undefined>;
  /** The slots of the log from `from` on: a page of the store's own size, at least one if there is any. */
  listSlots(log: string, from: number): Promise<SlotPage>;
  /** A page of the paths that have a slot, begin with `prefix` and are above `after`, ascending; empty = no more. */
  listLogs(prefix: string, after: string): Promise<string[]>;
  /**
   * Deletes each of the slots, at most MAX_DELETED_SLOTS, at an instant of its own, in any order. Nothing happens where
   * there is none.
   */
  delete(log: string, slots: readonly number[]): Promise<void>;
  /**
   * Makes the room that is reserved in this log at least `bytes`; creations with `reserved` take theirs from it. A
   * store without a limit has nothing to do.
   */
  reserve(log: string, bytes: number): Promise<void>;
  /** Ends what is reserved for the log; the deletion of its slot 0 does it too. */
  unreserve(log: string): Promise<void>;
}
