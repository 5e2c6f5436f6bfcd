/**
 * A read of one tablet as a stream. It begins with the first pull, which holds the layers in one slice. The lease is
 * checked then, and before every batch that is returned in a later slice: what was read in the slice in which the lease
 * held is as of then.
 *
 * A long read exchanges its layers for newer ones whenever the list of the tablet has changed and no row is begun, even
 * between pulls. So it keeps neither merged files nor flushed memtables, however long it takes. Each row is as of one
 * instant all the same.
 */
import { assert } from '../../base/index.ts';
import { PullStream, type RequestContext } from '../../env/index.ts';
import type { FilterProgram } from '../../filter/index.ts';
import type { ReadBatch } from '../../model/index.ts';
import type { LayerHold, LayerNeed, LayerReader } from '../layers/layer-set.ts';
import type { ReadFamilies } from './read-families.ts';
import type { RowReader } from './row-reader.ts';
import type { TabletRead } from '../contract/tablet-api.ts';

/** A read, prepared: its filter, its "now", and the layers it needs. */
export class PreparedRead {
  readonly program: FilterProgram;
  readonly families: ReadFamilies;
  readonly need: LayerNeed;

  constructor(program: FilterProgram, families: ReadFamilies, need: LayerNeed) {
    this.program = program;
    this.families = families;
    this.need = need;
  }
}

/** The services of a tablet to its reads. */
export interface ReadSource {
  /** Fragments of rows that were read. */
  rows: number;
  /** Throws if no read may begin. */
  checkServing(context: RequestContext): void;
  /** Throws if what was read may not be returned (any more). */
  checkAnswering(context: RequestContext): void;
  checkMissed(error: unknown, context: RequestContext): void;
  /** Undefined if the request has no ranges. */
  prepare(request: TabletRead): PreparedRead | undefined;
  /** Holds the layers as they are now. */
  hold(need: LayerNeed): LayerHold;
  reader(context: RequestContext, layers: LayerHold['layers'], request: TabletRead, read: PreparedRead): RowReader;
}

export class TabletReadStream extends PullStream<ReadBatch> implements LayerReader {
  readonly #source: ReadSource;
  readonly #context: RequestContext;
  readonly #request: TabletRead;
  #need: LayerNeed | undefined;
  #hold: LayerHold | undefined;
  #reader: RowReader | undefined;
  #batch: ReadBatch | undefined;
  #begun = false;
  /** True during `load`: the layers stay held until it ends, even if the stream is closed meanwhile. */
  #waiting = false;

  constructor(source: ReadSource, context: RequestContext, request: TabletRead) {
    super();
    this.#source = source;
    this.#context = context;
    this.#request = request;
  }

  pull(): ReadBatch | undefined | Promise<ReadBatch | undefined> {
    return this.advance() ? this.takeBatch() : this.#awaitBatch();
  }

  async #awaitBatch(): Promise<ReadBatch | undefined> {
    do await this.load();
    while (!this.advance());
    return this.takeBatch();
  }

  /** As in Search: to the next batch, or to the end. */
  advance(): boolean {
    assert(!this.#waiting, 'a read is pulled once at a time');
    try {
      const isFirst = !this.#begun;
      if (isFirst) {
        this.#begun = true;
        this.#begin();
      }
      const reader = this.#reader;
      if (reader === undefined) return true;
      if (this.#hold === undefined) reader.takeLayers(this.#takeLayers().layers);
      if (!reader.advance()) return false;
      const batch = reader.takeBatch();
      if (batch !== undefined) {
        this.#source.rows += batch.fragments.length;
        if (!isFirst) this.#source.checkAnswering(this.#context);
        this.#request.count?.answered(batch);
      }
      this.#batch = batch;
      if (reader.ended) this.end();
      else this.#releaseStaleLayers();
      return true;
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** As in Search. */
  async load(): Promise<void> {
    const reader = this.#reader;
    if (reader === undefined) return;
    assert(this.#hold !== undefined, 'a read that waits for blocks holds its layers');
    this.#waiting = true;
    try {
      await reader.load();
      this.#waiting = false;
    } catch (error) {
      this.#waiting = false;
      this.#leave(reader);
      this.#source.checkMissed(error, this.#context);
      throw error;
    }
    if (this.#reader === undefined) this.#leave(reader);
  }

  /** The batch, after `advance` has returned true; undefined at the end. */
  takeBatch(): ReadBatch | undefined {
    const batch = this.#batch;
    this.#batch = undefined;
    return batch;
  }

  #begin(): void {
    this.#source.checkServing(this.#context);
    const read = this.#source.prepare(this.#request);
    if (read === undefined) return;
    this.#need = read.need;
    const hold = this.#source.hold(read.need);
    this.#setHold(hold);
    this.#note(hold);
    this.#reader = this.#source.reader(this.#context, hold.layers, this.#request, read);
  }

  #takeLayers(): LayerHold {
    this.#source.checkServing(this.#context);
    assert(this.#need !== undefined, 'a read that has begun knows which layers it needs');
    const hold = this.#source.hold(this.#need);
    this.#setHold(hold);
    this.#note(hold);
    return hold;
  }

  #note({ files }: LayerHold): void {
    const { notes } = this.#context;
    if (notes === undefined) return;
    notes.tablets++;
    notes.files += files.length;
  }

  end(): void {
    this.#begun = true;
    const [reader, hold] = [this.#reader, this.#hold];
    this.#reader = undefined;
    if (this.#waiting) return;
    this.#hold = undefined;
    reader?.close();
    hold?.release();
  }

  #setHold(hold: LayerHold): void {
    assert(this.#hold === undefined, 'a read holds one set of layers at a time');
    hold.reader = this;
    this.#hold = hold;
  }

  /** For LayerSet: the tablet has other layers now. */
  layersChanged(): void {
    this.#releaseStaleLayers();
  }

  #releaseStaleLayers(): void {
    const [reader, hold] = [this.#reader, this.#hold];
    if (reader === undefined || hold === undefined || !hold.isStale || this.#waiting || !reader.isBetweenRows) return;
    reader.releaseLayers();
    this.#hold = undefined;
    hold.release();
  }

  #leave(reader: RowReader): void {
    reader.close();
    this.end();
  }
}
