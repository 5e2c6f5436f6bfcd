/**
 * Counts the work that reads would save if layers were merged: each look-up of a row in several layers, and each
 * scanned row that several layers have, earns credit towards a compaction of these layers
 * (docs/decisions/0045-merges-for-reads.md). Credit is CPU time, and is earned by pairs of layers: a layer and the next
 * older one of its group in which the row was read.
 *
 * Invariants: no more credit is given than reads have earned, and credit is spent once. Hot path: the work of most rows
 * is only added up, and credited to the layers of the row that completes a sum.
 */
import { assert } from '../../base/index.ts';
import type { Layer } from '../../model/index.ts';
import type { PairCredit } from './earned-merge.ts';
import type { TabletFile } from './tablet-file.ts';

/** About the CPU time of a look-up of a row in one more layer. */
export const LOOKUP_MICROS = 4.5;
/** The same for a row of a scan that one more layer has. */
export const SCANNED_ROW_MICROS = 1;
/** The time that is added up before layers are credited. */
const SUM_MICROS = 150;
/** The credit that makes the owner search for a compaction once more. */
const SEARCH_MICROS = 5000;

export class ReadCredits {
  /** Not credited to layers yet. */
  #sumMicros = 0;
  /** Credited since the last call of `#onEarned`. */
  #newMicros = 0;
  readonly #onEarned: () => void;
  /** By older layer, then newer. */
  readonly #byOlder = new Map<Layer, Map<Layer, number>>();
  #memtableMicros = 0;

  /** `onEarned`: called after a read when a compaction may have been earned. */
  constructor(onEarned: () => void = () => {}) {
    this.#onEarned = onEarned;
  }

  /** A row is looked up in these layers, newest first. */
  lookedUp(layers: readonly Layer[]): void {
    this.#sumMicros += (layers.length - 1) * LOOKUP_MICROS;
    if (this.#sumMicros >= SUM_MICROS) this.#credit(layers);
  }

  /** A scan has reached a row that these layers have, newest first. */
  scanned(sources: readonly { readonly layer: Layer }[]): void {
    this.#sumMicros += (sources.length - 1) * SCANNED_ROW_MICROS;
    if (this.#sumMicros >= SUM_MICROS) this.#credit(sources.map(({ layer }) => layer));
  }

  /** The owner is notified between reads only: compactions may begin then. */
  readEnded(): void {
    if (this.#newMicros < SEARCH_MICROS) return;
    this.#newMicros = 0;
    this.#onEarned();
  }

  /** The credit of the active memtable: for reads that also looked into older layers. */
  get memtableMicros(): number {
    return this.#memtableMicros;
  }

  /** The credit of pairs of these files. */
  among(files: readonly TabletFile[]): readonly PairCredit[] {
    const index = new Map<Layer, number>(files.map((file, i) => [file, i]));
    const credits: PairCredit[] = [];
    for (const [older, file] of files.entries()) {
      for (const [layer, micros] of this.#byOlder.get(file) ?? []) {
        const newer = index.get(layer);
        if (newer === undefined) continue;
        assert(newer < older, 'credit is earned by a layer and an older one');
        credits.push({ newer, older, micros });
      }
    }
    return credits;
  }

  /** The files are being merged: pairs of them have spent their credit, even if the merge fails. */
  spend(files: readonly TabletFile[]): void {
    for (const older of files) {
      const pairs = this.#byOlder.get(older);
      for (const newer of files) pairs?.delete(newer);
    }
  }

  /** The memtable is being flushed, or has been: its credit is spent. */
  spendMemtable(): void {
    this.#memtableMicros = 0;
  }

  /** Only these files are left. */
  keep(files: readonly TabletFile[]): void {
    const kept = new Set<Layer>(files);
    for (const [older, pairs] of this.#byOlder) {
      if (!kept.has(older)) this.#byOlder.delete(older);
      else for (const newer of pairs.keys()) if (!kept.has(newer)) pairs.delete(newer);
    }
  }

  /** Divides the sum among the layers of this row. What falls to layers of different groups is lost. */
  #credit(layers: readonly Layer[]): void {
    const shareMicros = this.#sumMicros / (layers.length - 1);
    this.#sumMicros = 0;
    for (let i = 0; i < layers.length - 1; i++) {
      const newer = layers[i]!;
      // a memtable, which is newer than the files of all groups
      if (newer.group === undefined) {
        this.#memtableMicros += shareMicros;
        this.#newMicros += shareMicros;
        continue;
      }
      for (let j = i + 1; j < layers.length; j++) {
        const older = layers[j]!;
        if (older.group !== newer.group) continue;
        this.#add(older, newer, shareMicros);
        break;
      }
    }
  }

  #add(older: Layer, newer: Layer, micros: number): void {
    let pairs = this.#byOlder.get(older);
    if (pairs === undefined) this.#byOlder.set(older, (pairs = new Map()));
    pairs.set(newer, (pairs.get(newer) ?? 0) + micros);
    this.#newMicros += micros;
  }
}
