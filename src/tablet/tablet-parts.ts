/** The parts of a tablet that reads, writes, flushes and compacts. */
import { CollectionLog } from './compact/collection-log.ts';
import { FileCompactor } from './compact/file-compactor.ts';
import { Flusher } from './compact/flusher.ts';
import { WriteActivity } from './compact/write-activity.ts';
import type { TabletState } from './contract/tablet-state.ts';
import { TabletContext, type TabletOptions } from './layers/tablet-context.ts';
import type { TabletFile } from './layers/tablet-file.ts';
import { LayerReads } from './read/layer-reads.ts';
import { RowLocks } from './write/row-locks.ts';
import { RowWrites } from './write/row-writes.ts';
import { TabletWriter } from './write/tablet-writer.ts';

export class TabletParts {
  readonly context: TabletContext;
  readonly locks = new RowLocks();
  readonly writer: TabletWriter;
  readonly reads: LayerReads;
  readonly writes: RowWrites;
  readonly compactor: FileCompactor;
  readonly flusher: Flusher;
  readonly writeActivity = new WriteActivity();

  /** `files`: those of `state`, open. */
  constructor(options: TabletOptions, state: TabletState, files: readonly TabletFile[]) {
    const context = new TabletContext(options, state, files);
    this.context = context;
    this.writer = new TabletWriter(context, this.locks);
    this.reads = new LayerReads(context);
    this.writes = new RowWrites(context, this.locks, this.writer);
    this.compactor = new FileCompactor(context, new CollectionLog(context, this.locks, this.writer));
    this.flusher = new Flusher(context, this.writer, this.compactor);
  }
}
