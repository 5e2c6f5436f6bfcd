/**
 * Pending changes of hot rows: those that have their place in the log and are not applied yet. Only a transaction on
 * the row sees them, as layers above the memtables (docs/decisions/0044-hot-rows.md).
 *
 * Invariants:
 * - While a row is locked exclusively, every change of it that is logged and not applied is pending here.
 * - A layer holds the changes of one append, and is removed in the slice in which they are applied. So each change is
 *   in one layer of a read at any time, and layers have the order of the log.
 * - Changes of an append that has failed are never seen, from the slice on in which the log knows.
 *
 * Hot path: a transaction that meets no other one costs an entry in a map. The layer is made when a transaction reads
 * the row.
 */
import { assert, type ByteString } from '../../base/index.ts';
import type { LogAppend } from '../../commitlog/index.ts';
import { type AggregateOf, Memtable } from '../../memtable/index.ts';
import type { Layer, Mutations } from '../../model/index.ts';

const EMPTY_LAYERS: readonly Layer[] = [];

/** An append whose records are not applied yet. */
export interface PendingBatch {
  readonly append: LogAppend;
  /** Resolves when its records are applied and may be acknowledged. */
  readonly done: Promise<void>;
}

export class PendingRows {
  readonly #aggregateOf: () => AggregateOf;
  /** Oldest first. */
  readonly #appends: PendingAppend[] = [];

  /** `aggregateOf` returns the aggregates of the schema as it is now. */
  constructor(aggregateOf: () => AggregateOf) {
    this.#aggregateOf = aggregateOf;
  }

  get isEmpty(): boolean {
    return this.#appends.length === 0;
  }

  /** The row is locked exclusively. Changes are added in the order of the log. */
  add(batch: PendingBatch, row: ByteString, mutations: Mutations): void {
    let newest = this.#appends.at(-1);
    if (newest?.batch !== batch) {
      assert(batch.append.failure === undefined, 'a change that is pending has its place in the log');
      newest = new PendingAppend(batch);
      this.#appends.push(newest);
    }
    newest.add(row, mutations);
  }

  /** The changes of the batch are applied, or have failed. */
  remove(batch: PendingBatch): void {
    if (this.#appends[0]?.batch === batch) this.#appends.shift();
    assert(!this.#appends.some((append) => append.batch === batch), 'pending changes are applied in log order');
  }

  /** The newest append that changes the row; undefined if no change of it is pending. */
  newestOf(row: ByteString): PendingBatch | undefined {
    for (let i = this.#appends.length - 1; i >= 0; i--) {
      const append = this.#appends[i]!;
      if (append.changes(row)) return append.batch;
    }
    return undefined;
  }

  /** The pending changes of the row as layers, newest first. */
  layersOf(row: ByteString): readonly Layer[] {
    let layers: Layer[] | undefined;
    for (let i = this.#appends.length - 1; i >= 0; i--) {
      const append = this.#appends[i]!;
      if (append.changes(row)) (layers ??= []).push(append.layerOf(row, this.#aggregateOf()));
    }
    return layers ?? EMPTY_LAYERS;
  }
}

/** The pending changes of one append. */
class PendingAppend {
  readonly batch: PendingBatch;
  /** By row: its changes, oldest first, that are not in the layer yet. */
  readonly #rows = new Map<ByteString, Mutations[]>();
  /** A read that is under way keeps the generation of the row that it began with. */
  #layer: Memtable | undefined;

  constructor(batch: PendingBatch) {
    this.batch = batch;
  }

  add(row: ByteString, mutations: Mutations): void {
    const changes = this.#rows.get(row);
    if (changes === undefined) this.#rows.set(row, [mutations]);
    else changes.push(mutations);
  }

  changes(row: ByteString): boolean {
    return this.batch.append.failure === undefined && this.#rows.has(row);
  }

  layerOf(row: ByteString, aggregateOf: AggregateOf): Layer {
    const changes = this.#rows.get(row);
    assert(changes !== undefined, 'a layer is made for a row with pending changes');
    this.#layer ??= new Memtable();
    for (const mutations of changes) this.#layer.apply(row, mutations, aggregateOf);
    changes.length = 0;
    return this.#layer;
  }
}
