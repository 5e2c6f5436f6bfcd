/**
 * The soak: writers, each with rows of its own, scanners, some of which hold their scans for long, and a conductor who
 * flushes, compacts, splits and merges tablets, regroups families, changes rules, sets the clock forward, reopens the
 * database or cuts its power. Every row that is read is judged (record.ts).
 */
import { Code, toBigtableError } from '../../src/base/index.ts';
import type { OpenDatabase } from '../../src/boot/index.ts';
import { type Database, overService, type Row, type RowMutation, type Table } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { bytesOf, fill, mutationOf, plainCellsOf } from '../behaviour/plain-calls.ts';
import {
  byteOrder,
  changed,
  doubted,
  incremented,
  NO_CELLS,
  type PlainCell,
  type PlainRow,
  type Step,
} from '../behaviour/plain-row.ts';
import { assertWhole } from '../crash/whole.ts';
import { Barrier } from './barrier.ts';
import {
  COUNTERS,
  Draw,
  drawGroups,
  drawRule,
  drawSteps,
  FAMILIES,
  keysOf,
  PASSING_FAMILY,
  PLAIN,
  SPLITS,
  WRITERS,
} from './draw.ts';
import { Memory } from './memory.ts';
import { Difference, SoakRecord } from './record.ts';
import type { World } from './worlds.ts';

const TABLE = 'soak';
const SCANNERS = 3;
const LONG_SCANNERS = 2;
const CLOSE_PATIENCE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MAX_SPLITS = 8;
/** Most locality groups of the table. */
const GROUPS = 3;
const METADATA_TABLETS = 2;
const MERGED_FILES = 8;
const MAX_LOOKS = 20;

/** The power failed while the call was under way. */
class PowerLost extends Error {}

/** A write of unknown outcome: the contents that the row may have, given what a read shows. */
interface Unresolved {
  readonly key: string;
  readonly possible: (cells: readonly PlainCell[]) => readonly PlainRow[];
}

export interface SoakResult {
  readonly failure: string | undefined;
  readonly counts: Readonly<Record<string, number>>;
  readonly memory: Memory;
  readonly maxFiles: number;
}

export class Soak {
  readonly #world: World;
  readonly #seed: number;
  readonly #endMs: number;
  readonly #record: SoakRecord;
  readonly #barrier = new Barrier(WRITERS + SCANNERS);
  readonly #memory: Memory;
  readonly #counts: Record<string, number> = {};
  #opened!: OpenDatabase;
  #database!: Database;
  /** How to end the calls under way. */
  readonly #calls = new Set<() => void>();
  #background: Promise<void> = Promise.resolve();
  #failure: string | undefined;
  #isOver = false;
  #hasPower = true;
  #hasPassing = true;
  #maxFiles = 0;
  /** Rows at which tablets may have been split since the table was made. */
  readonly #splits = new Set<string>(SPLITS);

  constructor(world: World, seed: number, minutes: number) {
    this.#world = world;
    this.#seed = seed;
    this.#endMs = performance.now() + minutes * 60_000;
    const keys = Array.from({ length: WRITERS }, (_, writer) => keysOf(writer)).flat();
    this.#record = new SoakRecord(FAMILIES, keys, () => world.clock.nowMicros());
    this.#memory = new Memory(minutes * 60_000);
  }

  async run(): Promise<SoakResult> {
    await this.#world.run(this.#live(), () => this.#record.judged + (this.#counts['writes'] ?? 0));
    this.#counts['rows judged'] = this.#record.judged;
    return { failure: this.#failure, counts: this.#counts, memory: this.#memory, maxFiles: this.#maxFiles };
  }

  async #live(): Promise<void> {
    await this.#open();
    const families = Object.fromEntries(
      [...FAMILIES].map(([name, { gcRule, aggregate }]) => [
        name,
        { ...(gcRule && { gcRule }), ...(aggregate && { aggregate }) },
      ]),
    );
    await this.#database.createTable(TABLE, { families, splits: SPLITS });
    const actors = [
      ...Array.from({ length: WRITERS }, (_, writer) => this.#act((draw) => this.#write(writer, draw), writer)),
      ...Array.from({ length: SCANNERS }, (_, scanner) =>
        this.#act((draw) => this.#scan(scanner < LONG_SCANNERS, draw), WRITERS + scanner),
      ),
    ];
    await this.#conduct(new Draw(new SeededRandom(this.#seed * 100 + 99))).catch((error: unknown) => this.#fail(error));
    this.#isOver = true;
    this.#barrier.open();
    await Promise.all(actors);
    if (this.#failure === undefined) await this.#finish().catch((error: unknown) => this.#fail(error));
    await this.#close();
  }

  /** One actor: does one thing after another, until the end. */
  async #act(work: (draw: Draw) => Promise<void>, number: number): Promise<void> {
    const draw = new Draw(new SeededRandom(this.#seed * 100 + number));
    while (!this.#isOver && this.#failure === undefined) {
      await this.#barrier.pass();
      try {
        await work(draw);
      } catch (error) {
        if (!(error instanceof PowerLost)) this.#fail(error);
      }
      await this.#world.pause(number < WRITERS ? draw.number(8) : draw.number(300));
    }
    this.#barrier.leave();
  }

  #fail(error: unknown): void {
    this.#failure ??=
      error instanceof Difference
        ? error.message
        : error instanceof Error
          ? `${error.stack}${error.cause ? `\ncaused by ${(error.cause as Error).stack}` : ''}`
          : String(error);
    this.#isOver = true;
  }

  #count(what: string): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  get #table(): Table {
    return this.#database.table(TABLE);
  }

  /** A call of this incarnation. */
  #call<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const lose = (): void => reject(new PowerLost('the power failed'));
      this.#calls.add(lose);
      // the power may fail in the same instant in which an actor makes its next call
      if (!this.#hasPower) lose();
      work.finally(() => this.#calls.delete(lose)).then(resolve, reject);
    });
  }

  // writers

  async #write(writer: number, draw: Draw): Promise<void> {
    for (const unresolved of this.#unresolved.get(writer)?.splice(0) ?? []) await this.#resolve(writer, unresolved);
    const key = draw.one(keysOf(writer));
    const drawn = draw.number(100);
    if (drawn < 58) return this.#mutate(writer, [key], draw);
    if (drawn < 66)
      return this.#mutate(writer, [...new Set([key, ...keysOf(writer).filter(() => draw.chance(0.3))])], draw);
    if (drawn < 72) return this.#increment(writer, key, draw);
    if (drawn < 80) return this.#checkAndMutate(writer, key, draw);
    if (drawn < 81) return this.#dropRows(writer, draw);
    return this.#read(key);
  }

  readonly #unresolved = new Map<number, Unresolved[]>();

  /** Rows change together: `next` tells them once the call has succeeded. */
  async #change(
    writer: number,
    note: string,
    unresolved: readonly Unresolved[],
    work: () => Promise<(key: string) => PlainRow>,
  ): Promise<void> {
    for (const { key } of unresolved) this.#record.beginWrite(key, note);
    try {
      const next = await this.#call(work());
      this.#count('writes');
      for (const { key } of unresolved) this.#record.endWrite(key, next(key));
    } catch (error) {
      if (error instanceof PowerLost)
        this.#unresolved.set(writer, [...(this.#unresolved.get(writer) ?? []), ...unresolved]);
      throw error;
    }
  }

  async #mutate(writer: number, keys: readonly string[], draw: Draw): Promise<void> {
    const now = this.#world.clock.nowMicros();
    const steps = new Map(keys.map((key) => [key, drawSteps(draw, now, this.#hasPassing)]));
    const before = new Map(keys.map((key) => [key, this.#record.row(key)]));
    const next = (key: string): PlainRow =>
      changed(before.get(key) as PlainRow, steps.get(key) as Step[], this.#record.families, now);
    const unresolved = keys.map(
      (key): Unresolved => ({ key, possible: () => [before.get(key) as PlainRow, next(key)] }),
    );
    await this.#change(
      writer,
      keys.map((key) => describe(steps.get(key) as Step[])).join(' | '),
      unresolved,
      async () => {
        const mutations = keys.map((key) => mutationOf(key, steps.get(key) as Step[]));
        if (keys.length === 1) await this.#table.apply(mutations[0] as RowMutation);
        else await this.#table.applyAll(mutations);
        return next;
      },
    );
  }

  async #increment(writer: number, key: string, draw: Draw): Promise<void> {
    const before = this.#record.row(key);
    const amount = BigInt(draw.number(200) - 100);
    const at = (nowMicros: number): [PlainRow, bigint] =>
      incremented(before, this.#record.families, { family: COUNTERS, qualifier: 'a', amount, nowMicros });
    // what time the server gave it a read tells
    const possible = (cells: readonly PlainCell[]): PlainRow[] => {
      const found = cells.find(({ family }) => family === COUNTERS);
      return [before, ...(found ? [at(Number(found.timestamp))[0]] : [])];
    };
    await this.#change(writer, `increment by ${amount}`, [{ key, possible }], async () => {
      const [cell] = await this.#table.readModifyWrite(bytesOf(key), [
        { family: COUNTERS, qualifier: 'a', change: { kind: 'increment', amount: Number(amount) } },
      ]);
      const [row, value] = at(Number(cell?.timestamp ?? 0n));
      if (cell?.int !== value)
        throw new Difference(`row ${key}: an increment by ${amount} answered ${cell?.int}, not ${value}`);
      return () => row;
    });
  }

  async #checkAndMutate(writer: number, key: string, draw: Draw): Promise<void> {
    const now = this.#world.clock.nowMicros();
    const before = this.#record.row(key);
    const [thenSteps, otherwiseSteps] = [
      drawSteps(draw, now, this.#hasPassing),
      drawSteps(draw, now, this.#hasPassing),
    ];
    const isThere = (before.get(PLAIN)?.get('a')?.size ?? 0) > 0;
    const next = changed(before, isThere ? thenSteps : otherwiseSteps, this.#record.families, now);
    await this.#change(
      writer,
      `check ${PLAIN}:a, then ${describe(isThere ? thenSteps : otherwiseSteps)}`,
      [{ key, possible: () => [before, next] }],
      async () => {
        const found = await this.#table.checkAndMutate(
          bytesOf(key),
          { column: `${PLAIN}:a` },
          { then: (m) => fill(m, thenSteps), otherwise: (m) => fill(m, otherwiseSteps) },
        );
        if (found !== isThere)
          throw new Difference(`row ${key}: checkAndMutate of ${PLAIN}:a answered ${found}, not ${isThere}`);
        return () => next;
      },
    );
  }

  async #dropRows(writer: number, draw: Draw): Promise<void> {
    const keys = keysOf(writer);
    const from = draw.number(keys.length);
    const dropped = keys.slice(from, from + 1 + draw.number(15));
    const [start, end] = [dropped[0] as string, `${dropped.at(-1)}\x00`];
    const unresolved = dropped.map((key): Unresolved => {
      const before = this.#record.row(key);
      return { key, possible: () => [before, NO_CELLS] };
    });
    await this.#change(writer, `rows ${start} to ${end} are dropped`, unresolved, async () => {
      await this.#table.deleteRows({ start: bytesOf(start), end: bytesOf(end) });
      return () => NO_CELLS;
    });
  }

  /** The row as its own writer sees it, between two writes. */
  async #read(key: string): Promise<void> {
    const reading = this.#record.beginRead();
    try {
      const cells = cellsOfRow(await this.#call(this.#table.get(bytesOf(key), { versions: 'all' })));
      this.#count('reads');
      this.#record.judge(key, cells, reading, (difference) => this.#fail(difference));
      this.#record.learn(key, cells);
    } finally {
      this.#record.endRead(reading);
    }
  }

  /** Looks what became of a write after the power had failed. */
  async #resolve(writer: number, unresolved: Unresolved): Promise<void> {
    const { key } = unresolved;
    const reading = this.#record.beginRead();
    try {
      const cells = cellsOfRow(await this.#call(this.#table.get(bytesOf(key), { versions: 'all' })));
      const rows = unresolved.possible(cells);
      const possible = this.#record.possible(key, cells, reading, rows);
      if (possible.length === 0)
        throw new Difference(`after the power failed during a write:\n${this.#record.describe(key, cells, rows)}`);
      this.#record.endWrite(key, possible.at(-1) as PlainRow, `(power failed; ${possible.length} outcomes possible)`);
      // what differs is hidden by a rule, or is the same: the row begins anew
      if (possible.length > 1)
        await this.#change(writer, 'delete the row', [{ key, possible: () => [...possible, NO_CELLS] }], () =>
          this.#table.deleteRow(bytesOf(key)).then(() => () => NO_CELLS),
        );
    } catch (error) {
      if (error instanceof PowerLost && !this.#unresolved.get(writer)?.some((one) => one.key === key))
        this.#unresolved.set(writer, [...(this.#unresolved.get(writer) ?? []), unresolved]);
      throw error;
    } finally {
      this.#record.endRead(reading);
    }
  }

  // scanners

  async #scan(isLong: boolean, draw: Draw): Promise<void> {
    const reverse = draw.chance(0.5);
    const families = draw.chance(0.4)
      ? [...FAMILIES.keys()].filter((name) => name !== PASSING_FAMILY && draw.chance(0.3))
      : undefined;
    const keys = this.#record.keys().sort(byteOrder);
    const start = draw.chance(0.5) ? draw.number(keys.length) : 0;
    const range = keys.slice(start, draw.chance(0.5) ? start + 1 + draw.number(keys.length) : undefined);
    const left = reverse ? [...range].reverse() : range;
    const reading = this.#record.beginRead(families);
    const judge = (key: string, cells: readonly PlainCell[]): void =>
      this.#record.judge(key, cells, reading, (difference) => this.#fail(difference));
    const rows = this.#table.scan({
      start: bytesOf(range[0] as string),
      end: bytesOf(`${range.at(-1)}\x00`),
      versions: 'all',
      reverse,
      ...(families && { families }),
    });
    try {
      for (;;) {
        const { value: row, done } = await this.#call(rows.next());
        if (done || row === undefined) break;
        const key = row.key.toString('latin1');
        if (!left.includes(key))
          throw new Difference(
            `a ${reverse ? 'reverse ' : ''}scan from ${range[0]} to ${range.at(-1)} gives row ${key} where only ${left[0] ?? 'its end'} and what follows may come`,
          );
        while (left[0] !== key) judge(left.shift() as string, []);
        judge(left.shift() as string, plainCellsOf(row));
        if (isLong) await this.#world.pause(draw.chance(0.02) ? draw.number(3000) : draw.number(20));
        // after the pause: the power may have failed meanwhile
        if (this.#barrier.isClosed || this.#isOver) return void this.#count('scans left early');
      }
      for (const key of left) judge(key, []);
      this.#count('scans');
    } finally {
      this.#record.endRead(reading);
      rows.return?.().catch(() => {});
    }
  }

  // the conductor

  async #conduct(draw: Draw): Promise<void> {
    while (performance.now() < this.#endMs && !this.#isOver) {
      await this.#world.pause(20 + draw.number(100));
      this.#memory.sample(this.#counts['writes'] ?? 0);
      await this.#takeAction(draw.number(100), draw);
    }
  }

  async #takeAction(drawn: number, draw: Draw): Promise<void> {
    if (drawn < 34) return this.#inBackground('flushes', () => this.#opened.flush());
    if (drawn < 38) return this.#split(draw.one(this.#record.keys()));
    if (drawn < 42) return this.#merge(draw);
    if (drawn < 50) return this.#inBackground('compactions on demand', () => this.#opened.compact());
    if (drawn < 58) return this.#inBackground('changes of groups', () => this.#table.setGroups(drawGroups(draw)));
    if (drawn < 64) return this.#inBackground('sweeps', async () => void (await this.#opened.sweep()));
    if (drawn < 74) {
      this.#world.setForward(draw.number(2 * HOUR_MS));
      return this.#count('times the clock was set forward');
    }
    if (drawn < 80) return this.#quietly('changes of rules', () => this.#changeRule(draw));
    if (drawn < 84) return this.#quietly('families dropped or made', () => this.#changePassing());
    if (drawn < 90) return this.#quietly('reopenings', () => this.#reopen());
    if (drawn < 96 && this.#world.losePower !== undefined) return this.#losePower(this.#world.losePower);
    if (drawn >= 98) return this.#quietly('looks at rest', () => this.#lookAtRest());
  }

  async #split(key: string): Promise<void> {
    if (this.#splits.has(key) || this.#splits.size >= MAX_SPLITS) return;
    // also if no caller hears how it ended
    this.#splits.add(key);
    return this.#inBackground('splits', () => this.#opened.splitTablet(this.#table.fullName, key));
  }

  async #merge(draw: Draw): Promise<void> {
    if (this.#splits.size === 0) return;
    const key = draw.one([...this.#splits]);
    return this.#inBackground('merges', async () => {
      await this.#opened.mergeTablets(this.#table.fullName, key).catch((error: unknown) => {
        // the split did not come about, its power having failed
        if (toBigtableError(error).code !== Code.FAILED_PRECONDITION) throw error;
      });
      this.#splits.delete(key);
    });
  }

  /** One at a time, while everything goes on. */
  async #inBackground(what: string, work: () => Promise<void>): Promise<void> {
    await this.#background;
    this.#count(what);
    this.#background = this.#call(work()).catch((error: unknown) => {
      if (!(error instanceof PowerLost)) this.#fail(error);
    });
  }

  async #quietly(what: string, work: () => Promise<void>): Promise<void> {
    await this.#background;
    this.#barrier.close();
    await this.#barrier.allParked();
    if (this.#isOver) return;
    // a power failure may have left writers with something to find out, which needs the rows as they were
    if ([...this.#unresolved.values()].every((list) => list.length === 0)) {
      await work();
      this.#count(what);
    }
    this.#barrier.open();
  }

  async #changeRule(draw: Draw): Promise<void> {
    const { family, gcRule } = drawRule(draw);
    await this.#table.setGcRule(family, gcRule ?? 'never');
    this.#record.changeAll(
      (row) => doubted(row, this.#record.families, this.#world.clock.nowMicros()),
      `the rule of ${family} becomes ${JSON.stringify(gcRule)}`,
    );
    this.#record.families = new Map(this.#record.families).set(family, { gcRule });
  }

  async #changePassing(): Promise<void> {
    if (this.#hasPassing) await this.#table.deleteFamily(PASSING_FAMILY);
    else await this.#table.createFamily(PASSING_FAMILY);
    this.#hasPassing = !this.#hasPassing;
    this.#record.changeAll(
      (row) => new Map([...row].filter(([family]) => family !== PASSING_FAMILY)),
      `${PASSING_FAMILY} is dropped or made`,
    );
  }

  async #reopen(): Promise<void> {
    await this.#close();
    await this.#world.checkClosed();
    await this.#open();
  }

  async #losePower(losePower: () => void): Promise<void> {
    this.#barrier.close();
    this.#hasPower = false;
    losePower();
    for (const lose of this.#calls) lose();
    await this.#barrier.allParked();
    await this.#background;
    // what is left of it holds nothing but memory
    await Promise.race([this.#opened.close().catch(() => {}), this.#world.pause(CLOSE_PATIENCE_MS)]);
    await this.#open();
    this.#hasPower = true;
    this.#count('power failures');
    this.#barrier.open();
  }

  /**
   * Everything is merged and swept: nothing is damaged, nothing left over, few files are there, and each row is as it
   * should be.
   */
  async #lookAtRest(): Promise<void> {
    await this.#opened.flush();
    await this.#opened.compact();
    await this.#opened.sweep();
    await this.#untilWhole();
    const files = (await this.#opened.env.fileSystem.list('sstables/')).length;
    this.#maxFiles = Math.max(this.#maxFiles, files);
    // a file a group and tablet; METADATA's own tablets are written to by every compaction, and merged from so many
    // files on
    const most = (this.#splits.size + 1) * GROUPS + METADATA_TABLETS * MERGED_FILES;
    if (files > most) throw new Difference(`${files} SSTables are there at rest, ${most} at the most should be`);
    for (const key of this.#record.keys()) await this.#read(key);
  }

  /**
   * Work that is due by the clock goes on meanwhile: files are replaced while they are checked, and take a moment to
   * be deleted. What is damaged or left behind is found every time.
   */
  async #untilWhole(): Promise<void> {
    for (let look = 1; ; look++) {
      try {
        return await assertWhole(this.#opened, 'at rest');
      } catch (error) {
        if (look === MAX_LOOKS) throw error;
        await this.#world.pause(100);
        await this.#opened.sweep();
      }
    }
  }

  async #finish(): Promise<void> {
    for (const [writer, list] of this.#unresolved)
      for (const unresolved of list.splice(0)) await this.#resolve(writer, unresolved);
    await this.#background;
    await this.#lookAtRest();
    await this.#reopen();
    for (const key of this.#record.keys()) await this.#read(key);
  }

  async #open(): Promise<void> {
    this.#opened = await this.#world.open();
    this.#database = overService(this.#opened.service, this.#opened.env, this.#opened.close);
  }

  async #close(): Promise<void> {
    for (const [name, count] of Object.entries(this.#opened.env.metrics.snapshot()))
      if (/Compactions$/.test(name)) this.#counts[name] = (this.#counts[name] ?? 0) + count;
    await this.#database.close();
  }
}

function cellsOfRow(row: Row | undefined): PlainCell[] {
  return row === undefined ? [] : plainCellsOf(row);
}

function describe(steps: readonly Step[]): string {
  return steps
    .map((step) => {
      const { kind, ...rest } = step;
      const shown = Object.values(rest).map((part) =>
        typeof part === 'string' && part.length > 20 ? `${part.slice(0, 20)}…` : String(part),
      );
      return [kind, ...shown].join(' ');
    })
    .join(', ');
}
