/**
 * A consumer of a table's change stream, for tests: it reads all partitions up to now, follows splits and merges, and
 * may lose what it has read since its last checkpoint. After a failure it goes on where it was.
 */
import type { Mutation, RowRange } from '../src/model/index.ts';
import type { Service, StreamToken } from '../src/service/index.ts';
import { TABLES, type Tables } from './tables.ts';

export interface Change {
  readonly row: string;
  readonly mutations: readonly Mutation[];
  readonly origin: 'user' | 'garbageCollection';
}

export class ChangeConsumer {
  /** All that was read, in order; what was read again after a stop is there twice. */
  readonly changes: Change[] = [];
  /** Times that a partition was closed. */
  closed = 0;
  readonly #table: string;
  readonly #startMicros: number;
  readonly #timeoutMs: number;
  /** Where to go on: the tokens of the partitions. Undefined: they were not read yet. */
  #tokens: readonly StreamToken[] | undefined;

  /** `timeoutMs`: of the reading of a partition. */
  constructor(table: string, startMicros: number, { parent = TABLES, timeoutMs = 60_000 } = {}) {
    this.#table = parent + table;
    this.#startMicros = startMicros;
    this.#timeoutMs = timeoutMs;
  }

  /** Reads all changes that were made until now. `stopsAfter`: it stops after so many events, and keeps old tokens. */
  async catchUp(tables: Tables, stopsAfter = Number.POSITIVE_INFINITY): Promise<void> {
    const changes = tables.service.changes!;
    const endMicros = tables.env.clock.nowMicros();
    let left = stopsAfter;
    let open: readonly StreamToken[][] = this.#tokens
      ? joined(this.#tokens, [...(await changes.changeStreamRanges(tables.context(), this.#table))])
      : (await changes.changeStreamRanges(tables.context(), this.#table)).map((range) => [{ range, token: '' }]);
    const done: StreamToken[] = [];
    while (open.length > 0) {
      const pool: StreamToken[] = [];
      const wanted: RowRange[] = [];
      for (const [i, tokens] of open.entries()) {
        const range = { start: tokens[0]!.range.start, end: tokens.at(-1)!.range.end };
        let token: string | undefined;
        let isClosed = false;
        const from = tokens.some(({ token }) => token === '') ? { startMicros: this.#startMicros } : { tokens };
        const request = { table: this.#table, range, endMicros, heartbeatMs: 200, ...from };
        try {
          for await (const event of changes.readChanges(tables.context(this.#timeoutMs), request)) {
            if (event.kind === 'closed') {
              this.closed++;
              isClosed = true;
              pool.push(...event.tokens);
              wanted.push(...event.ranges);
              break;
            }
            if (left-- <= 0) return;
            token = event.token;
            if (event.kind === 'change') {
              const { row, mutations, origin } = event;
              this.changes.push({ row, mutations, origin });
            }
          }
        } catch (error) {
          const reached = token === undefined ? tokens : [{ range, token }];
          this.#tokens = [...done, ...pool, ...reached, ...open.slice(i + 1).flat()];
          throw error;
        }
        if (!isClosed) done.push(...(token === undefined ? tokens : [{ range, token }]));
      }
      // a partition that came of a merge is read when the streams of all its parts have ended
      open = joined([...pool, ...done.splice(0)], wanted).filter(
        (tokens) => tokens.some((one) => pool.includes(one)) || !done.push(...tokens),
      );
    }
    this.#tokens = done;
  }

  /** Makes the changes in another table. */
  static async replay(changes: readonly Change[], service: Service, tables: Tables, table: string): Promise<void> {
    for (const { row, mutations } of changes)
      await service.mutateRow(tables.context(), TABLES + table, { row, mutations });
  }
}

/** The tokens, those together that lie in one of the ranges. */
function joined(tokens: readonly StreamToken[], ranges: readonly RowRange[]): StreamToken[][] {
  const sorted = [...tokens].sort((a, b) => (a.range.start < b.range.start ? -1 : 1));
  const all: StreamToken[][] = [];
  for (const token of sorted) {
    const range = ranges.find((one) => contains(one, token.range));
    const last = all.at(-1);
    const isSame = range !== undefined && last !== undefined && contains(range, last[0]!.range);
    if (isSame) last.push(token);
    else all.push([token]);
  }
  return all;
}

function contains(range: RowRange, { start, end }: RowRange): boolean {
  return start >= range.start && (range.end === undefined || (end !== undefined && end <= range.end));
}
