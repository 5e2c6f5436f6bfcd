/**
 * The slots of logs on S3, one object each. Every call is one attempt: those who make logs of slots send it again
 * (env/slots/slot-calls.ts), and settle what became of it.
 */
import { assert } from '../../base/index.ts';
import { checkFilePath, type SlotPage, type SlotStore } from '../../env/index.ts';
import type { S3Objects } from './s3-objects.ts';

const DIGITS = 16;
/** Above each digit: what comes after all slots of a row. */
const AFTER_SLOTS = ':';
const MAX_CONCURRENT_DELETIONS = 16;

export class S3Slots implements SlotStore {
  readonly #objects: S3Objects;
  readonly #pageSize: number;

  /** `pageSize`: objects in a page of a list, at most 1000. */
  constructor(objects: S3Objects, pageSize: number) {
    this.#objects = objects;
    this.#pageSize = pageSize;
  }

  async create(row: string, slot: number, parts: readonly Uint8Array[]): Promise<boolean> {
    return this.#objects.create(objectOf(row, slot), parts);
  }

  async read(row: string, slot: number, offset: number, length: number): Promise<Buffer | undefined> {
    return this.#objects.read(objectOf(row, slot), offset, length);
  }

  async listSlots(row: string, from: number): Promise<SlotPage> {
    const prefix = objectOf(row, 0).slice(0, -DIGITS);
    const after = from === 0 ? {} : { after: objectOf(row, from - 1) };
    const { objects, next } = await this.#objects.list(prefix, { ...after, size: this.#pageSize });
    return { slots: objects.map(({ path }) => Number(path.slice(-DIGITS))), isLast: next === undefined };
  }

  /** No row's path is a prefix directory of another's, so their order is that of their slots' keys. */
  async listLogs(prefix: string, after: string): Promise<string[]> {
    if (prefix !== '') checkFilePath(prefix.replace(/\/$/, ''));
    const from = after === '' ? {} : { after: `slots/${after}/${AFTER_SLOTS}` };
    const { objects } = await this.#objects.list(`slots/${prefix}`, { ...from, size: this.#pageSize });
    const rows = objects.map(({ path }) => path.slice('slots/'.length, -DIGITS - 1));
    return [...new Set(rows)];
  }

  async delete(row: string, slots: readonly number[]): Promise<void> {
    for (let at = 0; at < slots.length; at += MAX_CONCURRENT_DELETIONS) {
      const some = slots.slice(at, at + MAX_CONCURRENT_DELETIONS);
      await Promise.all(some.map((slot) => this.#objects.delete(objectOf(row, slot))));
    }
  }

  /** S3 has no limit. */
  async reserve(): Promise<void> {}

  async unreserve(): Promise<void> {}
}

function objectOf(row: string, slot: number): string {
  checkFilePath(row);
  assert(Number.isSafeInteger(slot) && slot >= 0, 'a slot is a safe integer');
  return `slots/${row}/${String(slot).padStart(DIGITS, '0')}`;
}
