/**
 * Bytes that only grow, kept in the pieces they came in: a large file in memory is never copied whole in one step.
 */

export class ChunkedBytes {
  readonly #chunks: Buffer[] = [];
  /** The offset at which each chunk begins. */
  readonly #starts: number[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Takes a copy. */
  append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#chunks.push(Buffer.from(bytes));
    this.#starts.push(this.#length);
    this.#length += bytes.length;
  }

  /** A copy of `length` bytes from `offset`; the range must lie within. */
  slice(offset: number, length: number): Buffer {
    const out = Buffer.allocUnsafe(length);
    let i = this.#chunkAt(offset);
    for (let copied = 0; copied < length; i++) {
      const from = offset + copied - this.#starts[i]!;
      copied += this.#chunks[i]!.copy(out, copied, from);
    }
    return out;
  }

  /** Flips the bits of one byte. */
  flip(offset: number): void {
    const i = this.#chunkAt(offset);
    const chunk = this.#chunks[i]!;
    const at = offset - this.#starts[i]!;
    chunk[at] = chunk[at]! ^ 0xff;
  }

  /** The last chunk that begins at or before `offset`. */
  #chunkAt(offset: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
