/**
 * Calls of a slot store that are sent again until they are answered, for a limited time.
 *
 * Invariant: a creation is reported as refused only if no attempt of it can take effect any more.
 */
import { assert, type BigtableError, Code, toBigtableError, unavailable } from '../../base/index.ts';
import { isOutcomeUnknown } from '../calls/settled-changes.ts';
import { type Clock, sleep } from '../seams/clock.ts';
import type { Checksum } from '../seams/codecs.ts';
import { MAX_DELETED_SLOTS, type SlotPage, type SlotStore } from '../seams/slot-store.ts';
import { decodeSlotHeader, SLOT_HEADER_BYTES, type SlotHeader } from './slot-format.ts';

const FIRST_DELAY_MS = 10;
const MAX_DELAY_MS = 1000;

export interface SlotCallsOptions {
  readonly store: SlotStore;
  readonly clock: Clock;
  readonly checksum: Checksum;
  /** A call is sent again for this time, ms. */
  readonly retryForMs: number;
  /** As `SlotLogsOptions`. */
  readonly slotCostBytes?: number;
}

export class SlotCalls {
  readonly clock: Clock;
  readonly checksum: Checksum;
  readonly slotCostBytes: number;
  readonly #store: SlotStore;
  readonly #retryForMs: number;

  constructor({ store, clock, checksum, retryForMs, slotCostBytes = 0 }: SlotCallsOptions) {
    this.clock = clock;
    this.checksum = checksum;
    this.slotCostBytes = slotCostBytes;
    this.#store = store;
    this.#retryForMs = retryForMs;
  }

  /**
   * True: an attempt has created it; false: it exists, perhaps by an earlier attempt. RESOURCE_EXHAUSTED: surely not
   * created. Anything else: it may have been, or may yet be. `isStopped`: no more attempts, please.
   */
  async create(
    log: string,
    slot: number,
    parts: readonly Uint8Array[],
    { reserved = false, isStopped = () => false }: { reserved?: boolean; isStopped?: () => boolean } = {},
  ): Promise<boolean> {
    let attempts = 0;
    return this.#settled(async () => {
      attempts++;
      try {
        return await this.#store.create(log, slot, parts, { reserved });
      } catch (thrown) {
        const error = toBigtableError(thrown);
        // this attempt was refused, but an earlier one may yet take effect
        if (attempts > 1 && !isOutcomeUnknown(error))
          throw unavailable(
            `${log}: the creation of slot ${slot} was refused after an attempt of unknown outcome`,
            error,
          );
        throw error;
      }
    }, isStopped);
  }

  read(log: string, slot: number, offset: number, length: number): Promise<Buffer | undefined> {
    assert(length > 0, 'something is read');
    return this.#settled(() => this.#store.read(log, slot, offset, length));
  }

  /** Undefined: there is no such slot. Errors as those of `decodeSlotHeader`. */
  async readHeader(log: string, slot: number): Promise<SlotHeader | undefined> {
    const bytes = await this.read(log, slot, 0, SLOT_HEADER_BYTES);
    return bytes && decodeSlotHeader(bytes, log, slot, this.checksum);
  }

  /** The slots of the log from `from` on, page by page. The pages are not of one instant. */
  async *pages(log: string, from: number): AsyncIterable<readonly number[]> {
    for (let next = from; ; ) {
      const page: SlotPage = await this.#settled(() => this.#store.listSlots(log, next));
      const last = page.slots.at(-1);
      if (last !== undefined) {
        assert((page.slots[0] ?? 0) >= next, 'a page begins where it was asked to');
        next = last + 1;
        yield page.slots;
      }
      if (page.isLast || last === undefined) return;
    }
  }

  async listLogs(prefix: string): Promise<string[]> {
    const logs: string[] = [];
    for (let after = ''; ; ) {
      const page = await this.#settled(() => this.#store.listLogs(prefix, after));
      const last = page.at(-1);
      if (last === undefined) return logs;
      assert(last > after, 'pages ascend');
      for (const log of page) logs.push(log);
      after = last;
    }
  }

  delete(log: string, slots: readonly number[], isStopped?: () => boolean): Promise<void> {
    assert(slots.length <= MAX_DELETED_SLOTS, 'one call deletes a limited number of slots');
    return this.#settled(() => this.#store.delete(log, slots), isStopped);
  }

  reserve(log: string, bytes: number): Promise<void> {
    return this.#settled(() => this.#store.reserve(log, bytes));
  }

  unreserve(log: string): Promise<void> {
    return this.#settled(() => this.#store.unreserve(log));
  }

  async #settled<T>(call: () => Promise<T>, isStopped = (): boolean => false): Promise<T> {
    const endMs = this.clock.monotonicMs() + this.#retryForMs;
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, MAX_DELAY_MS)) {
      try {
        return await call();
      } catch (thrown) {
        const error: BigtableError = toBigtableError(thrown);
        if (!isOutcomeUnknown(error)) throw error;
        if (isStopped() || this.clock.monotonicMs() + delayMs > endMs)
          throw error.code === Code.UNAVAILABLE ? error : unavailable(error.message, error);
      }
      await sleep(this.clock, delayMs);
      if (isStopped()) throw unavailable('the call was given up, its outcome is unknown');
    }
  }
}
