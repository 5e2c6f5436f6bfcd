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
  /** Throws if no read may begin. */
  checkServing(context: RequestContext): void;
  /** Throws if what was read may not be returned (any more). */
  checkAnswering(context: RequestContext): void;
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
  #begun = false;
  /** A pull waits for blocks: its layers stay held until those are there, even if the stream is closed meanwhile. */
  #waiting = false;

  constructor(source: ReadSource, context: RequestContext, request: TabletRead) {
    super();
    this.#source = source;
    this.#context = context;
    this.#request = request;
  }

  pull(): ReadBatch | undefined | Promise<ReadBatch | undefined> {
    assert(!this.#waiting, 'a read is pulled once at a time');
    try {
      const isFirst = !this.#begun;
      if (isFirst) {
        this.#begun = true;
        this.#begin();
      }
      const reader = this.#reader;
      if (reader === undefined) return undefined;
      if (this.#hold === undefined) reader.takeLayers(this.#takeLayers().layers);
      const batch = reader.pull();
      if (batch instanceof Promise) return this.#whenLoaded(reader, batch);
      if (batch !== undefined && !isFirst) this.#source.checkAnswering(this.#context);
      return this.#returned(reader, batch);
    } catch (error) {
      this.end();
      throw error;
    }
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
    reader?.end();
    hold?.release();
  }

  async #whenLoaded(reader: RowReader, pulled: Promise<ReadBatch | undefined>): Promise<ReadBatch | undefined> {
    assert(this.#hold !== undefined, 'a read that waits for blocks holds its layers');
    this.#waiting = true;
    try {
      const batch = await pulled;
      this.#waiting = false;
      if (this.#reader !== undefined) {
        if (batch !== undefined) this.#source.checkAnswering(this.#context);
        return this.#returned(reader, batch);
      }
    } catch (error) {
      this.#waiting = false;
      this.#leave(reader);
      throw error;
    }
    this.#leave(reader);
    return undefined;
  }

  #returned(reader: RowReader, batch: ReadBatch | undefined): ReadBatch | undefined {
    if (reader.ended) this.end();
    else this.#releaseStaleLayers();
    return batch;
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
    reader.end();
    this.end();
  }
}
