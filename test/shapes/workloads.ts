/**
 * The workloads that a database meets in turn. They run in the judged process too, where no class of the product but
 * the bundle's may be: so they import types alone, and take the library as an argument.
 */
import type * as embedded from '../../src/embedded/index.ts';

export const WORKLOAD_NAMES = [
  'batch writes',
  'single writes',
  'single reads',
  'scans',
  'filtered scans',
  'multi-gets',
  'read-modify-writes',
  'check-and-mutates',
] as const;
export type WorkloadName = (typeof WORKLOAD_NAMES)[number];

/** About as many bytes as a memtable of 1 MiB may hold before it is flushed. */
const ROWS = 600;
const VALUE = 'value '.repeat(150);
const CONCURRENT_CALLS = 25;
const LARGE_CALLS = 5;
const ROWS_OF_A_CALL = 100;
const ROWS_OF_A_SCAN = 200;

const key = (n: number): string => `row ${String((n * 7919) % ROWS).padStart(6, '0')}`;
const keys = (count: number, from: number): string[] => Array.from({ length: count }, (_, i) => key(from + i));

async function concurrently(calls: number, call: (n: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < calls; from += CONCURRENT_CALLS)
    await Promise.all(Array.from({ length: CONCURRENT_CALLS }, (_, i) => call(from + i)));
}

async function inTurn(call: (n: number) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < LARGE_CALLS; n++) await call(n);
}

export class Workloads {
  readonly #library: Pick<typeof embedded, 'RowMutation'>;
  readonly #table: embedded.Table;

  private constructor(library: Pick<typeof embedded, 'RowMutation'>, table: embedded.Table) {
    this.#library = library;
    this.#table = table;
  }

  /** Makes the table, with rows in files and in the memtable. */
  static async begin(library: Pick<typeof embedded, 'RowMutation'>, database: embedded.Database): Promise<Workloads> {
    const workloads = new Workloads(library, await database.openTable('t', { families: { f: {} } }));
    await workloads.#writeRows(ROWS, 0);
    return workloads;
  }

  /** `calls`: the number of small calls, a multiple of 25; the number of large ones is fixed. */
  run(name: WorkloadName, calls: number): Promise<void> {
    const table = this.#table;
    switch (name) {
      case 'batch writes':
        return inTurn((n) => this.#writeRows(ROWS_OF_A_CALL, n));
      case 'single writes':
        return concurrently(calls, (n) => table.apply(this.#mutation(key(n))));
      case 'single reads':
        return concurrently(calls, (n) => table.get(key(n)));
      case 'scans':
        return inTurn(() => table.scan({ limit: ROWS_OF_A_SCAN }).toArray());
      case 'filtered scans':
        return inTurn((n) => table.scan(filteredBy(n)).toArray());
      case 'multi-gets':
        return inTurn((n) => table.getMany(keys(ROWS_OF_A_CALL, n)));
      case 'read-modify-writes':
        return concurrently(calls, (n) => table.increment(`counter ${n % 50}`, 'f:n'));
      case 'check-and-mutates':
        return concurrently(calls, (n) =>
          table.checkAndMutate(key(n), { column: 'f:a' }, { then: (row) => row.set('f:c', 'z') }),
        );
    }
  }

  #writeRows(count: number, from: number): Promise<void> {
    return this.#table.applyAll(keys(count, from).map((row) => this.#mutation(row)));
  }

  #mutation(row: string): embedded.RowMutation {
    return new this.#library.RowMutation(row).set('f:a', VALUE).set('f:b', 'y');
  }
}

function filteredBy(n: number): embedded.ScanOptions {
  const valueRegex = { kind: 'valueRegex', regex: 'va.*' } as const;
  const filters: embedded.RowFilter[] = [
    valueRegex,
    {
      kind: 'chain',
      filters: [
        { kind: 'familyNameRegex', regex: 'f' },
        { kind: 'cellsPerRowLimit', cells: 2 },
      ],
    },
    { kind: 'interleave', filters: [valueRegex, { kind: 'columnQualifierRegex', regex: 'b' }] },
    { kind: 'condition', predicate: valueRegex, whenTrue: { kind: 'stripValue' } },
    { kind: 'valueRange', start: { value: 'a', closed: true } },
  ];
  return { columnRegex: 'f:.*', versions: 1 + n, filter: filters[n]!, limit: ROWS_OF_A_SCAN };
}
