/**
 * The files that a tablet makes: those that are being written, which a sweep must spare, and those that no other tablet lists, which may be deleted
 * as soon as nothing here needs them. What others may share is left to the sweep.
 */
import { assert, checksInvariants } from '../../base/index.ts';
import type { TabletHost } from '../contract/tablet-state.ts';

export class MadeFiles {
  readonly #host: Pick<TabletHost, 'newFilePath' | 'released' | 'leftToSweep'>;
  /** Paths of the files that are listed or read. */
  readonly #held: () => readonly string[];
  /** Files that a compaction is writing or has not committed yet. */
  readonly #new = new Set<string>();
  /** Files that were made here: no other tablet lists them as long as this one is not divided. */
  readonly #own = new Set<string>();
  #areShared = false;

  constructor(host: Pick<TabletHost, 'newFilePath' | 'released' | 'leftToSweep'>, held: () => readonly string[]) {
    this.#host = host;
    this.#held = held;
  }

  /** Not committed yet. */
  get new(): Iterable<string> {
    return this.#new;
  }

  /** A path for a new file, spared until `forget`. */
  newPath(): string {
    const path = this.#host.newFilePath();
    assert(!this.#areShared, 'a tablet that is given up writes no files');
    assert(!this.#own.has(path), 'each new file has a path of its own');
    this.#new.add(path);
    this.#own.add(path);
    return path;
  }

  /** The files are listed by now, or never will be. */
  forget(paths: readonly string[]): void {
    const held = this.#held();
    for (const path of paths) {
      assert(this.#new.delete(path), 'a new file is listed, or not, once');
      if (!held.includes(path)) this.#own.delete(path);
    }
  }

  /** Files that nothing here needs any more. Those that were not made here others may need: they are left to the sweep. */
  discard(paths: readonly string[]): void {
    if (checksInvariants)
      assert(!this.#held().some((held) => paths.includes(held)), 'a file is discarded when nothing lists or reads it');
    const own = paths.filter((path) => this.#own.delete(path));
    if (own.length > 0) this.#host.released(own);
    if (own.length < paths.length && !this.#areShared) this.#host.leftToSweep();
  }

  /** The tablet is given up: others list its files from here on, or will. */
  share(): void {
    assert(this.#new.size === 0, 'a tablet is given up when it writes no file any more');
    this.#areShared = true;
    this.#own.clear();
  }
}
