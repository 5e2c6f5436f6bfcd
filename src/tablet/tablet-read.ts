/**
 * A read of one tablet as a stream. It begins with the first pull: the layers are taken then, in one step, and held; the lease is looked
 * at when they are taken and before every batch that is handed out.
 *
 * A long read gives its layers up for the newer ones whenever the tablet's list has changed and no row is begun, also while nobody pulls: so it
 * keeps neither files that were merged nor memtables that were written to files, however long it takes. Each row is of one instant all the same.
 */
import { PullStream } from '../env/index.ts';
import type { ReadBatch } from '../model/index.ts';
import type { LayerHold } from './layer-set.ts';
import type { RowReader } from './row-reader.ts';

export interface ReadSteps {
  /** Throws where the tablet may not be read (any more). */
  readonly check: () => void;
  /** Takes the layers; undefined where nothing is asked for. Throws as `check` does. */
  readonly begin: () => { readonly hold: LayerHold; readonly reader: RowReader } | undefined;
  /** Takes the layers as they are now. Throws as `check` does. */
  readonly hold: () => LayerHold;
}

export class TabletReadStream extends PullStream<ReadBatch> {
  readonly #steps: ReadSteps;
  #hold: LayerHold | undefined;
  #reader: RowReader | undefined;
  #begun = false;
  /** A pull waits for blocks: what it reads stays held until they are there, also when the stream is given up meanwhile. */
  #waiting = false;

  constructor(steps: ReadSteps) {
    super();
    this.#steps = steps;
  }

  pull(): ReadBatch | undefined | Promise<ReadBatch | undefined> {
    try {
      if (!this.#begun) {
        this.#begun = true;
        const begun = this.#steps.begin();
        this.#reader = begun?.reader;
        if (begun) this.#holdOn(begun.hold);
      }
      if (this.#reader === undefined) return undefined;
      const reader = this.#reader;
      if (this.#hold === undefined) {
        reader.takeLayers(this.#holdOn(this.#steps.hold()).layers);
      }
      const batch = reader.pull();
      return batch instanceof Promise ? this.#whenThere(reader, batch) : this.#checked(reader, batch);
    } catch (error) {
      this.end();
      throw error;
    }
  }

  end(): void {
    this.#begun = true;
    const [reader, hold] = [this.#reader, this.#hold];
    this.#reader = undefined;
    if (this.#waiting) return;
    this.#hold = undefined;
    reader?.end();
    hold?.release();
  }

  async #whenThere(reader: RowReader, pulled: Promise<ReadBatch | undefined>): Promise<ReadBatch | undefined> {
    this.#waiting = true;
    try {
      const batch = await pulled;
      this.#waiting = false;
      if (this.#reader !== undefined) return this.#checked(reader, batch);
    } catch (error) {
      this.#waiting = false;
      this.#leave(reader);
      throw error;
    }
    this.#leave(reader);
    return undefined;
  }

  #checked(reader: RowReader, batch: ReadBatch | undefined): ReadBatch | undefined {
    if (batch !== undefined) this.#steps.check();
    if (reader.ended) this.end();
    else this.#leaveStaleLayers();
    return batch;
  }

  #holdOn(hold: LayerHold): LayerHold {
    hold.onStale = () => this.#leaveStaleLayers();
    this.#hold = hold;
    return hold;
  }

  #leaveStaleLayers(): void {
    const [reader, hold] = [this.#reader, this.#hold];
    if (reader === undefined || hold === undefined || !hold.isStale || this.#waiting || !reader.isBetweenRows) return;
    reader.leaveLayers();
    this.#hold = undefined;
    hold.release();
  }

  #leave(reader: RowReader): void {
    reader.end();
    this.end();
  }
}
