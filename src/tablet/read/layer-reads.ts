/**
 * Begins the reads of one tablet: compiles the filter, holds the layers that it needs, and makes a reader over them.
 */
import { assert, BigtableError, type ByteString, Code } from '../../base/index.ts';
import type { Counter, RequestContext } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { type Cell, type Layer, rangeOfRow, rowOfRange } from '../../model/index.ts';
import { type LayerHold, LayerNeed } from '../layers/layer-set.ts';
import { ReadFamilies } from './read-families.ts';
import { RowReader } from './row-reader.ts';
import type { Search } from './search.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import type { TabletRead } from '../contract/tablet-api.ts';
import { PreparedRead, type ReadSource, TabletReadStream } from './tablet-read.ts';

export class LayerReads implements ReadSource {
  rows = 0;
  readonly #context: TabletContext;
  readonly #filesRead: Counter;
  readonly #blockHits: Counter;
  readonly #blockMisses: Counter;

  constructor(context: TabletContext) {
    const { metrics } = context.env;
    this.#context = context;
    this.#filesRead = metrics.counter('tablet.filesRead');
    this.#blockHits = metrics.counter('blockCache.hits');
    this.#blockMisses = metrics.counter('blockCache.misses');
  }

  read(context: RequestContext, request: TabletRead): TabletReadStream {
    return new TabletReadStream(this, context, request);
  }

  /** All cells of the row that pass the filter. RESOURCE_EXHAUSTED if they are larger than a row may be. */
  async collectRow(context: RequestContext, row: ByteString, filter: RowFilter | undefined): Promise<Cell[]> {
    const { rowBytes } = this.#context.options.limits;
    const cells: Cell[] = [];
    let bytes = 0;
    const rows = this.read(context, { ranges: [rangeOfRow(row)], filter, rowsLimit: 0, reversed: false });
    try {
      for (;;) {
        while (!rows.advance()) await rows.load();
        const batch = rows.takeBatch();
        if (batch === undefined) return cells;
        for (const fragment of batch.fragments) {
          for (const cell of fragment.cells) {
            cells.push(cell);
            bytes += cell.value.length + cell.qualifier.length;
          }
        }
        if (bytes > rowBytes) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `row is larger than ${rowBytes} bytes`);
      }
    } finally {
      rows.end();
    }
  }

  /** Searches the row for a cell that passes the filter. */
  cellSearch(context: RequestContext, row: ByteString, filter: RowFilter | undefined): CellSearch {
    return new CellSearch(this.read(context, { ranges: [rangeOfRow(row)], filter, rowsLimit: 1, reversed: false }));
  }

  checkServing(context: RequestContext): void {
    this.#context.serving.check(context);
  }

  checkAnswering(context: RequestContext): void {
    this.#context.serving.checkAnswering(context);
  }

  checkMissed(error: unknown, context: RequestContext): void {
    this.#context.serving.checkMissed(error, context);
  }

  prepare({ ranges, filter }: TabletRead): PreparedRead | undefined {
    const first = ranges[0];
    const last = ranges[ranges.length - 1];
    if (first === undefined || last === undefined) return undefined;
    const range = first === last ? first : { start: first.start, end: last.end };
    assert(first === last || (first.end !== undefined && first.end <= last.start), 'the ranges of a read ascend');
    const { env, options } = this.#context;
    const families = ReadFamilies.of(this.#context.schema(), env.clock);
    const program = options.filters.compile(filter, families.names);
    return new PreparedRead(
      program,
      families,
      new LayerNeed(range, rowOfRange(range), program.columnSpans && families.storedSpans(program.columnSpans)),
    );
  }

  hold(need: LayerNeed, pending?: readonly Layer[]): LayerHold {
    const hold = this.#context.layers.hold(need, pending);
    this.#filesRead.value += hold.files.length;
    return hold;
  }

  reader(
    context: RequestContext,
    layers: LayerHold['layers'],
    request: TabletRead,
    { program, families, need }: PreparedRead,
  ): RowReader {
    const { env, options, layers: all } = this.#context;
    return new RowReader({
      layers,
      ranges: program.blocksAll ? [] : request.ranges,
      row: need.row,
      reversed: request.reversed,
      rowsLimit: request.rowsLimit,
      families,
      program,
      clock: env.clock,
      context,
      credits: all.credits,
      blockHits: this.#blockHits,
      blockMisses: this.#blockMisses,
      heldBytesLimit: options.limits.rowBytes,
      batchBytes: options.readBatchBytes,
    });
  }
}

/** A search for a cell that passes a filter. */
export class CellSearch implements Search {
  /** The result. */
  isFound = false;
  readonly #rows: TabletReadStream;

  constructor(rows: TabletReadStream) {
    this.#rows = rows;
  }

  advance(): boolean {
    while (this.#rows.advance()) {
      const batch = this.#rows.takeBatch();
      if (batch === undefined) return true;
      this.isFound = batch.fragments.some(({ cells }) => cells.length > 0);
      if (this.isFound) return true;
    }
    return false;
  }

  load(): Promise<void> {
    return this.#rows.load();
  }

  close(): void {
    this.#rows.end();
  }
}
