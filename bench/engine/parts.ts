/**
 * Lines about Edubba alone, each against a figure of its own: memory of ten million cells at rest, the reopening of a
 * gigabyte, bytes written to the disk, and the slowest reads while compactions run.
 */
import { rmSync } from 'node:fs';
import type { Table } from '../../src/embedded/index.ts';
import { Numbers, shuffled, Values } from './data.ts';
import { growth } from './edubba-store.ts';
import { CELLS_A_ROW, cellName, type Job, rowKey, userBytes, VALUE_BYTES } from './job.ts';
import { diskBytes, pause, percentile, residentBytes, Stopwatch, untilRest } from './measure.ts';
import { open, RowMutation } from './package.ts';

const MIB = 1024 * 1024;
const BATCH = 100;
const CALLS = 8;
const SAMPLES = 5000;
/**
 * By then what worked has given back what it had for its work: compaction threads end, and V8 gives its heap's empty
 * pages back.
 */
const REST_MS = 60_000;

/** The figures of a part by name; its target is for the first. */
export type Figures = Readonly<Record<string, number>>;

interface Part {
  readonly what: string;
  /** True when the first figure meets the target. */
  readonly target: { readonly name: string; readonly most: number };
  readonly run: (job: Job) => Promise<Figures>;
}

async function fill(table: Table, rows: number, mutation: (index: number) => RowMutation): Promise<void> {
  const order = shuffled(rows, rows);
  let from = 0;
  await Promise.all(
    Array.from({ length: CALLS }, async () => {
      while (from < rows) {
        const indexes = order.subarray(from, (from += BATCH));
        await table.applyAll(Array.from(indexes, mutation));
      }
    }),
  );
}

function oneValue(): (index: number) => RowMutation {
  const values = new Values();
  return (index) => new RowMutation(rowKey(index)).set('f:v', values.value());
}

/** Ten cells a row for each requested row: a million rows make ten million cells. */
async function memory(job: Job): Promise<Figures> {
  const cells = job.rows * 10;
  rmSync(job.directory, { recursive: true, force: true });
  const values = new Values();
  const load = await open(job.directory);
  await fill(
    await load.createTable('bench', { families: { f: { maxVersions: 1 } } }),
    Math.ceil(cells / CELLS_A_ROW),
    (index) => {
      const mutation = new RowMutation(rowKey(index));
      for (const [i, value] of values.cells().entries()) mutation.set(`f:${cellName(i)}`, value);
      return mutation;
    },
  );
  await untilRest(new Stopwatch(), growth(load));
  const afterLoad = residentBytes();
  await pause(REST_MS);
  const atRest = residentBytes();
  await load.close();
  // memtables and block cache are what the settings say; what else is resident is the price of the data
  const database = await open(job.directory);
  await database.table('bench').get(rowKey(0));
  await untilRest(new Stopwatch(), growth(database));
  const reopened = residentBytes();
  await database.close();
  return {
    'resident MiB a minute after the load, caches and memtables included': atRest / MIB,
    'resident MiB as its compactions end': afterLoad / MIB,
    'resident MiB, reopened': reopened / MIB,
    cells,
  };
}

async function reopen(job: Job): Promise<Figures> {
  rmSync(job.directory, { recursive: true, force: true });
  const database = await open(job.directory);
  await fill(await database.createTable('bench', { families: { f: { maxVersions: 1 } } }), job.rows, oneValue());
  await untilRest(new Stopwatch(), growth(database));
  await database.close();
  const bytes = diskBytes(job.directory);
  const times = new Float64Array(5);
  for (let round = 0; round < times.length; round++) {
    const start = performance.now();
    const again = await open(job.directory);
    if (!(await again.table('bench').get(rowKey(round)))) throw new Error('a row is missing after reopening');
    times[round] = performance.now() - start;
    await again.close();
  }
  return {
    'ms from open to the answer of a first read (median of 5)': percentile(times, 0.5),
    'MiB on disk': bytes / MIB,
  };
}

async function writeAmplification(job: Job): Promise<Figures> {
  rmSync(job.directory, { recursive: true, force: true });
  const database = await open(job.directory);
  const table = await database.createTable('bench', { families: { f: { maxVersions: 1 } } });
  const stopwatch = new Stopwatch();
  await fill(table, job.rows, oneValue());
  const { writtenBytes } = await untilRest(stopwatch, growth(database));
  const counters = await database.counters();
  await database.close();
  const compactions = (kind: string): number => counters[`tablet.${kind}Compactions`] ?? 0;
  return {
    'bytes written a user byte': writtenBytes / userBytes(job),
    'minor compactions': compactions('minor'),
    'merging compactions': compactions('merging'),
    'major compactions': compactions('major'),
  };
}

/** Times of reads of random rows, in microseconds, one after the other, until `enough` says so. */
async function readTimes(table: Table, rows: number, enough: (count: number) => boolean): Promise<Float64Array> {
  const numbers = new Numbers(11);
  const times: number[] = [];
  while (!enough(times.length)) {
    const start = performance.now();
    if (!(await table.get(rowKey(numbers.below(rows))))) throw new Error('a row is missing');
    times.push((performance.now() - start) * 1000);
    // a reader that is always next would leave no other a turn
    await new Promise((resolve) => setImmediate(resolve));
  }
  return Float64Array.from(times);
}

/**
 * Reads one after the other, in a table at rest, and during a major compaction of all of it; and while as much again is
 * written over it.
 */
async function compactionLatency(job: Job): Promise<Figures> {
  rmSync(job.directory, { recursive: true, force: true });
  const database = await open(job.directory, { blockCacheBytes: 2 * job.rows * VALUE_BYTES });
  const table = await database.createTable('bench', { families: { f: { maxVersions: 1 } } });
  await fill(table, job.rows, oneValue());
  await untilRest(new Stopwatch(), growth(database));
  await readTimes(table, job.rows, (count) => count === SAMPLES);
  const idle = await readTimes(table, job.rows, (count) => count === SAMPLES);
  const during = async (work: Promise<void>): Promise<Float64Array> => {
    let isDone = false;
    const end = work.finally(() => (isDone = true));
    const times = await readTimes(table, job.rows, () => isDone);
    await end;
    return times;
  };
  const compacting = await during(database.compact('bench'));
  const writing = await during(fill(table, job.rows, oneValue()));
  await database.close();
  const [idleP99, compactingP99] = [percentile(idle, 0.99), percentile(compacting, 0.99)];
  return {
    'p99 while compacting / p99 at rest': compactingP99 / idleP99,
    'p99 at rest us': idleP99,
    'p99 while compacting us': compactingP99,
    'reads while compacting': compacting.length,
    'p99 under writes as well us': percentile(writing, 0.99),
  };
}

const CACHES_MIB = 64 + 64;

export const PARTS: Readonly<Record<string, Part>> = {
  memory: {
    what: 'memory of ten cells a row, at rest',
    target: { name: 'at most 300 MiB and the caches', most: 300 + CACHES_MIB },
    run: memory,
  },
  reopen: {
    what: 'reopening',
    target: { name: 'at most 1 s (of a gigabyte: --rows 1000000)', most: 1000 },
    run: reopen,
  },
  'write-amplification': {
    what: 'random load to rest',
    target: { name: 'at most 4 bytes to the disk a user byte', most: 4 },
    run: writeAmplification,
  },
  'compaction-latency': {
    what: 'reads while compactions run',
    target: { name: 'at most 3 times the p99 at rest', most: 3 },
    run: compactionLatency,
  },
};
