/** The reads of transactions: those of one row also see the changes of the row that are pending. */
import type { LayerHold, LayerNeed } from '../layers/layer-set.ts';
import type { TabletContext } from '../layers/tablet-context.ts';
import { LayerReads } from '../read/layer-reads.ts';
import type { PendingRows } from './pending-rows.ts';

export class TransactionReads extends LayerReads {
  readonly #pending: PendingRows;

  constructor(context: TabletContext, pending: PendingRows) {
    super(context);
    this.#pending = pending;
  }

  override hold(need: LayerNeed): LayerHold {
    return super.hold(need, need.row === undefined ? undefined : this.#pending.layersOf(need.row));
  }
}
