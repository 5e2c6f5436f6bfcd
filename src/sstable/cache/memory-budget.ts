/**
 * The memory of in-memory locality groups (paper section 6). The blocks of their SSTables are loaded at their first use
 * and stay as long as the file is open, outside the block cache.
 *
 * Invariants: a file counts in full, uncompressed, from its first load on, so it is served from memory or refused as a
 * whole; the files that are counted are within the budget.
 */
import { assert, BigtableError, checksInvariants, Code, NumberTable } from '../../base/index.ts';
import { Block } from '../read/block.ts';
import type { BlockKeeper, UnreadBlock } from './block-cache.ts';

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

  /** The blocks of a file, `sizeBytes` in all before compression. All that open a path share them. Close each once. */
  open(path: string, sizeBytes: number): BlockKeeper {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new ResidentFile(this, path, sizeBytes)));
    assert(file.sizeBytes === sizeBytes, 'a file has one size');
    file.users++;
    return file;
  }

  /** Only for ResidentFile. RESOURCE_EXHAUSTED if the file does not fit. */
  reserve({ path, sizeBytes }: ResidentFile): void {
    if (this.#usedBytes + sizeBytes > this.limitBytes) {
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `no memory for the SSTable ${path} of an in-memory locality group: it takes ${sizeBytes} bytes, and ` +
          `${this.#usedBytes} of the ${this.limitBytes} bytes for such groups are in use`,
      );
    }
    this.#usedBytes += sizeBytes;
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
  #isReserved = false;
  readonly #blocks: (Block | UnreadBlock | undefined)[] = [];
  readonly #loads = new NumberTable<Promise<Block | UnreadBlock>>();

  constructor(budget: MemoryBudget, path: string, sizeBytes: number) {
    this.#budget = budget;
    this.path = path;
    this.sizeBytes = sizeBytes;
  }

  /** True once the file counts in the budget. */
  get isReserved(): boolean {
    return this.#isReserved;
  }

  get(number: number): Block | undefined {
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
    return this.#blocks[number] !== undefined || this.#loads.has(number);
  }

  noteScan(): boolean {
    return false;
  }

  keep(): void {}

  getPage(): undefined {}

  keepPage(): void {}

  readonly positions = undefined;

  makePositions(): undefined {}

  async load(number: number, read: () => Promise<Block | UnreadBlock>): Promise<Block> {
    let content = this.#blocks[number];
    if (content === undefined) {
      this.#reserve();
      content = await (this.#loads.get(number) ?? this.#read(number, read));
    }
    return content instanceof Block ? content : this.#decode(number, content);
  }

  loadAhead(number: number, read: () => Promise<UnreadBlock>): void {
    assert(!this.has(number), 'one read of a block is in flight');
    assert(this.#isReserved || this.users === 0, 'a file is counted before its blocks are kept');
    this.#read(number, read).catch(() => {});
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#blocks.length = 0;
    this.#budget.release(this);
  }

  #reserve(): void {
    if (this.#isReserved || this.users === 0) return;
    this.#budget.reserve(this);
    this.#isReserved = true;
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
