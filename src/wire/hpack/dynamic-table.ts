/**
 * The decoder's dynamic table (RFC 7541, section 2.3.2): the fields sent last, newest first, with a bound on their
 * size.
 *
 * Invariant: sizeBytes, the sum of name + value + 32 over the entries, is never above maxBytes.
 */
import { assert } from '../../base/index.ts';

/** The cost of an entry in addition to its bytes. */
export const ENTRY_OVERHEAD_BYTES = 32;

export class DynamicTable {
  sizeBytes = 0;
  maxBytes: number;
  /** name, value, oldest first; those before #first are gone. */
  #fields: string[] = [];
  #first = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  get length(): number {
    return (this.#fields.length - this.#first) / 2;
  }

  /** Entry 0 is the newest. Undefined where there is none. */
  name(entry: number): string | undefined {
    const at = this.#fields.length - 2 * entry - 2;
    return at >= this.#first ? this.#fields[at] : undefined;
  }

  /** The entry must exist. */
  value(entry: number): string {
    return this.#fields[this.#fields.length - 2 * entry - 1]!;
  }

  /** An entry larger than the table empties it, and is not kept. */
  add(name: string, value: string): void {
    const bytes = name.length + value.length + ENTRY_OVERHEAD_BYTES;
    this.#evict(this.maxBytes - bytes);
    if (bytes > this.maxBytes) return;
    this.#fields.push(name, value);
    this.sizeBytes += bytes;
  }

  resize(maxBytes: number): void {
    this.maxBytes = maxBytes;
    this.#evict(maxBytes);
  }

  #evict(downToBytes: number): void {
    while (this.sizeBytes > downToBytes && this.#first < this.#fields.length) {
      const name = this.#fields[this.#first]!;
      const value = this.#fields[this.#first + 1]!;
      this.sizeBytes -= name.length + value.length + ENTRY_OVERHEAD_BYTES;
      this.#fields[this.#first] = '';
      this.#fields[this.#first + 1] = '';
      this.#first += 2;
    }
    assert(this.sizeBytes >= 0, 'the dynamic table counts its size');
    if (this.#first > 64 && this.#first * 2 > this.#fields.length) {
      this.#fields = this.#fields.slice(this.#first);
      this.#first = 0;
    }
  }
}
