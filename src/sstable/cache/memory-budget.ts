/**
 * The memory of in-memory locality groups (paper section 6). The blocks of their SSTables are loaded at their first use
 * and stay as long as the file is open, outside the block cache.
 *
 * Invariants: a file counts in full, uncompressed, from its first load on; the files that are counted are within the
 * budget. A file that does not fit is read like any other, through the block cache, until there is space for it.
 */
import { assert, checksInvariants, NumberTable } from '../../base/index.ts';
import { Block } from '../read/block.ts';
import type { SharedRead } from '../read/shared-read.ts';
import type { BlockKeeper, BlockOrigin, UnreadBlock } from './block-cache.ts';

export class MemoryBudget {
  readonly limitBytes: number;
  #usedBytes = 0;
  readonly #files = new Map<string, ResidentFile>();

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Bytes of the files that are counted. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Bytes of the files that were read and do not fit. */
  get unfitBytes(): number {
    let bytes = 0;
    for (const file of this.#files.values()) if (file.isUnfit) bytes += file.sizeBytes;
    return bytes;
  }

  /**
   * The blocks of a file, `sizeBytes` in all before compression. All that open a path share them. Close each once.
   * `openCached`: keeps blocks of the file while it does not fit.
   */
  open(path: string, sizeBytes: number, openCached: () => BlockKeeper): BlockKeeper {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new ResidentFile(this, path, sizeBytes, openCached)));
    assert(file.sizeBytes === sizeBytes, 'a file has one size');
    file.users++;
    return file;
  }

  /** Only for ResidentFile. False: the file does not fit. */
  tryReserve({ sizeBytes }: ResidentFile): boolean {
    if (this.#usedBytes + sizeBytes > this.limitBytes) return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  /** Only for ResidentFile: its last user has closed it. */
  release(file: ResidentFile): void {
    assert(this.#files.get(file.path) === file, 'the file is one of the budget');
    this.#files.delete(file.path);
    if (file.isReserved) this.#usedBytes -= file.sizeBytes;
    assert(this.#usedBytes >= 0, 'a file is counted once');
    if (checksInvariants) this.assertConsistent();
  }

  /** Recounts the bytes of the files that are counted. */
  assertConsistent(): void {
    let bytes = 0;
    for (const file of this.#files.values()) {
      assert(file.users > 0, 'a file of the budget is open');
      assert(!file.isReserved || !file.isUnfit, 'a file is in memory or in the block cache');
      if (file.isReserved) bytes += file.sizeBytes;
    }
    assert(bytes === this.#usedBytes, 'the budget counts its files');
  }
}

class ResidentFile implements BlockKeeper {
  readonly path: string;
  readonly sizeBytes: number;
  /** Only for MemoryBudget. */
  users = 0;
  readonly #budget: MemoryBudget;
  readonly #openCached: () => BlockKeeper;
  /** While the file does not fit. */
  #cached: BlockKeeper | undefined;
  #isReserved = false;
  readonly #blocks: (Block | UnreadBlock | undefined)[] = [];
  readonly #loads = new NumberTable<Promise<Block | UnreadBlock>>();

  constructor(budget: MemoryBudget, path: string, sizeBytes: number, openCached: () => BlockKeeper) {
    this.#budget = budget;
    this.#openCached = openCached;
    this.path = path;
    this.sizeBytes = sizeBytes;
  }

  /** True once the file counts in the budget. */
  get isReserved(): boolean {
    return this.#isReserved;
  }

  /** True while its blocks are in the block cache, since it does not fit. */
  get isUnfit(): boolean {
    return this.#cached !== undefined;
  }

  get(number: number): Block | undefined {
    if (this.#cached !== undefined) return this.#cached.get(number);
    const content = this.#blocks[number];
    if (content === undefined || content instanceof Block) return content;
    try {
      return this.#decode(number, content);
    } catch {
      // the load that follows reports it
      return undefined;
    }
  }

  has(number: number): boolean {
    if (this.#cached !== undefined) return this.#cached.has(number);
    return this.#blocks[number] !== undefined || this.#loads.has(number);
  }

  noteScan(first: number, last: number): boolean {
    return this.#cached?.noteScan(first, last) ?? false;
  }

  keep(): void {}

  getPage(): undefined {}

  keepPage(): void {}

  readonly positions = undefined;

  makePositions(): undefined {}

  async load(number: number, read: () => Promise<Block | UnreadBlock>, origin?: BlockOrigin): Promise<Block> {
    let content = this.#blocks[number];
    if (content === undefined) {
      if (!this.#fits()) return (this.#cached ??= this.#openCached()).load(number, read, origin);
      content = await (this.#loads.get(number) ?? this.#read(number, read));
    }
    return content instanceof Block ? content : this.#decode(number, content);
  }

  loadAhead(number: number, read: () => Promise<UnreadBlock>, shared: SharedRead, isVisitor: boolean): void {
    if (this.#cached !== undefined) return this.#cached.loadAhead(number, read, shared, isVisitor);
    assert(!this.has(number), 'one read of a block is in flight');
    assert(this.#isReserved || this.users === 0, 'a file is counted before its blocks are kept');
    this.#read(number, read).catch(() => {});
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#blocks.length = 0;
    this.#leaveCache();
    this.#budget.release(this);
  }

  #fits(): boolean {
    if (this.#isReserved || this.users === 0) return true;
    this.#isReserved = this.#budget.tryReserve(this);
    if (this.#isReserved) this.#leaveCache();
    return this.#isReserved;
  }

  #leaveCache(): void {
    this.#cached?.close();
    this.#cached = undefined;
  }

  #decode(number: number, content: UnreadBlock): Block {
    this.#blocks[number] = undefined;
    const block = content.decode();
    if (this.users > 0) this.#blocks[number] = block;
    return block;
  }

  #read(number: number, read: () => Promise<Block | UnreadBlock>): Promise<Block | UnreadBlock> {
    const load = (async () => {
      try {
        const content = await read();
        if (this.users > 0) this.#blocks[number] = content;
        return content;
      } finally {
        this.#loads.delete(number);
      }
    })();
    this.#loads.set(number, load);
    return load;
  }
}
