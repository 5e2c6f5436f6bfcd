/**
 * The memory of in-memory locality groups (paper section 6): their SSTables' blocks are loaded when they are first used, and stay as long as
 * the file is open, outside the block cache.
 *
 * Invariants: a file's blocks count in full, uncompressed, from its first load on: it is served from memory or refused, never half of it; the files
 * taken in are within the budget.
 */
import { assert, BigtableError, Code, NumberTable } from '../../base/index.ts';
import { Block } from '../read/block.ts';
import type { BlockKeeper, UnreadBlock } from './block-cache.ts';

export class MemoryBudget {
  readonly limitBytes: number;
  #usedBytes = 0;
  readonly #files = new Map<string, ResidentFile>();

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Bytes of the files taken in. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The blocks of a file, `sizeBytes` in all before compression. All that open a path share them. Each must be closed. */
  open(path: string, sizeBytes: number): BlockKeeper {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new ResidentFile(this, path, sizeBytes)));
    file.users++;
    return file;
  }

  /** For ResidentFile alone. RESOURCE_EXHAUSTED where the file does not fit. */
  take({ path, sizeBytes }: ResidentFile): void {
    if (this.#usedBytes + sizeBytes > this.limitBytes) {
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `the SSTable ${path} of an in-memory locality group takes ${sizeBytes} bytes, and ` +
          `${this.#usedBytes} of the ${this.limitBytes} for such groups are taken`,
      );
    }
    this.#usedBytes += sizeBytes;
  }

  /** For ResidentFile alone. */
  forget(file: ResidentFile, isTaken: boolean): void {
    this.#files.delete(file.path);
    if (isTaken) this.#usedBytes -= file.sizeBytes;
  }
}

class ResidentFile implements BlockKeeper {
  readonly path: string;
  readonly sizeBytes: number;
  /** For MemoryBudget alone. */
  users = 0;
  readonly #budget: MemoryBudget;
  #isTaken = false;
  readonly #blocks: (Block | UnreadBlock | undefined)[] = [];
  readonly #loads = new NumberTable<Promise<Block | UnreadBlock>>();

  constructor(budget: MemoryBudget, path: string, sizeBytes: number) {
    this.#budget = budget;
    this.path = path;
    this.sizeBytes = sizeBytes;
  }

  get(number: number): Block | undefined {
    const content = this.#blocks[number];
    if (content === undefined || content instanceof Block) return content;
    try {
      return this.#decode(number, content);
    } catch {
      // the load that follows says why
      return undefined;
    }
  }

  has(number: number): boolean {
    return this.#blocks[number] !== undefined || this.#loads.has(number);
  }

  async load(number: number, read: () => Promise<Block | UnreadBlock>): Promise<Block> {
    let content = this.#blocks[number];
    if (content === undefined) {
      this.#take();
      content = await (this.#loads.get(number) ?? this.#read(number, read));
    }
    return content instanceof Block ? content : this.#decode(number, content);
  }

  loadAhead(number: number, read: () => Promise<UnreadBlock>): void {
    this.#read(number, read).catch(() => {});
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#blocks.length = 0;
    this.#budget.forget(this, this.#isTaken);
  }

  #take(): void {
    if (this.#isTaken || this.users === 0) return;
    this.#budget.take(this);
    this.#isTaken = true;
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
