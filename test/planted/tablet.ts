import { BigtableError, Code } from '../../src/base/index.ts';
import { columnKey, CursorState, type Layer } from '../../src/model/index.ts';
import { numberedRows, openFile, put, writeFile } from '../../src/sstable/fixtures.ts';
import type { TabletHost, TabletState } from '../../src/tablet/contract/tablet-state.ts';
import { LayerNeed, LayerSet } from '../../src/tablet/layers/layer-set.ts';
import { OwnedFiles } from '../../src/tablet/layers/owned-files.ts';
import { ServerTime } from '../../src/tablet/layers/server-time.ts';
import { TabletCommits } from '../../src/tablet/layers/tablet-commits.ts';
import { TabletFile } from '../../src/tablet/layers/tablet-file.ts';
import { MergeCursor } from '../../src/tablet/read/merge-cursor.ts';
import { type PendingBatch, PendingRows } from '../../src/tablet/write/pending-rows.ts';
import { RowLocks } from '../../src/tablet/write/row-locks.ts';
import { SharedLock, SharedLocks } from '../../src/tablet/write/shared-locks.ts';
import { ListCursor } from '../list-cursor.ts';
import { type Fault, ROW } from './fault.ts';

const Q = columnKey('f', 'q');
const { tableId, range, epoch, files, redo, logs } = ROW;
const STATE: TabletState = { tableId, range, epoch, files, redo, logs, clips: undefined, lastServerMicros: 0 };

interface Counted {
  reads: number;
}

/** A file whose newest record has that number, as far as a set of layers looks into it. */
function fileOf(sequence: number, path = `file-${sequence}`): TabletFile & Counted {
  const file = {
    path,
    group: 'default',
    properties: { newest: { epoch: 1, sequence }, entries: { rangeDeletion: 0 } },
    sizeBytes: 1,
    reads: 0,
    firstRow: 'a',
    lastRow: 'z',
    rowRangeDeletions: () => [],
    mayContainRows: () => true,
    close: () => {},
  };
  return file as unknown as TabletFile & Counted;
}

/** Files whose paths `newFilePath` returns one after another. */
function ownedFiles(...paths: readonly string[]): OwnedFiles {
  const left = [...paths];
  return new OwnedFiles({ newFilePath: () => left.shift() ?? 'none', released: () => {}, leftToSweep: () => {} });
}

function layersOf(...list: readonly TabletFile[]): LayerSet {
  return new LayerSet(list, ownedFiles());
}

const layers = (): [LayerSet, TabletFile & Counted, TabletFile & Counted] => {
  const [newer, older] = [fileOf(2), fileOf(1)];
  return [layersOf(newer, older), newer, older];
};

/** Commits of a tablet on a host that does `onCommit`. */
function commitsOf(set: LayerSet, onCommit: () => void = () => {}): TabletCommits {
  const host: Pick<TabletHost, 'commit' | 'logPath' | 'filesChanged' | 'clockIsBehind'> = {
    logPath: 'log',
    commit: async () => onCommit(),
    filesChanged: () => {},
    clockIsBehind: () => {},
  };
  const time = new ServerTime({ nowMicros: () => 1 }, host, STATE, []);
  return new TabletCommits(host as TabletHost, set, time, STATE);
}

function pendingBatch(failure?: BigtableError): PendingBatch {
  return { append: { durable: Promise.resolve(1), failure }, done: Promise.resolve() };
}

async function openedFile(clips = [range]): Promise<TabletFile> {
  return new TabletFile(await openFile(await writeFile(numberedRows(20, 10))), range, clips);
}

export const TABLET_FAULTS: readonly Fault[] = [
  {
    fault: 'the lock of a row is unlocked twice',
    message: /a row is unlocked when it is locked/,
    run: async (planted) => {
      const locks = new RowLocks();
      await locks.lockExclusive('row');
      locks.unlockExclusive('row');
      if (planted) locks.unlockExclusive('row');
    },
  },
  {
    fault: 'a transaction logs its change after it has unlocked the row',
    message: /row that it holds/,
    run: (planted) => {
      const locks = new RowLocks();
      locks.lockExclusive('row');
      if (planted) locks.unlockExclusive('row');
      locks.logged('row');
    },
  },
  {
    fault: 'the change of a transaction is applied twice',
    message: /hot until/,
    run: (planted) => {
      const locks = new RowLocks();
      locks.lockExclusive('row');
      locks.logged('row');
      locks.unlockExclusive('row');
      locks.applied('row');
      if (planted) locks.applied('row');
    },
  },
  {
    fault: 'pending changes are applied before those that precede them in the log',
    message: /log order/,
    run: (planted) => {
      const pending = new PendingRows(() => () => undefined);
      const [first, second] = [pendingBatch(), pendingBatch()];
      pending.add(first, 'row', [{ kind: 'deleteFromRow' }]);
      pending.add(second, 'row', [{ kind: 'deleteFromRow' }]);
      if (!planted) pending.remove(first);
      pending.remove(second);
    },
  },
  {
    fault: 'a change is pending in an append that has failed',
    message: /place in the log/,
    run: (planted) => {
      const failure = planted ? new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full') : undefined;
      new PendingRows(() => () => undefined).add(pendingBatch(failure), 'row', []);
    },
  },
  {
    fault: 'the lock of a tablet is unlocked twice',
    message: /a tablet is unlocked when it is locked/,
    run: async (planted) => {
      const locks = new RowLocks();
      await locks.lockTablet();
      locks.unlockTablet();
      if (planted) locks.unlockTablet();
    },
  },
  {
    fault: 'rows that a write shares are unlocked twice',
    message: /a lock is released when it is held/,
    run: (planted) => {
      const locks = new SharedLocks();
      const lock = new SharedLock();
      locks.add('row', lock);
      locks.remove(lock);
      if (planted) locks.remove(lock);
    },
  },
  {
    fault: 'a write unlocks other rows than it locked',
    message: /counted/,
    run: (planted) => {
      const locks = new SharedLocks();
      const lock = new SharedLock();
      locks.add('row', lock);
      if (planted) lock.rows[0] = 'another';
      locks.remove(lock);
    },
  },
  {
    fault: 'two layers are swapped',
    message: /by age/,
    run: (planted) => {
      const [set, newer, older] = layers();
      set.replaceFiles(planted ? [older, newer] : [newer, older]);
    },
  },
  {
    fault: 'a tablet lists a file twice',
    message: /once/,
    run: (planted) => {
      const [set, newer] = layers();
      set.replaceFiles([newer, planted ? newer : fileOf(1)]);
    },
  },
  {
    fault: 'a file that a compaction replaced comes back',
    message: /come back/,
    run: (planted) => {
      const [set, newer, older] = layers();
      const hold = set.hold(new LayerNeed(range));
      set.replaceFiles([newer]);
      if (!planted) hold.release();
      set.replaceFiles([newer, planted ? older : fileOf(1, 'merged')]);
    },
  },
  {
    fault: 'a file has more reads than hold it',
    message: /more often than held/,
    run: (planted) => {
      const [set, newer] = layers();
      const hold = set.hold(new LayerNeed(range));
      if (planted) newer.reads = 0;
      hold.release();
    },
  },
  {
    fault: 'a read counts its layers in the wrong order',
    message: /an older one/,
    run: (planted) => {
      const [{ credits }, newer, older] = layers();
      const read = planted ? [older, newer] : [newer, older];
      for (let i = 0; i < 100; i++) credits.lookedUp(read);
      credits.among([newer, older]);
    },
  },
  {
    fault: 'a flush ends for which no memtable was frozen',
    message: /a replaced memtable was frozen/,
    run: (planted) => {
      const [set] = layers();
      if (!planted) set.freeze();
      set.replaceOldestFrozen(set.files);
    },
  },
  {
    fault: 'the redo point of a tablet goes back',
    message: /redo points ascend/,
    run: async (planted) => {
      const [set] = layers();
      set.freeze();
      await commitsOf(set).flushed([], [], { epoch: redo.epoch, sequence: redo.sequence + (planted ? -1 : 1) });
    },
  },
  {
    fault: 'the files of a tablet change while it commits',
    message: /while it commits/,
    run: async (planted) => {
      const [set, newer] = layers();
      const commits = commitsOf(set, () => planted && set.replaceFiles([newer]));
      await commits.compacted(() => [newer]);
    },
  },
  {
    fault: 'two new files have one path',
    message: /path of its own/,
    run: (planted) => {
      const owned = ownedFiles('a', planted ? 'a' : 'b');
      owned.newPath();
      owned.newPath();
    },
  },
  {
    fault: 'a tablet is released while it writes a file',
    message: /writes no file/,
    run: (planted) => {
      const owned = ownedFiles('a');
      const path = owned.newPath();
      if (!planted) owned.finish([path], []);
      owned.share();
    },
  },
  {
    fault: 'the time that a tablet gives runs back',
    message: /never runs back/,
    run: (planted) => {
      const clock = { nowMicros: () => (planted ? Number.NaN : 1) };
      new ServerTime(clock, { clockIsBehind: () => {} }, STATE, []).next();
    },
  },
  {
    fault: 'a file of a tablet is closed while it is read',
    message: /no read holds it/,
    run: async (planted) => {
      const file = await openedFile();
      file.reads = planted ? 1 : 0;
      file.close();
    },
  },
  {
    fault: 'the parts for which a file is listed overlap',
    message: /ascend/,
    run: (planted) =>
      openedFile([
        { start: '', end: planted ? 'n' : 'm' },
        { start: 'm', end: undefined },
      ]),
  },
  {
    fault: 'a layer has its rows out of order',
    message: /in order/,
    run: (planted) => {
      const entries = [put('a', Q, 1), put('b', Q, 1)];
      const layer: Layer = {
        rowRangeDeletions: () => [],
        mayContainRows: () => true,
        cursor: () => new ListCursor(planted ? entries.reverse() : entries),
      };
      const cursor = new MergeCursor([layer], { aggregateOf: () => undefined });
      for (cursor.seekRow(''); cursor.state === CursorState.ready; ) cursor.next();
    },
  },
];
