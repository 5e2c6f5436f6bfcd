/**
 * The files that a tablet makes: those that are being written, which a sweep must spare, and those that no other tablet lists, which may be deleted
 * as soon as nothing here needs them. What others may share is left to the sweep.
 */
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
    this.#new.add(path);
    this.#own.add(path);
    return path;
  }

  /** The files are listed by now, or never will be. */
  forget(paths: readonly string[]): void {
    const held = this.#held();
    for (const path of paths) {
      this.#new.delete(path);
      if (!held.includes(path)) this.#own.delete(path);
    }
  }

  /** Files that nothing here needs any more. Those that were not made here others may need: they are left to the sweep. */
  discard(paths: readonly string[]): void {
    const own = paths.filter((path) => this.#own.delete(path));
    if (own.length > 0) this.#host.released(own);
    if (own.length < paths.length && !this.#areShared) this.#host.leftToSweep();
  }

  /** The tablet is given up: others list its files from here on, or will. */
  share(): void {
    this.#areShared = true;
    this.#own.clear();
  }
}
