/**
 * The minor compactions of one tablet (paper section 5.4): memtables are frozen, written to SSTables and committed, the oldest first, one at a time.
 *
 * Invariant: the redo point of a commit is the last record applied to the memtable that was frozen, so that replay begins behind it.
 */
import { assert } from '../../base/index.ts';
import { isAfter, type RedoPoint } from '../../commitlog/index.ts';
import type { Env } from '../../env/index.ts';
import { Memtable } from '../../memtable/index.ts';
import type { TableSchema } from '../../model/index.ts';
import type { FileCompactor } from './file-compactor.ts';
import type { FileOpener } from '../layers/file-opener.ts';
import { groupingOf } from '../layers/grouping.ts';
import type { LayerSet, MemtableLayer } from '../layers/layer-set.ts';
import type { MadeFiles } from '../layers/made-files.ts';
import { compactMemtable } from './minor-compaction.ts';
import type { ServerTime } from '../layers/server-time.ts';
import type { TabletCommits } from '../layers/tablet-commits.ts';
import type { TabletHost } from '../contract/tablet-state.ts';
import type { TabletWriter } from '../write/tablet-writer.ts';

export interface FlusherParts {
  readonly env: Env;
  readonly host: TabletHost;
  readonly layers: LayerSet;
  readonly time: ServerTime;
  readonly writer: TabletWriter;
  readonly commits: TabletCommits;
  readonly madeFiles: MadeFiles;
  readonly opener: FileOpener;
  readonly compactor: FileCompactor;
  readonly blockSizeBytes: number;
  schema(): TableSchema;
}

export function newMemtable(): MemtableLayer {
  return { memtable: new Memtable(), firstPosition: undefined, rangeDeletions: false };
}

export class Flusher {
  readonly #parts: FlusherParts;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** The last record applied to the newest frozen memtable. */
  #frozenUpTo: RedoPoint = { epoch: 0, sequence: 0 };

  constructor(parts: FlusherParts) {
    this.#parts = parts;
  }

  /** The one under way. */
  get running(): Promise<void> | undefined {
    return this.#running;
  }

  /** Whether everything applied is in files, and METADATA says so. */
  get isCommitted(): boolean {
    const { commits, writer, host } = this.#parts;
    const { redo, logs } = commits.state;
    return !isAfter(writer.applied, redo) && logs.every((log) => log === host.logPath);
  }

  /** Afterwards everything applied before the call is in committed files. Calls while one runs share the next. */
  flush(): Promise<void> {
    if (this.#running !== undefined) {
      this.#next ??= this.#running
        .catch(() => {})
        .then(() => {
          this.#next = undefined;
          return this.flush();
        });
      return this.#next;
    }
    this.#running = this.#flushAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Writes frozen memtables, which earlier failures left, then the active one. */
  async #flushAll(): Promise<void> {
    const { layers, writer } = this.#parts;
    while (layers.oldestFrozen !== undefined) await this.#flushOldest(this.#frozenUpTo);
    await writer.settle();
    if (layers.active.memtable.isEmpty && this.isCommitted) return;
    assert(layers.oldestFrozen === undefined, 'one memtable is frozen at a time');
    assert(
      !isAfter(this.#frozenUpTo, writer.applied),
      'the last record of a memtable is no older than that of the one before',
    );
    this.#frozenUpTo = writer.applied;
    layers.freeze(newMemtable());
    await this.#flushOldest(this.#frozenUpTo);
  }

  async #flushOldest(redo: RedoPoint): Promise<void> {
    const { env, host, layers, time, commits, madeFiles, opener, compactor, blockSizeBytes, schema } = this.#parts;
    const frozen = layers.oldestFrozen;
    assert(frozen !== undefined, 'no frozen memtable to flush');
    const { memtable } = frozen;
    assert(memtable.isFrozen, 'a memtable takes no writes while it is written to files');
    const { tableId, range, redo: since } = commits.state;
    assert(!isAfter(since, redo), 'redo points ascend');
    const paths: string[] = [];
    const newPath = (): string => {
      const path = madeFiles.newPath();
      paths.push(path);
      return path;
    };
    const { groupsBeingWritten } = compactor;
    try {
      const work = {
        env,
        opener,
        blockSizeBytes,
        grouping: groupingOf(schema()),
        memtable,
        tables: layers.tables,
        groupsBeingWritten,
        newPath,
        tableId,
        range,
        newest: redo,
        since,
        lastServerMicros: time.lastMicros,
      };
      const tables = await compactMemtable(work).catch((error: unknown) => {
        madeFiles.discard(paths);
        throw error;
      });
      await commits.flushed(tables, memtable.rowRangeDeletions(), redo);
      assert(layers.oldestFrozen !== frozen, 'a memtable that is in files is no layer any more');
    } finally {
      madeFiles.forget(paths);
    }
    host.filesChanged();
  }
}
