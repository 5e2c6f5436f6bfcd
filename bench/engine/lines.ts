/**
 * The lines of the engine bench: the paper's six workloads (section 7) and some more. A line that writes
 * starts on an empty directory and is measured until the process rests; a line that reads opens a directory that a load
 * has filled, and warms what it reads first.
 */
import { rmSync } from 'node:fs';
import { Values, Numbers, shuffled } from './data.ts';
import { type Job, type Outcome, rowKey, userBytes } from './job.ts';
import { diskBytes, residentBytes, Stopwatch, type Usage, untilRest } from './measure.ts';
import type { OpenStore, RowToWrite, Store } from './store.ts';

export const WRITERS = 256;
export const ROWS_A_BATCH = 100;
const READERS = 32;
const MAX_READS = 200_000;

interface Rows {
  next(): RowToWrite | undefined;
}

/** The rows of a job to be written, one after the other, in the order of their keys or at random. */
function rowsOf({ rows, shape }: Job, random: boolean): Rows {
  const values = new Values();
  const order = random ? shuffled(rows, rows) : undefined;
  let index = 0;
  return {
    next: () => {
      if (index === rows) return undefined;
      const key = rowKey(order === undefined ? index : (order[index] as number));
      index++;
      return { key, values: shape === 'value' ? [values.value()] : values.cells() };
    },
  };
}

const together = (count: number, work: () => Promise<void>): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, work));

/** 256 writers, each waiting for its row to be acknowledged before it writes the next. */
async function writeRows(store: Store, rows: Rows): Promise<void> {
  await together(WRITERS, async () => {
    for (let row = rows.next(); row; row = rows.next()) await store.put(row);
  });
}

async function writeBatches(store: Store, rows: Rows): Promise<void> {
  for (let row = rows.next(); row; ) {
    const batch: RowToWrite[] = [];
    for (; row && batch.length < ROWS_A_BATCH; row = rows.next()) batch.push(row);
    await store.putBatch(batch);
  }
}

/** Row numbers to read: `count` of them, in key order or at random. */
function reads({ rows }: Job, random: boolean): { readonly count: number; next(): number } {
  const count = Math.min(rows, MAX_READS);
  const numbers = new Numbers(7);
  let index = 0;
  return { count, next: () => (random ? numbers.below(rows) : index++) };
}

async function readRows(store: Store, job: Job, random: boolean, readers: number, now = false): Promise<number> {
  const { count, next } = reads(job, random);
  let left = count;
  await together(readers, async () => {
    while (left-- > 0) {
      const key = rowKey(next());
      const found = now && store.getNow ? store.getNow(key) : store.get(key, readers === 1);
      // many at once await each answer, whatever the system: that is what lets the others have a turn
      if ((typeof found === 'number' && readers === 1 ? found : await found) === 0)
        throw new Error(`${job.system}: row ${key} is missing`);
    }
  });
  return count;
}

async function scanRows(store: Store, job: Job, reverse: boolean): Promise<number> {
  const bytes = await store.scan(reverse);
  if (bytes !== job.rows * 1000) throw new Error(`${job.system}: a scan found ${bytes} bytes of ${job.rows} rows`);
  return job.rows;
}

type Line =
  | {
      readonly what: string;
      readonly kind: 'write';
      readonly isSynced: boolean;
      readonly write: (store: Store, job: Job) => Promise<void>;
    }
  | {
      readonly what: string;
      readonly kind: 'read';
      readonly larger?: boolean;
      readonly read: (store: Store, job: Job) => Promise<number>;
    };

export const LINES: Readonly<Record<string, Line>> = {
  'seq-write': {
    what: 'sequential writes, 256 writers, synced',
    kind: 'write',
    isSynced: true,
    write: (store, job) => writeRows(store, rowsOf(job, false)),
  },
  'seq-write-buffered': {
    what: 'the same, unsynced',
    kind: 'write',
    isSynced: false,
    write: (store, job) => writeRows(store, rowsOf(job, false)),
  },
  'random-write': {
    what: 'random writes, 256 writers, synced',
    kind: 'write',
    isSynced: true,
    write: (store, job) => writeRows(store, rowsOf(job, true)),
  },
  'random-write-buffered': {
    what: 'the same, unsynced',
    kind: 'write',
    isSynced: false,
    write: (store, job) => writeRows(store, rowsOf(job, true)),
  },
  'batch-write': {
    what: 'random writes, batches of 100, unsynced',
    kind: 'write',
    isSynced: false,
    write: (store, job) => writeBatches(store, rowsOf(job, true)),
  },
  'seq-read': {
    what: 'sequential reads, cached, one by one',
    kind: 'read',
    read: (store, job) => readRows(store, job, false, 1),
  },
  'random-read': {
    what: 'random reads, cached, one by one',
    kind: 'read',
    read: (store, job) => readRows(store, job, true, 1),
  },
  'random-read-now': {
    what: 'the same, without a promise if memory has the row',
    kind: 'read',
    read: (store, job) => readRows(store, job, true, 1, true),
  },
  'random-read-32': {
    what: 'random reads, cached, 32 at once',
    kind: 'read',
    read: (store, job) => readRows(store, job, true, READERS),
  },
  'random-read-large': {
    what: 'random reads, 8 times the cache, 32 at once',
    kind: 'read',
    larger: true,
    read: (store, job) => readRows(store, job, true, READERS),
  },
  scan: { what: 'scan of the table', kind: 'read', read: (store, job) => scanRows(store, job, false) },
  'scan-reverse': {
    what: 'scan of the table, reversed',
    kind: 'read',
    read: (store, job) => scanRows(store, job, true),
  },
};

function outcome(job: Job, usage: Usage, operations: number, openMs: number): Outcome {
  return {
    operations,
    seconds: usage.seconds,
    cpuMicrosPerOperation: usage.cpuMicros / operations,
    writtenPerUserByte: usage.writtenBytes / userBytes(job),
    residentBytes: residentBytes(),
    diskBytes: diskBytes(job.directory),
    openMs,
    extra: {},
  };
}

const NOT_MEASURED = 0;

/** Writes all rows into an empty directory. */
async function runWrite(open: OpenStore, job: Job, line: Line & { kind: 'write' }): Promise<Outcome> {
  rmSync(job.directory, { recursive: true, force: true });
  const store = await open({ ...job, isSynced: line.isSynced });
  try {
    const stopwatch = new Stopwatch();
    await line.write(store, job);
    const usage = await untilRest(stopwatch, store.isBusy);
    return outcome(job, usage, job.rows, NOT_MEASURED);
  } finally {
    await store.close();
  }
}

async function runRead(open: OpenStore, job: Job, line: Line & { kind: 'read' }): Promise<Outcome> {
  const opening = new Stopwatch();
  const store = await open({ ...job, isSynced: true });
  try {
    if ((await store.get(rowKey(0), true)) === 0)
      throw new Error(`${job.system}: the loaded directory lacks its first row`);
    const openMs = opening.read().seconds * 1000;
    if (!line.larger) await store.scan(false);
    // the same reads once before: caches are warm, code is compiled
    await line.read(store, job);
    await untilRest(new Stopwatch(), store.isBusy);
    const stopwatch = new Stopwatch();
    const operations = await line.read(store, job);
    return outcome(job, stopwatch.read(), operations, openMs);
  } finally {
    await store.close();
  }
}

/** Writes the whole table in random order, waits for rest and closes it: the reading lines open it. */
export async function load(open: OpenStore, job: Job): Promise<Outcome> {
  rmSync(job.directory, { recursive: true, force: true });
  const store = await open({ ...job, isSynced: false });
  const stopwatch = new Stopwatch();
  await writeBatches(store, rowsOf(job, true));
  const usage = await untilRest(stopwatch, store.isBusy);
  const result = outcome(job, usage, job.rows, NOT_MEASURED);
  await store.close();
  return result;
}

export function runLine(open: OpenStore, job: Job): Promise<Outcome> {
  const line = LINES[job.line];
  if (!line) throw new Error(`there is no line "${job.line}"`);
  return line.kind === 'write' ? runWrite(open, job, line) : runRead(open, job, line);
}
