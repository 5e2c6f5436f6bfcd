/**
 * The METADATA row of a tablet and its changes: one commit after another. The list of layers takes over each commit
 * before the next begins.
 */
import { assert } from '../../base/index.ts';
import { isAfter, type RedoPoint } from '../../commitlog/index.ts';
import type { RowRangeDeletion } from '../../model/index.ts';
import { clipsOf, pathsByGroup, type LayerSet } from './layer-set.ts';
import type { ServerTime } from './server-time.ts';
import type { TabletFile } from './tablet-file.ts';
import type { TabletHost, TabletState } from '../contract/tablet-state.ts';

export class TabletCommits {
  readonly #host: TabletHost;
  readonly #layers: LayerSet;
  readonly #time: ServerTime;
  #state: TabletState;
  #last: Promise<unknown> = Promise.resolve();
  #isCommitting = false;

  constructor(host: TabletHost, layers: LayerSet, time: ServerTime, state: TabletState) {
    this.#host = host;
    this.#layers = layers;
    this.#time = time;
    this.#state = state;
  }

  get state(): TabletState {
    return this.#state;
  }

  /** Runs `work`, which changes the row or ends the tablet, while no commit is in progress. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Commits the files of the oldest frozen memtable, whose records are all at or before `redo`. */
  flushed(files: readonly TabletFile[], rangeDeletions: readonly RowRangeDeletion[], redo: RedoPoint): Promise<void> {
    return this.inTurn(async () => {
      const list = this.#layers.withNewest(files, rangeDeletions);
      await this.#commit(list, redo, [this.#host.logPath]);
      this.#layers.replaceOldestFrozen(list);
    });
  }

  /**
   * Commits the list that `make` returns when it is the turn of this change; false if that is undefined. `before`: what
   * is to be done first, with no other commit in between.
   */
  compacted(make: () => readonly TabletFile[] | undefined, before?: () => Promise<void>): Promise<boolean> {
    return this.inTurn(async () => {
      if (before !== undefined) await before();
      const list = make();
      if (list === undefined) return false;
      const { redo, logs } = this.#state;
      await this.#commit(list, redo, logs);
      this.#layers.replaceFiles(list);
      return true;
    }).finally(() => this.#host.filesChanged());
  }

  /** Commits the row as it is: the host may change what is its own in it. */
  renewed(): Promise<void> {
    return this.inTurn(() => {
      const { redo, logs } = this.#state;
      return this.#commit(this.#layers.files, redo, logs);
    });
  }

  async #commit(list: readonly TabletFile[], redo: RedoPoint, logs: readonly string[]): Promise<void> {
    const [before, { files }] = [this.#state, this.#layers];
    assert(!this.#isCommitting, 'a tablet makes one commit at a time');
    assert(!isAfter(before.redo, redo), 'redo points ascend');
    this.#isCommitting = true;
    // taken with the redo point: records before that are not replayed
    const lastServerMicros = this.#time.lastMicros;
    const change = { files: pathsByGroup(list), clips: clipsOf(list), redo, logs, lastServerMicros };
    assert(
      lastServerMicros >= (before.lastServerMicros ?? 0),
      'the time that METADATA keeps of a tablet never runs back',
    );
    try {
      await this.#host.commit(before, change);
    } finally {
      this.#isCommitting = false;
    }
    assert(this.#state === before && this.#layers.files === files, 'nothing else changes a tablet while it commits');
    this.#state = { ...before, ...change };
  }
}
