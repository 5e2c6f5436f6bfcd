/**
 * Which files stay in memory although their locality group does not say so: those of an owner, as long as that is
 * decided. The decision may change while the files are open; each then moves its blocks.
 *
 * Invariant: every open file that was opened with a residency is where the decision of the moment wants it.
 */
import { assert } from '../../base/index.ts';
import type { MemoryBudget } from './memory-budget.ts';

/** A file that is open. */
export interface Movable {
  /** Keeps the blocks where the residency wants them now. */
  move(): void;
}

export class Residency {
  readonly #memory: MemoryBudget;
  readonly #isResident: (owner: string) => boolean;
  readonly #files = new Set<Movable>();

  constructor(memory: MemoryBudget, isResident: (owner: string) => boolean) {
    this.#memory = memory;
    this.#isResident = isResident;
  }

  /** For the files of one owner. */
  of(owner: string): OwnedResidency {
    return new OwnedResidency(this, owner);
  }

  /** The decision may have changed: moves the files. */
  changed(): void {
    for (const file of this.#files) file.move();
  }

  /** Only for OwnedResidency. */
  memoryOf(owner: string): MemoryBudget | undefined {
    return this.#isResident(owner) ? this.#memory : undefined;
  }

  /** Only for OwnedResidency. */
  add(file: Movable): void {
    assert(!this.#files.has(file), 'a file is opened once');
    this.#files.add(file);
  }

  /** Only for OwnedResidency. */
  delete(file: Movable): void {
    assert(this.#files.delete(file), 'a file is closed once');
  }
}

/** The residency of one owner's files. */
export class OwnedResidency {
  readonly #all: Residency;
  readonly #owner: string;

  constructor(all: Residency, owner: string) {
    this.#all = all;
    this.#owner = owner;
  }

  /** Where the blocks stay in memory now; undefined: they do not. */
  get memory(): MemoryBudget | undefined {
    return this.#all.memoryOf(this.#owner);
  }

  add(file: Movable): void {
    this.#all.add(file);
  }

  delete(file: Movable): void {
    this.#all.delete(file);
  }
}
