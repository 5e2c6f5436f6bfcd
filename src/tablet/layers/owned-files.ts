/**
 * The files that a tablet writes: those that are not committed yet, which a sweep must spare, and those that no other
 * tablet lists, which are deleted as soon as the tablet does not need them. Files that others may share are left to the
 * sweep.
 */
import { assert } from '../../base/index.ts';
import type { TabletHost } from '../contract/tablet-state.ts';

export class OwnedFiles {
  readonly #host: Pick<TabletHost, 'newFilePath' | 'released' | 'leftToSweep'>;
  /** Files that are being written, or are not committed yet. */
  readonly #new = new Set<string>();
  /** Files that were written here. No other tablet lists them until this one is divided. */
  readonly #own = new Set<string>();
  #areShared = false;

  constructor(host: Pick<TabletHost, 'newFilePath' | 'released' | 'leftToSweep'>) {
    this.#host = host;
  }

  /** Files that are not committed yet. */
  get new(): Iterable<string> {
    return this.#new;
  }

  /** A path for a new file, spared until `finish`. */
  newPath(): string {
    const path = this.#host.newFilePath();
    assert(!this.#areShared, 'a tablet that is released writes no files');
    assert(!this.#own.has(path), 'each new file has a path of its own');
    this.#new.add(path);
    this.#own.add(path);
    return path;
  }

  /** Ends `newPath`: the files are committed, or never will be. `held`: the paths that the tablet lists or reads. */
  finish(paths: readonly string[], held: readonly string[]): void {
    for (const path of paths) {
      assert(this.#new.delete(path), 'a new file is finished once');
      if (!held.includes(path)) this.#own.delete(path);
    }
  }

  /** The tablet does not need these files. Those that were not written here are left to the sweep. */
  discard(paths: readonly string[]): void {
    const own = paths.filter((path) => this.#own.delete(path));
    if (own.length > 0) this.#host.released(own);
    if (own.length < paths.length && !this.#areShared) this.#host.leftToSweep();
  }

  /** A backup lists these files, which are committed, from here on. */
  shareCommitted(paths: readonly string[]): void {
    for (const path of paths) {
      assert(!this.#new.has(path), 'a file that others list is committed');
      this.#own.delete(path);
    }
  }

  /** The tablet is closed or divided: from here on others list its files. */
  share(): void {
    assert(this.#new.size === 0, 'a tablet is released when it writes no files');
    this.#areShared = true;
    this.#own.clear();
  }
}
