/**
 * Writes a file to the store and its chunks to the read cache. They are found there once the file exists.
 *
 * Invariant: the writer holds one chunk of the file in memory, which it gathers or writes. The cache fails no call.
 */
import type { FileWriter } from '../../env/index.ts';
import type { ChunkStore, WrittenChunk } from './chunk-store.ts';
import type { KnownFile } from './known-files.ts';

const FIRST_BYTES = 16 * 1024;

export class CachedFileWriter implements FileWriter {
  readonly #writer: FileWriter;
  readonly #chunks: ChunkStore;
  readonly #fileOf: () => KnownFile;
  /** The chunk that is gathered, from its start. */
  #gathered = Buffer.alloc(0);
  #gatheredBytes = 0;
  #sizeBytes = 0;
  /** Those that the cache has, by their numbers. */
  readonly #written = new Map<number, WrittenChunk>();

  /** `fileOf`: the file, once it is closed. */
  constructor(writer: FileWriter, chunks: ChunkStore, fileOf: () => KnownFile) {
    this.#writer = writer;
    this.#chunks = chunks;
    this.#fileOf = fileOf;
  }

  async append(bytes: Uint8Array): Promise<void> {
    const [stored] = await Promise.allSettled([this.#writer.append(bytes), this.#gather(bytes)]);
    if (stored.status === 'rejected') throw stored.reason;
  }

  async close(): Promise<void> {
    try {
      await this.#writer.close();
    } catch (error) {
      this.#discard();
      throw error;
    }
    const file = this.#fileOf();
    file.sizeBytes = this.#sizeBytes;
    if (this.#gatheredBytes > 0) await this.#writeChunk();
    const names = [...this.#written].map(([chunk, written]) =>
      this.#chunks.name(written, file.key, chunk, () => !file.isDeleted),
    );
    this.#written.clear();
    await Promise.all(names);
  }

  async abort(): Promise<void> {
    this.#discard();
    await this.#writer.abort();
  }

  async #gather(bytes: Uint8Array): Promise<void> {
    const { chunkBytes } = this.#chunks;
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + chunkBytes - this.#gatheredBytes);
      this.#makeSpace(part.length);
      this.#gathered.set(part, this.#gatheredBytes);
      this.#gatheredBytes += part.length;
      this.#sizeBytes += part.length;
      at += part.length;
      if (this.#gatheredBytes === chunkBytes) await this.#writeChunk();
    }
  }

  #makeSpace(bytes: number): void {
    const needed = this.#gatheredBytes + bytes;
    if (needed <= this.#gathered.length) return;
    const length = Math.min(this.#chunks.chunkBytes, Math.max(FIRST_BYTES, needed, 2 * this.#gathered.length));
    const larger = Buffer.allocUnsafe(length);
    this.#gathered.copy(larger, 0, 0, this.#gatheredBytes);
    this.#gathered = larger;
  }

  async #writeChunk(): Promise<void> {
    const bytes = this.#gathered.subarray(0, this.#gatheredBytes);
    const chunk = Math.floor((this.#sizeBytes - 1) / this.#chunks.chunkBytes);
    const written = await this.#chunks.write(bytes);
    if (written) this.#written.set(chunk, written);
    this.#gatheredBytes = 0;
  }

  #discard(): void {
    for (const written of this.#written.values()) this.#chunks.discard(written);
    this.#written.clear();
  }
}
