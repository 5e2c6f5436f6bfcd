/** Faults that break linearizability, as changes of the text of modules. None of them trips an assert. */
export interface PlantedFault {
  readonly title: string;
  readonly changes: readonly TextChange[];
}

interface TextChange {
  /** Path of the module in src, without its extension. */
  readonly module: string;
  /** Occurs in it once. */
  readonly text: string;
  /** What stands there instead. */
  readonly wrong: string;
}

const APPEND = 'const position = await this.#writer.append(parts, { reserved });';
/** Every append takes some milliseconds, as on a slow disk. */
const SLOW = 'await new Promise((resolve) => setTimeout(resolve, 4));';
const FIRST_CHANGES =
  '({ row, mutations }) => ({ row, mutations: Array.isArray(mutations) ? mutations.slice(0, 1) : mutations })';

export const FAULTS: readonly PlantedFault[] = [
  {
    title: 'a write is acknowledged before its append is durable',
    changes: [
      {
        module: 'commitlog/server-log',
        text: APPEND,
        wrong: `batch.resolve(this.#lastPosition + 1); ${SLOW} ${APPEND}`,
      },
    ],
  },
  {
    title: 'a read sees a write before its append is durable',
    changes: [
      { module: 'commitlog/server-log', text: APPEND, wrong: `${SLOW} ${APPEND}` },
      { module: 'tablet/write/tablet-writer', text: 'this.#applyAll(batch.records);', wrong: '' },
      {
        module: 'tablet/write/tablet-writer',
        text: 'batch.records.push({ change, sequence, lock, hotRow, applying: undefined });',
        wrong:
          'batch.records.push({ change, sequence, lock, hotRow, applying: undefined }); this.#applyAll(batch.records.slice(-1));',
      },
    ],
  },
  {
    title: 'a transaction does not see the pending one before it',
    changes: [
      { module: 'tablet/write/transaction-reads', text: 'this.#pending.layersOf(need.row)', wrong: 'undefined' },
    ],
  },
  {
    title: 'an entry of a batch on a hot row is acknowledged and not written',
    changes: [
      {
        module: 'tablet/write/row-writes',
        text: 'outcomeOf(this.mutateRow(context, row, mutations, idempotency), [i]);',
        wrong: ';',
      },
    ],
  },
  {
    title: 'a recovery loses the last record of a tablet',
    changes: [
      {
        module: 'tabletserver/log-replay',
        text: 'return await use(recordsInRange(found, range));',
        wrong: "if (tableId >= '00000010') found.pop(); return await use(recordsInRange(found, range));",
      },
    ],
  },
  {
    title: 'a recovery applies the first change of a row alone',
    changes: [
      {
        module: 'tablet/write/tablet-writer',
        text: 'return this.#apply(record, { epoch, sequence });',
        wrong: `const { body } = record; return this.#apply({ ...record, body: body.kind === 'rows' ? { ...body, rows: body.rows.map(${FIRST_CHANGES}) } : body }, { epoch, sequence });`,
      },
    ],
  },
];
