/**
 * Gathers the versions that a compaction drops because of garbage-collection rules, for change streams
 * (docs/decisions/0105-change-streams.md).
 *
 * Invariant: places ascend. Once the batch is full it takes no more, and says that there are more.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import type { ColumnKey } from '../../model/index.ts';
import type {
  CollectedBatch,
  CollectedPlace,
  CollectedRequest,
  CollectedVersions,
} from '../contract/compaction-job.ts';

const BATCH_COLUMNS = 10_000;
const BATCH_BYTES = 512 * 1024;

export class VersionCollector {
  readonly #versions: CollectedVersions[] = [];
  readonly #after: CollectedPlace | undefined;
  /** Index of the output that is being written. */
  #output = 0;
  #last: CollectedPlace | undefined;
  #bytes = 0;
  #isLast = true;

  constructor({ after }: CollectedRequest) {
    this.#after = after;
  }

  /** False if all versions of the output were requested before. */
  beginOutput(output: number): boolean {
    assert(output >= this.#output, 'outputs are written one after another');
    this.#output = output;
    return this.#after === undefined || output >= this.#after.output;
  }

  /** True if the batch takes no more, and there are more. */
  get isOver(): boolean {
    return !this.#isLast;
  }

  add(row: ByteString, column: ColumnKey, timestamp: Int64): void {
    if (this.isOver) return;
    const place = { output: this.#output, row, column };
    if (this.#after !== undefined && !isBehind(place, this.#after)) return;
    if (this.#versions.length >= BATCH_COLUMNS || this.#bytes >= BATCH_BYTES) {
      this.#isLast = false;
      return;
    }
    assert(this.#last === undefined || isBehind(place, this.#last), 'a compaction comes to each column once, in order');
    this.#versions.push({ row, column, timestamp });
    this.#bytes += row.length + column.length;
    this.#last = place;
  }

  batch(): CollectedBatch {
    return { versions: this.#versions, last: this.#last ?? this.#after, isLast: this.#isLast };
  }
}

function isBehind(a: CollectedPlace, b: CollectedPlace): boolean {
  if (a.output !== b.output) return a.output > b.output;
  return a.row === b.row ? a.column > b.column : a.row > b.row;
}
