/**
 * The record that the soak keeps of its table: the contents of every row now, and since the oldest scan began that
 * still goes on. It judges each row that is read: it must be as the row was at some instant between the beginning of
 * the read and the row's arrival.
 *
 * Instants are numbers that grow with every begin and end of a write. A write that is under way may show or not; what
 * arrives meanwhile is judged when it has ended. After a loss of power the writer of the row reads it, to learn what
 * became of the write.
 */
import type { GcRule } from '../../src/embedded/index.ts';
import {
  cellsOf,
  describeCells,
  mayShow,
  NO_CELLS,
  type PlainCell,
  type PlainFamilies,
  type PlainRow,
  resolved,
} from '../behaviour/plain-row.ts';

/** Changes of a row that are kept for people to read. */
const TRACED = 12;

interface Held {
  readonly row: PlainRow;
  readonly from: number;
  until: number;
  readonly note: string;
}

interface KnownRow {
  held: Held[];
  /** The beginning of the write under way. */
  writing: { readonly from: number; readonly note: string } | undefined;
  /** Judgements that wait for its end. */
  readonly waiting: (() => void)[];
  trace: string[];
}

/** A read: open from its first call until its last row is judged. */
export interface Reading {
  readonly from: number;
  /** Those it asks for; undefined = all. */
  readonly families: readonly string[] | undefined;
  readonly nowMicros: number;
  unjudged: number;
  isOver: boolean;
}

export class Difference extends Error {}

export class SoakRecord {
  families: PlainFamilies;
  judged = 0;
  readonly #now: () => number;
  readonly #rows = new Map<string, KnownRow>();
  readonly #readings = new Set<Reading>();
  #instant = 0;

  constructor(families: PlainFamilies, keys: readonly string[], now: () => number) {
    this.families = families;
    this.#now = now;
    for (const key of keys) {
      this.#rows.set(key, {
        held: [{ row: NO_CELLS, from: 0, until: Number.POSITIVE_INFINITY, note: 'made' }],
        writing: undefined,
        waiting: [],
        trace: [],
      });
    }
  }

  keys(): string[] {
    return [...this.#rows.keys()];
  }

  /** The contents of the row, while no write to it is under way. */
  row(key: string): PlainRow {
    return (this.#known(key).held.at(-1) as Held).row;
  }

  beginWrite(key: string, note: string): void {
    this.#known(key).writing = { from: ++this.#instant, note };
  }

  /** It happened (or did not: then `row` is what was there before). */
  endWrite(key: string, row: PlainRow, outcome = ''): void {
    const known = this.#known(key);
    const { from, note } = known.writing ?? { from: ++this.#instant, note: outcome };
    known.writing = undefined;
    this.#hold(known, row, from, `${note} ${outcome}`.trim());
    for (const judge of known.waiting.splice(0)) judge();
  }

  beginRead(families?: readonly string[]): Reading {
    const reading: Reading = { from: this.#instant, families, nowMicros: this.#now(), unjudged: 0, isOver: false };
    this.#readings.add(reading);
    return reading;
  }

  endRead(reading: Reading): void {
    reading.isOver = true;
    if (reading.unjudged === 0) this.#readings.delete(reading);
  }

  /**
   * Judges the row as it arrived now; no cells: it did not. Throws a Difference, `onDifference` gets one that is found
   * later.
   */
  judge(
    key: string,
    cells: readonly PlainCell[],
    reading: Reading,
    onDifference: (difference: Difference) => void,
  ): void {
    const known = this.#known(key);
    const until = this.#instant;
    const nowMicros = this.#now();
    const judge = (): void => {
      this.judged++;
      const held = known.held.filter((one) => one.from <= until && one.until >= reading.from);
      const isRight = held.some(({ row: whole }) => {
        const row = part(whole, reading.families);
        return this.#instants(row, reading.nowMicros, nowMicros).some((now) =>
          mayShow(key, row, cells, this.families, now),
        );
      });
      if (!isRight) throw new Difference(this.#describe(key, cells, reading, until, held));
    };
    if (known.writing === undefined) return judge();
    reading.unjudged++;
    known.waiting.push(() => {
      try {
        judge();
      } catch (error) {
        onDifference(error as Difference);
      }
      reading.unjudged--;
      if (reading.isOver && reading.unjudged === 0) this.#readings.delete(reading);
    });
  }

  /** The row's own writer has read it, writing nothing meanwhile. */
  learn(key: string, cells: readonly PlainCell[]): void {
    const row = this.row(key);
    const now = this.#now();
    const left = resolved(row, cells, this.families, now);
    // only where that explains what was read: another "now" may
    if (mayShow(key, left, cells, this.families, now)) this.#replace(key, left, 'read');
  }

  /** Which of these contents the read, which ended now, may have shown. */
  possible(key: string, cells: readonly PlainCell[], reading: Reading, rows: readonly PlainRow[]): PlainRow[] {
    return rows.filter((row) =>
      this.#instants(row, reading.nowMicros, this.#now()).some((now) => mayShow(key, row, cells, this.families, now)),
    );
  }

  /** All rows at once, nothing being read or written. */
  changeAll(change: (row: PlainRow) => PlainRow, note: string): void {
    for (const key of this.#rows.keys()) this.#replace(key, change(this.row(key)), note);
  }

  describe(key: string, cells: readonly PlainCell[], rows: readonly PlainRow[]): string {
    const held = rows.map((row) => ({ row, from: 0, until: Number.POSITIVE_INFINITY, note: '' }));
    return this.#describe(
      key,
      cells,
      { from: 0, families: undefined, nowMicros: this.#now(), unjudged: 0, isOver: true },
      this.#instant,
      held,
    );
  }

  #known(key: string): KnownRow {
    const known = this.#rows.get(key);
    if (known === undefined) throw new Difference(`row ${JSON.stringify(key)} was never written`);
    return known;
  }

  #replace(key: string, row: PlainRow, note: string): void {
    this.#hold(this.#known(key), row, ++this.#instant, note);
  }

  #hold(known: KnownRow, row: PlainRow, from: number, note: string): void {
    const until = ++this.#instant;
    (known.held.at(-1) as Held).until = until;
    const oldest = Math.min(until, ...[...this.#readings].map((reading) => reading.from));
    known.held = known.held.filter((one) => one.until >= oldest);
    known.held.push({ row, from, until: Number.POSITIVE_INFINITY, note });
    known.trace = [...known.trace.slice(1 - TRACED), `${from} to ${until}: ${note}`];
  }

  /** Between two times a row looks different from those on at which a version grows too old. */
  #instants(row: PlainRow, fromMicros: number, toMicros: number): number[] {
    const instants = [fromMicros];
    if (toMicros === fromMicros) return instants;
    instants.push(toMicros);
    for (const [family, columns] of row) {
      for (const ageMicros of agesOf(this.families.get(family)?.gcRule)) {
        for (const versions of columns.values()) {
          for (const timestamp of versions.keys()) {
            const hiddenFrom = Number(timestamp) + ageMicros + 1;
            if (hiddenFrom > fromMicros && hiddenFrom < toMicros) instants.push(hiddenFrom);
          }
        }
      }
    }
    return instants;
  }

  #describe(key: string, cells: readonly PlainCell[], reading: Reading, until: number, held: readonly Held[]): string {
    const now = this.#now();
    const allowed = held.map(
      ({ row, from, until: to }) =>
        `  ${from} to ${to}: ${describeCells(cellsOf(key, part(row, reading.families), this.families, now))}`,
    );
    return [
      `row ${JSON.stringify(key)}, read between ${reading.from} and ${until}, at real time ${reading.nowMicros} to ${now}, shows`,
      `  ${describeCells(cells)}`,
      'and held',
      ...allowed,
      'its last changes were',
      ...this.#known(key).trace.map((line) => `  ${line}`),
    ].join('\n');
  }
}

function part(row: PlainRow, families: readonly string[] | undefined): PlainRow {
  return families === undefined ? row : new Map([...row].filter(([family]) => families.includes(family)));
}

function agesOf(rule: GcRule | undefined): number[] {
  if (rule === undefined || rule.kind === 'maxVersions') return [];
  return rule.kind === 'maxAge' ? [rule.ageMicros] : rule.rules.flatMap(agesOf);
}
