/**
 * The files in use, as a read cache knows them: the key, the size, fetches under way, and the places of the last reads.
 *
 * Invariants: at most `most` files are known, and those with a fetch under way. A file that was evicted or deleted is
 * known anew, as another object.
 */
import { createHash } from 'node:crypto';
import { type FileKey, KEY_WORDS } from './index-record.ts';

/** Sequences of reads of one file that are followed at the same time. */
const RECENT_READS = 4;

export class KnownFile {
  readonly path: string;
  readonly key: FileKey;
  sizeBytes: number | undefined;
  /** What was read before the deletion is kept no longer. */
  isDeleted = false;
  /** Chunks that are being fetched or written into the cache, by number. */
  readonly fetches = new Map<number, Promise<Buffer>>();
  /** The last sequences of reads: start and end of the last read, and the bytes of all. */
  readonly #starts = new Float64Array(RECENT_READS).fill(-1);
  readonly #ends = new Float64Array(RECENT_READS).fill(-1);
  readonly #runs = new Float64Array(RECENT_READS);
  #nextPlace = 0;

  constructor(path: string) {
    this.path = path;
    const digest = createHash('sha256').update(path).digest();
    this.key = Uint32Array.from({ length: KEY_WORDS }, (_, i) => digest.readUInt32LE(4 * i));
  }

  /** Notes the read. Returns the bytes of the reads that it continues, in either direction; 0 where it stands alone. */
  noteRead(offset: number, length: number): number {
    let place = this.#placeBeside(offset, length);
    if (place < 0) {
      place = this.#nextPlace;
      this.#nextPlace = (place + 1) % RECENT_READS;
      this.#runs[place] = 0;
    }
    const before = this.#runs[place]!;
    this.#starts[place] = offset;
    this.#ends[place] = offset + length;
    this.#runs[place] = before + length;
    return before;
  }

  #placeBeside(offset: number, length: number): number {
    for (let place = 0; place < RECENT_READS; place++)
      if (this.#ends[place] === offset || this.#starts[place] === offset + length) return place;
    return -1;
  }
}

export class KnownFiles {
  readonly #most: number;
  /** The one that was used for longest is the first. */
  readonly #files = new Map<string, KnownFile>();

  constructor(most: number) {
    this.#most = most;
  }

  of(path: string): KnownFile {
    let file = this.#files.get(path);
    if (file) this.#files.delete(path);
    else {
      if (this.#files.size >= this.#most) this.#evict();
      file = new KnownFile(path);
    }
    this.#files.set(path, file);
    return file;
  }

  /** Ends what is known of the file, and returns it. */
  delete(path: string): KnownFile {
    const file = this.of(path);
    file.isDeleted = true;
    this.#files.delete(path);
    return file;
  }

  #evict(): void {
    for (const [path, { fetches }] of this.#files) {
      if (fetches.size > 0) continue;
      this.#files.delete(path);
      return;
    }
  }
}
