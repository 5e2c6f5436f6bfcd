/**
 * The memory of indexes and Bloom filters (paper sections 4 and 6). They are read when an SSTable is opened. Those of
 * all open files share a budget: beyond it the ones that no read has used lately are evicted, and read again when a
 * cursor needs them (docs/decisions/0095-indexes-within-a-budget.md).
 *
 * Invariants: the indexes in memory are within the budget, but for those that are in use; an index is not evicted while
 * a cursor is open on its file; at most one read of an index is in flight.
 */
import { assert, checksInvariants } from '../../base/index.ts';
import type { Codecs, Metrics } from '../../env/index.ts';
import type { CheckedFile } from '../format/checked-file.ts';
import { BlockDecoder } from '../read/block-decoder.ts';
import { openFrame, type SsTableFrame } from '../read/ss-table-file.ts';

export interface IndexCacheOptions {
  readonly limitBytes: number;
  readonly metrics: Metrics;
}

export class IndexCache {
  readonly limitBytes: number;
  readonly metrics: Metrics;
  #usedBytes = 0;
  /** Those in memory, in the order in which they are considered for eviction. */
  readonly #files = new Set<FileIndex>();

  constructor({ limitBytes, metrics }: IndexCacheOptions) {
    this.limitBytes = limitBytes;
    this.metrics = metrics;
  }

  /** Bytes of the indexes and filters in memory. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Only for FileIndex: it was read. */
  add(file: FileIndex): void {
    assert(!this.#files.has(file), 'an index in memory is not read again');
    this.#files.add(file);
    this.#usedBytes += file.memoryBytes;
    this.#evict();
  }

  /** Only for FileIndex: its file is closed. */
  remove(file: FileIndex): void {
    if (this.#files.delete(file)) this.#usedBytes -= file.memoryBytes;
    assert(this.#usedBytes >= 0, 'an index is counted once');
    if (checksInvariants) this.assertConsistent();
  }

  /** Only for FileIndex: no cursor uses it any more. */
  released(): void {
    if (this.#usedBytes > this.limitBytes) this.#evict();
  }

  /** Recounts the bytes. */
  assertConsistent(): void {
    let bytes = 0;
    for (const file of this.#files) {
      assert(file.frame !== undefined, 'an index that counts is in memory');
      bytes += file.memoryBytes;
    }
    assert(bytes === this.#usedBytes, 'the budget counts the indexes in memory');
  }

  /** Second chance: one that was used since it was last considered stays, and is considered again after the others. */
  #evict(): void {
    let left = 2 * this.#files.size;
    for (const file of this.#files) {
      if (this.#usedBytes <= this.limitBytes || left-- === 0) return;
      this.#files.delete(file);
      if (file.isInUse || file.wasUsed) {
        file.wasUsed = false;
        this.#files.add(file);
        continue;
      }
      this.#usedBytes -= file.memoryBytes;
      file.evict();
      this.metrics.add('sstable.indexEvictions');
    }
  }
}

/** The index, the Bloom filter and the decoder of one file. All SSTables that are open on the file share it. */
export class FileIndex {
  /** Memory that it takes. */
  readonly memoryBytes: number;
  /** Undefined while it is evicted. */
  frame: SsTableFrame | undefined;
  /** Set by each use; only for IndexCache to clear. */
  wasUsed = true;
  readonly #file: CheckedFile;
  readonly #codecs: Codecs;
  readonly #cache: IndexCache | undefined;
  /** Undefined while the index is evicted. */
  #decoder: BlockDecoder | undefined;
  /** SSTables that are open. */
  #tables = 0;
  /** Cursors that are open. */
  #users = 0;
  #reading: Promise<void> | undefined;

  /** `cache`: where it counts; undefined = it stays in memory. */
  constructor(file: CheckedFile, codecs: Codecs, frame: SsTableFrame, cache: IndexCache | undefined) {
    this.#file = file;
    this.#codecs = codecs;
    this.#cache = cache;
    this.frame = frame;
    this.memoryBytes = frame.memoryBytes;
    this.#decoder = this.#newDecoder(frame);
  }

  /** True while a cursor is open. */
  get isInUse(): boolean {
    return this.#users > 0;
  }

  /** The index of a file that is in use and was loaded. */
  get inUse(): SsTableFrame {
    assert(this.frame !== undefined, 'the index is loaded before it is used');
    return this.frame;
  }

  get decoder(): BlockDecoder {
    assert(this.#decoder !== undefined, 'blocks are decoded while the index is loaded');
    return this.#decoder;
  }

  openTable(): void {
    if (this.#tables++ === 0) this.#cache?.add(this);
  }

  closeTable(): void {
    assert(this.#tables > 0, 'a file is closed once');
    if (--this.#tables > 0) return;
    this.#cache?.remove(this);
    this.#endDecoder();
  }

  /** Called when a cursor opens: from now on it is not evicted. */
  enter(): void {
    this.#users++;
    this.wasUsed = true;
  }

  /** Called when a cursor closes. */
  leave(): void {
    assert(this.#users > 0, 'a cursor is closed once');
    if (--this.#users > 0) return;
    this.#endDecoder();
    this.#cache?.released();
  }

  /** Reads it, if it is not in memory. */
  async load(): Promise<void> {
    if (this.frame !== undefined) return;
    await (this.#reading ??= this.#read().finally(() => (this.#reading = undefined)));
  }

  /** Only for IndexCache. */
  evict(): void {
    assert(this.frame !== undefined && !this.isInUse, 'an index is evicted that no cursor uses');
    this.frame = undefined;
    this.#decoder?.close();
    this.#decoder = undefined;
  }

  async #read(): Promise<void> {
    const frame = await openFrame(this.#file, this.#codecs.checksum);
    assert(frame.memoryBytes === this.memoryBytes, 'a file never changes');
    this.#cache?.metrics.add('sstable.indexLoads');
    this.frame = frame;
    this.wasUsed = true;
    this.#decoder = this.#newDecoder(frame);
    if (this.#tables > 0) this.#cache?.add(this);
  }

  #newDecoder({ index, compressionShared }: SsTableFrame): BlockDecoder {
    return new BlockDecoder(this.#file, index, this.#codecs, compressionShared);
  }

  #endDecoder(): void {
    if (this.#tables === 0 && this.#users === 0) this.#decoder?.close();
  }
}
