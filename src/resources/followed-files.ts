/**
 * What a directory of the lock service holds, as this process knows it: read at start, updated by a watch. A front door
 * looks up in it what each call needs, without waiting.
 */
import { toBigtableError } from '../base/index.ts';
import { type Clock, followChanges, listFiles, type LockService, type Logger, type SmallFile } from '../env/index.ts';

export interface FollowedFilesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a file held when it was read. */
interface Entry<T> {
  /** The number of the read. */
  readonly read: number;
  /** Undefined where there was no file, or one that cannot be understood. */
  readonly value: T | undefined;
}

/**
 * Invariant: an entry is of the read that began last of those that have ended. Entries without a value exist only while
 * a read is under way.
 */
export class FollowedFiles<T> {
  readonly #parts: FollowedFilesParts;
  readonly #prefix: string;
  readonly #decode: (file: SmallFile) => T;
  readonly #onChange: ((name: string) => void) | undefined;
  /** By path without the prefix. */
  readonly #entries = new Map<string, Entry<T>>();
  #reads = 0;
  #changes = 0;
  #readsUnderWay = 0;
  #isFollowing = false;
  #stopWatching: (() => void) | undefined;

  /**
   * `decode` throws where a file cannot be understood: then it is as if there were none, which is logged. `onChange`:
   * called when the file of that name holds another value.
   */
  constructor(
    parts: FollowedFilesParts,
    prefix: string,
    decode: (file: SmallFile) => T,
    onChange?: (name: string) => void,
  ) {
    this.#onChange = onChange;
    this.#parts = parts;
    this.#prefix = prefix;
    this.#decode = decode;
  }

  async start(): Promise<void> {
    this.#isFollowing = true;
    this.#stopWatching = await followChanges(this.#parts, this.#prefix, {
      onChange: (event, missed) => {
        if (event.kind !== 'changed' && event.kind !== 'deleted') return;
        this.changed(event.path).catch((thrown: unknown) => {
          this.#log(event.path, thrown);
          missed();
        });
      },
      readAgain: () => this.#refreshAll(),
    });
    await this.#refreshAll();
  }

  stop(): void {
    this.#isFollowing = false;
    this.#stopWatching?.();
  }

  /** True where it surely holds nothing. */
  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Another number whenever a value may have changed. */
  get changes(): number {
    return this.#changes;
  }

  names(): Iterable<string> {
    return this.#entries.keys();
  }

  get(name: string): T | undefined {
    return this.#entries.get(name)?.value;
  }

  #refreshAll(): Promise<void> {
    return this.#reading(async (read) => {
      const gone = new Set(this.#entries.keys());
      for (const file of await listFiles(this.#parts.lockService, this.#prefix)) {
        const name = file.path.slice(this.#prefix.length);
        gone.delete(name);
        this.#set(name, read, file);
      }
      for (const name of gone) this.#set(name, read, undefined);
    });
  }

  /** Reads all files again if this follows them. */
  async readAgain(): Promise<void> {
    if (this.#isFollowing) await this.#refreshAll();
  }

  /** Reads the file of that path again if this follows it. */
  async changed(path: string): Promise<void> {
    if (this.#isFollowing && path.startsWith(this.#prefix)) await this.#refresh(path.slice(this.#prefix.length));
  }

  #refresh(name: string): Promise<void> {
    return this.#reading(async (read) => {
      this.#set(name, read, await this.#parts.lockService.read(this.#prefix + name));
    });
  }

  async #reading(work: (read: number) => Promise<void>): Promise<void> {
    this.#readsUnderWay++;
    try {
      await work(++this.#reads);
    } finally {
      if (--this.#readsUnderWay === 0)
        for (const [name, { value }] of this.#entries) if (value === undefined) this.#entries.delete(name);
    }
  }

  #set(name: string, read: number, file: SmallFile | undefined): void {
    const before = this.#entries.get(name);
    if ((before?.read ?? 0) > read) return;
    this.#changes++;
    const value = file && this.#decoded(file);
    this.#entries.set(name, { read, value });
    if (value !== before?.value) this.#onChange?.(name);
  }

  #decoded(file: SmallFile): T | undefined {
    try {
      return this.#decode(file);
    } catch (thrown) {
      this.#log(file.path, thrown);
      return undefined;
    }
  }

  #log(path: string, thrown: unknown): void {
    const error = toBigtableError(thrown).message;
    this.#parts.logger.error('a file of the lock service could not be read', { path, error });
  }
}
