import { ManualClock, MemoryFileSystem, Metrics } from '../../src/env/index.ts';
import { columnKey, EntryKind } from '../../src/model/index.ts';
import { BlockCache } from '../../src/sstable/cache/block-cache.ts';
import { EvictionQueues, Queued } from '../../src/sstable/cache/eviction.ts';
import { MemoryBudget } from '../../src/sstable/cache/memory-budget.ts';
import { CODECS, numberedRows, openFile, PATH, put, writeFile } from '../../src/sstable/fixtures.ts';
import { BlockIndexBuilder } from '../../src/sstable/format/block-index.ts';
import { ByteWriter } from '../../src/sstable/format/byte-writer.ts';
import { encodeFamilies } from '../../src/sstable/format/families.ts';
import { encodeDirectory } from '../../src/sstable/format/format.ts';
import { encodeRowRangeDeletions } from '../../src/sstable/format/row-range-deletions.ts';
import { Block } from '../../src/sstable/read/block.ts';
import type { SsTable } from '../../src/sstable/ss-table.ts';
import { writeSsTable } from '../../src/sstable/write/write-ss-table.ts';
import { ListCursor } from '../list-cursor.ts';
import type { Fault } from './fault.ts';

const Q = columnKey('f', 'q');

async function openedFile(): Promise<SsTable> {
  return openFile(await writeFile(numberedRows(20, 10)));
}

function cacheOf(): BlockCache {
  return new BlockCache({ limitBytes: 1 << 20, metrics: new Metrics() });
}

/** A page of ten bytes. */
function page(): Block {
  return new Block(PATH, 0, Buffer.alloc(10), 10);
}

/** The bytes of a block index of two blocks, the second of which begins at `row`. */
function indexOf(row: string): void {
  const index = new BlockIndexBuilder();
  for (const first of ['b', row]) {
    index.add({
      first: { row: first, column: Q, kind: EntryKind.put, timestamp: 1 },
      lastRow: first,
      extent: { offset: 0, lengthBytes: 1 },
      entries: 1,
    });
  }
}

export const SSTABLE_FAULTS: readonly Fault[] = [
  {
    fault: 'entries come to the writer out of order',
    message: /order|ascend/,
    run: (planted) =>
      writeSsTable(
        { fileSystem: new MemoryFileSystem(), path: PATH, codecs: CODECS, clock: new ManualClock(), group: 'g' },
        new ListCursor(planted ? [put('b', Q, 1), put('a', Q, 1)] : [put('a', Q, 1), put('b', Q, 1)]),
      ),
  },
  {
    fault: 'the rows of a block lie below those of the block before',
    message: /rows of blocks ascend/,
    run: (planted) => indexOf(planted ? 'a' : 'c'),
  },
  {
    fault: 'two deletions of rows overlap in one file',
    message: /disjoint/,
    run: (planted) =>
      encodeRowRangeDeletions([
        { start: 'a', end: planted ? 'c' : 'b' },
        { start: 'b', end: undefined },
      ]),
  },
  {
    fault: 'a gap lies between two sections of a file',
    message: /without gaps/,
    run: (planted) => {
      const sections = [{ name: 'index', offset: 0, lengthBytes: 10 }];
      const directory = encodeDirectory(sections);
      if (planted) encodeDirectory([...sections, { name: 'bloom', offset: directory.length + 1000, lengthBytes: 1 }]);
    },
  },
  {
    fault: 'a file counts one family twice',
    message: /families ascend/,
    run: (planted) =>
      encodeFamilies(
        new ByteWriter(),
        ['f', planted ? 'f' : 'g'].map((family) => ({ family, cells: 1, logicalBytes: 1 })),
      ),
  },
  {
    fault: 'the entries of a page end after its bytes',
    message: /lie in its bytes/,
    run: (planted) => new Block(PATH, 0, Buffer.alloc(10), planted ? 11 : 10),
  },
  {
    fault: 'a file is closed twice',
    message: /closed once/,
    run: async (planted) => {
      const file = await openedFile();
      file.close();
      if (planted) file.close();
    },
  },
  {
    fault: 'a file is read after it was closed',
    message: /open/,
    run: async (planted) => {
      const file = await openedFile();
      if (planted) file.close();
      file.cursor().close();
    },
  },
  {
    fault: 'a cursor moves on from a block that is not loaded',
    message: /load first/,
    run: async (planted) => {
      const cursor = (await openedFile()).cursor();
      cursor.seekRow('');
      if (!planted) await cursor.load();
      cursor.next();
    },
  },
  {
    fault: 'a cursor moves after it was closed',
    message: /open/,
    run: async (planted) => {
      const cursor = (await openedFile()).cursor();
      if (planted) cursor.close();
      cursor.seekRow('');
    },
  },
  {
    fault: 'the block cache closes a file more often than it was opened',
    message: /was opened/,
    run: (planted) => {
      const file = cacheOf().open(PATH);
      file.close();
      if (planted) file.close();
    },
  },
  {
    fault: 'the block cache keeps a block twice',
    message: /kept once/,
    run: (planted) => {
      const file = cacheOf().open(PATH);
      file.keep(1, page(), false);
      file.keep(planted ? 1 : 2, page(), false);
    },
  },
  {
    fault: 'an item of a cache lies in its queue twice',
    message: /in one queue/,
    run: (planted) => {
      const queues = new EvictionQueues<Queued>(100);
      const [first, second] = [new Queued(1), new Queued(1)];
      queues.add(first);
      queues.add(second);
      queues.add(planted ? first : new Queued(1));
    },
  },
  {
    fault: 'an item of a cache is counted with other bytes than it has',
    message: /counts the bytes/,
    run: (planted) => {
      const queues = new EvictionQueues<Queued>(100);
      const item = new Queued(10);
      queues.add(item);
      if (planted) item.bytes = 11;
      queues.remove(item);
    },
  },
  {
    fault: 'an item is evicted from a cache that has none',
    message: /empty/,
    run: (planted) => {
      const queues = new EvictionQueues<Queued>(100);
      if (!planted) queues.add(new Queued(1));
      queues.evict();
    },
  },
  {
    fault: 'a file in memory has two sizes',
    message: /one size/,
    run: (planted) => {
      const budget = new MemoryBudget(100);
      const openCached = (): never => {
        throw new Error('it fits');
      };
      budget.open(PATH, 10, openCached);
      budget.open(PATH, planted ? 11 : 10, openCached);
    },
  },
];
