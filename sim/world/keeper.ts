/**
 * A client that keeps what others lose: it backs tables up and restores them, deletes tables and undeletes them, and
 * follows the change stream of one of them, while it writes to all of them. Only some runs have it: they are drawn by
 * themselves, so that the others are what they were without it.
 */
import { unavailable } from '../../src/base/index.ts';
import { type BackupOptions, BigtableError, type Database, type Row, RowMutation } from '../../src/embedded/index.ts';
import { type Random, sleep } from '../../src/env/index.ts';
import { DEFAULT_CLUSTER, DEFAULT_PARENT, rangeContains } from '../../src/model/index.ts';
import { lastDay } from '../../src/service/index.ts';
import { ChangeConsumer } from '../../test/change-consumer.ts';
import { outcomeOf } from '../../test/linearizability/calls.ts';
import { Tables } from '../../test/tables.ts';
import type { ClientSeat } from './cluster.ts';
import { failureOf, TRY_AGAIN_MS, untilAnswered } from './failure-of.ts';
import { FAILURES, type Verdicts } from './verdicts.ts';
import { type Acknowledged, COLUMNS, FAMILIES, type Found, numbersIn, VersionedTable } from './versioned-table.ts';

const CALL_MS = 8000;
const MAX_THINK_MS = 1500;
const MAX_WRITE_THINK_MS = 300;
/** The share of writes that delete their row. */
const DELETED_SHARE = 0.15;
/** The share of writes that delete a range of rows. */
const DROPPED_SHARE = 0.03;
const ROWS = ['a1', 'a2', 'f1', 'k1', 'k2', 'm1', 't1', 't2', 'z1'];
const SPLITS = ['k', 't'];
const MIDDLE = 'k';
/** Beyond that one of them goes. */
const MAX_TABLES = 4;
const MAX_BACKUPS = 4;
/** The consumer of the stream waits that long, at most, before it reads what is new. */
const MAX_PAUSE_MS = 6000;
/** It may stop after that many changes, and begins again where it was before. */
const MAX_STOP = 40;
const STREAM_CALL_MS = 8000;
/** Clocks may be off: changes since the table was created are not older than this. */
const BEFORE_MICROS = 600_000_000;
const DAY_MICROS = 86_400_000_000;
const STREAMED = 'streamed';

export interface KeeperParts {
  readonly random: Random;
  readonly seat: ClientSeat;
  readonly database: Database;
  readonly verdicts: Verdicts;
  readonly nowMs: () => number;
  /** A deleted table is kept that long. */
  readonly keepDeletedMs: number;
  /** False: clocks were set wrong, so nobody knows how long that is. */
  readonly clocksAreRight: () => boolean;
  /** True: logs keep few bytes for change streams, so their consumers may come too late. */
  readonly keepsFewChanges: boolean;
}

interface KnownBackup {
  readonly name: string;
  readonly source: VersionedTable;
  /** As it was when the backup was begun. */
  readonly acknowledged: Acknowledged;
  /** The last write that had begun when it was answered. */
  readonly last: number;
}

export class Keeper {
  readonly counts = { backups: 0, backupCopies: 0, restores: 0, keptTables: 0, undeletes: 0, streamReads: 0 };
  readonly #parts: KeeperParts;
  readonly #tables: VersionedTable[] = [];
  #backups: KnownBackup[] = [];
  readonly #stream: ChangeConsumer;
  #streamed: VersionedTable | undefined;
  /** True: the consumer came too late. */
  #isTooLate = false;
  #names = 0;
  #writes = 0;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    const startMicros = parts.seat.process.clock.nowMicros() - BEFORE_MICROS;
    this.#stream = new ChangeConsumer(STREAMED, startMicros, {
      parent: `${DEFAULT_PARENT}/tables/`,
      timeoutMs: STREAM_CALL_MS,
    });
  }

  async work(untilMs: number): Promise<void> {
    const isOver = (): boolean => this.#parts.nowMs() >= untilMs;
    await Promise.all([this.#act(isOver), this.#write(isOver), this.#follow(isOver)]);
  }

  async #act(isOver: () => boolean): Promise<void> {
    await this.#createStreamed(isOver);
    while (!isOver()) {
      await this.#step(isOver);
      await this.#readOne();
      await this.#pause(this.#parts.random.float() * MAX_THINK_MS);
    }
  }

  async #step(isOver: () => boolean): Promise<void> {
    const table = this.#oneOf(this.#tables.filter(({ isLive }) => isLive));
    const backup = this.#oneOf(this.#backups);
    const what = this.#parts.random.float();
    if (table === undefined || (what < 0.1 && this.#tables.length < MAX_TABLES)) return this.#create();
    if (what < 0.35) return this.#backUp(table);
    if (what < 0.55 && backup !== undefined) return this.#restore(backup, isOver);
    if (what < 0.6 && backup !== undefined) return this.#copy(backup);
    if (what < 0.65 && backup !== undefined) return void (await this.#deleteBackup(backup, isOver));
    if (what < 0.85) return this.#deleteAndUndelete(table, isOver);
    if (what < 0.88 && table !== this.#streamed) return this.#deleteForEver(table, isOver);
    if (what < 0.94) return this.#ask(backup);
    await this.#divide(table);
  }

  /** Calls that are asked now and then: what they name exists. */
  async #ask(backup: KnownBackup | undefined): Promise<void> {
    const { database, random, seat } = this.#parts;
    const streamed = `${DEFAULT_PARENT}/tables/${STREAMED}`;
    const context = new Tables(seat.env, seat.client).context(CALL_MS);
    const calls: readonly (readonly [what: string, call: () => Promise<unknown>, table?: VersionedTable])[] = [
      ['the list of backups', () => database.listBackups(this.#options())],
      ['the list of deleted tables', () => database.listDeletedTables(this.#options())],
      ...(backup === undefined ? [] : [['a backup', () => database.getBackup(backup.name, this.#options())] as const]),
      ...(backup === undefined
        ? []
        : [
            [
              'two changes of a backup',
              () => Promise.all([1, 2].map(() => database.updateBackup(backup.name, this.#laterExpiry()))),
            ] as const,
          ]),
      [
        'hot tablets',
        () =>
          seat.client.hotTablets.listHotTablets(
            context,
            `${DEFAULT_PARENT}/clusters/${DEFAULT_CLUSTER}`,
            lastDay(seat.env.clock.nowMicros()),
          ),
      ],
      ...(this.#streamed === undefined
        ? []
        : [
            [
              'a change of the retention',
              () =>
                seat.client.updateTable(context, streamed, {
                  changeStream: { retentionMicros: (1 + Math.floor(random.float() * 7)) * DAY_MICROS },
                }),
              this.#streamed,
            ] as const,
          ]),
    ];
    const [what, call, table] = this.#oneOf(calls)!;
    const deletions = table?.deletions;
    const failure = await failureOf(call);
    if (failure !== undefined && deletions === table?.deletions) this.#judgeFailure(what, failure, table);
  }

  #laterExpiry(): { readonly expires: Date; readonly timeoutMs: number } {
    return { expires: this.#inDays(10), ...this.#options() };
  }

  #inDays(days: number): Date {
    return new Date((this.#parts.seat.process.clock.nowMicros() + days * DAY_MICROS) / 1000);
  }

  async #divide({ name }: VersionedTable): Promise<void> {
    const { database, random } = this.#parts;
    const row = this.#oneOf(['c', 'k', 'm', 't'])!;
    const what = random.float();
    await failureOf(() => {
      if (what < 0.4) return database.split(name, row, this.#options());
      if (what < 0.8) return database.merge(name, row, this.#options());
      return database.compact(name, this.#options());
    });
  }

  /** Until it is there: all else goes on meanwhile. */
  async #createStreamed(isOver: () => boolean): Promise<void> {
    const { seat } = this.#parts;
    const tables = new Tables(seat.env, seat.client);
    const created = await this.#untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      seat.client.createTable(tables.context(CALL_MS), {
        name: `${DEFAULT_PARENT}/tables/${STREAMED}`,
        families: FAMILIES.map((name) => ({ name })),
        splits: ['m'],
        granularity: 'micros',
        deletionProtection: false,
        changeStream: { retentionMicros: DAY_MICROS },
      }),
    );
    if (created !== 'done') return;
    this.#streamed = new VersionedTable(STREAMED);
    this.#tables.push(this.#streamed);
  }

  async #create(): Promise<void> {
    const name = `kept-${this.#names++}`;
    const options = { families: Object.fromEntries(FAMILIES.map((family) => [family, {}])), splits: SPLITS };
    const failure = await failureOf(() => this.#parts.database.createTable(name, { ...options, ...this.#options() }));
    if (failure === undefined) this.#tables.push(new VersionedTable(name));
  }

  async #backUp(table: VersionedTable): Promise<void> {
    const { database } = this.#parts;
    const name = `backup-${this.#names++}`;
    const acknowledged = table.acknowledged();
    const [failure] = await Promise.all([
      failureOf(() => database.createBackup(table.name, name, this.#drawBackup())),
      // one that is not finished is not changed
      this.#parts.random.float() < 0.2 && failureOf(() => database.updateBackup(name, this.#laterExpiry())),
    ]);
    if (failure !== undefined) {
      this.#judgeFailure(`the backup of table ${table.name}`, failure, table);
      // it may have come about, and may yet
      let isReady = false;
      await failureOf(async () => (isReady = (await database.getBackup(name, this.#options())).state === 'ready'));
      if (!isReady) return;
    }
    this.counts.backups++;
    this.#backups.push({ name, source: table, acknowledged, last: this.#writes });
    if (this.#backups.length > MAX_BACKUPS) await this.#deleteBackup(this.#backups[0]!, () => true);
  }

  /** Some are hot ones. */
  #drawBackup(): BackupOptions {
    if (this.#parts.random.float() < 0.6) return this.#options();
    return { kind: 'hot', hotToStandard: this.#inDays(2), ...this.#options() };
  }

  async #copy(backup: KnownBackup): Promise<void> {
    const name = `backup-${this.#names++}`;
    const failure = await failureOf(() => this.#parts.database.copyBackup(backup.name, name, this.#options()));
    if (failure !== undefined) return this.#judgeFailure(`a copy of backup ${backup.name}`, failure);
    this.counts.backupCopies++;
    this.#backups.push({ ...backup, name });
  }

  /** True when it is surely gone. */
  async #deleteBackup(backup: KnownBackup, isOver: () => boolean): Promise<boolean> {
    const { database } = this.#parts;
    this.#backups = this.#backups.filter((each) => each !== backup);
    const outcome = await this.#untilAnswered(isOver, 'NOT_FOUND', () =>
      database.deleteBackup(backup.name, this.#options()),
    );
    if (outcome !== 'done') return false;
    const failure = await failureOf(() => database.restoreTable(backup.name, 'absent', this.#options()));
    if (failure === undefined || (failure.codeName !== 'NOT_FOUND' && !FAILURES.has(failure.codeName)))
      this.#found(`backup ${backup.name} was deleted, and a restoration is answered with ${failure?.message ?? 'OK'}`);
    return true;
  }

  async #restore(backup: KnownBackup, isOver: () => boolean): Promise<void> {
    const name = `kept-${this.#names++}`;
    const outcome = await this.#untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      this.#parts.database.restoreTable(backup.name, name, this.#options()),
    );
    if (outcome === 'unknown') return;
    if (outcome instanceof BigtableError)
      return this.#found(`a restoration of backup ${backup.name}: ${outcome.message}`);
    let found: Found | undefined;
    while (found === undefined) {
      const read = await this.#read(name);
      if (!(read instanceof BigtableError)) found = read;
      else if (isOver()) return;
      else await this.#pause(TRY_AGAIN_MS);
    }
    const wrong = backup.source.judge(found, backup.acknowledged, backup.last);
    if (wrong !== undefined) return this.#found(`table ${name}, restored from backup ${backup.name}: ${wrong}`);
    this.counts.restores++;
    const table = new VersionedTable(name);
    table.begins(found);
    this.#tables.push(table);
    const restored = this.#tables.filter((each) => each.isLive && each !== this.#streamed);
    if (restored.length > MAX_TABLES) await this.#deleteForEver(restored[0]!, isOver);
  }

  async #deleteAndUndelete(table: VersionedTable, isOver: () => boolean): Promise<void> {
    const { database, random, nowMs, keepDeletedMs, clocksAreRight } = this.#parts;
    const begunMs = nowMs();
    this.#isDeleted(table);
    let attempts = 0;
    const deleted = await this.#untilAnswered(isOver, 'NOT_FOUND', () => {
      attempts++;
      return database.deleteTable(table.name, this.#options());
    });
    if (deleted !== 'done') return;
    this.counts.keptTables++;
    table.mayGo ||= attempts > 1;
    await this.#pause(random.float() ** 2 * 3000);
    const undeletedMs = nowMs();
    const undeleted = await this.#untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      database.undeleteTable(table.name, this.#options()),
    );
    if (undeleted === 'unknown') return;
    if (undeleted instanceof BigtableError) {
      const mayBeGone = !clocksAreRight() || nowMs() - begunMs > keepDeletedMs / 2;
      if (undeleted.codeName !== 'NOT_FOUND' || !mayBeGone)
        this.#found(
          `table ${table.name} is not undeleted ${undeletedMs - begunMs} ms after its deletion: ${undeleted.message}`,
        );
      return;
    }
    this.counts.undeletes++;
    table.isLive = true;
    await this.#readTable(table);
  }

  /** It does not come back. */
  async #deleteForEver(table: VersionedTable, isOver: () => boolean): Promise<void> {
    const { database } = this.#parts;
    this.#isDeleted(table);
    const deleted = await this.#untilAnswered(isOver, 'NOT_FOUND', () =>
      database.deleteTable(table.name, { atOnce: true, ...this.#options() }),
    );
    if (deleted !== 'done') return;
    const failure = await failureOf(() => database.undeleteTable(table.name, this.#options()));
    if (failure === undefined || (failure.codeName !== 'NOT_FOUND' && !FAILURES.has(failure.codeName)))
      this.#found(
        `table ${table.name} was deleted for ever, and its undeletion is answered with ${failure?.message ?? 'OK'}`,
      );
  }

  #isDeleted(table: VersionedTable): void {
    table.isLive = false;
    table.deletions++;
  }

  async #write(isOver: () => boolean): Promise<void> {
    const { random } = this.#parts;
    while (!isOver()) {
      const table = this.#oneOf(this.#tables.filter(({ isLive }) => isLive));
      const what = random.float();
      if (table !== undefined && what < DROPPED_SHARE) await this.#dropRows(table);
      else if (table !== undefined) await this.#writeTo(table, this.#oneOf(ROWS)!, what < DELETED_SHARE);
      await this.#pause(random.float() * MAX_WRITE_THINK_MS);
    }
  }

  async #writeTo(table: VersionedTable, row: string, isDeletion: boolean): Promise<void> {
    const number = ++this.#writes;
    const { deletions } = table;
    table.begin(row, number, isDeletion);
    const mutation = new RowMutation(row);
    for (const column of COLUMNS) mutation.set(column, String(number));
    const handle = this.#parts.database.table(table.name);
    const failure = await failureOf(() =>
      isDeletion ? handle.deleteRow(row, this.#options()) : handle.apply(mutation, this.#options()),
    );
    if (failure === undefined) return table.wrote(number);
    if (outcomeOf(failure).kind === 'unknown') table.mayHaveWritten(number);
    if (deletions === table.deletions) this.#judgeFailure(`a write to table ${table.name}`, failure, table);
  }

  /** Half of the rows are deleted by one call. */
  async #dropRows(table: VersionedTable): Promise<void> {
    const isLower = this.#parts.random.float() < 0.5;
    const bounds = isLower ? { end: MIDDLE } : { start: MIDDLE };
    const { deletions } = table;
    const numbers = ROWS.filter((row) => row < MIDDLE === isLower).map((row) => {
      table.begin(row, ++this.#writes, true);
      return this.#writes;
    });
    const handle = this.#parts.database.table(table.name);
    const failure = await failureOf(() => handle.deleteRows(bounds, this.#options()));
    if (failure === undefined) for (const number of numbers) table.wrote(number);
    // some of its tablets may have done it
    else for (const number of numbers) table.mayHaveWritten(number);
    if (failure !== undefined && deletions === table.deletions)
      this.#judgeFailure(`a deletion of rows of table ${table.name}`, failure, table);
  }

  async #readOne(): Promise<void> {
    const table = this.#oneOf(this.#tables.filter(({ isLive }) => isLive));
    if (table !== undefined) await this.#readTable(table);
  }

  /** Returns the failure of the read; undefined if it was answered. */
  async #readTable(table: VersionedTable): Promise<BigtableError | undefined> {
    const acknowledged = table.acknowledged();
    const read = await this.#read(table.name);
    if (read instanceof BigtableError) {
      this.#judgeFailure(`a scan of table ${table.name}`, read, table);
      return read;
    }
    const wrong = table.judge(read, acknowledged, this.#writes);
    if (wrong !== undefined) this.#found(wrong);
    return undefined;
  }

  async #read(name: string): Promise<Found | BigtableError> {
    const rows: Row[] = [];
    const failure = await failureOf(async () => {
      for await (const row of this.#parts.database.table(name).scan(this.#options())) rows.push(row);
    });
    return failure ?? numbersIn(rows, (what) => this.#found(`${what}, in table ${name}`));
  }

  /** A consumer of the change stream, which stops now and then and goes on from what it kept. */
  async #follow(isOver: () => boolean): Promise<void> {
    const { random } = this.#parts;
    while (!isOver()) {
      await this.#pause(random.float() * MAX_PAUSE_MS);
      const stopsAfter = random.float() < 0.3 ? Math.floor(random.float() * MAX_STOP) : undefined;
      if (this.#streamed?.isLive && !this.#isTooLate) await this.#catchUp(stopsAfter);
      if (this.#streamed?.isLive && random.float() < 0.3) await this.#glance(this.#streamed);
    }
  }

  async #catchUp(stopsAfter?: number): Promise<BigtableError | undefined> {
    const { seat } = this.#parts;
    const table = this.#streamed!;
    const { deletions } = table;
    this.counts.streamReads++;
    const failure = await failureOf(() => this.#stream.catchUp(new Tables(seat.env, seat.client), stopsAfter));
    if (failure?.codeName === 'OUT_OF_RANGE' && this.#parts.keepsFewChanges) this.#isTooLate = true;
    else if (failure !== undefined && deletions === table.deletions)
      this.#judgeFailure('the change stream', failure, table);
    return failure;
  }

  /** Reads the changes of some rows, of some time. */
  async #glance(table: VersionedTable): Promise<void> {
    const { seat, random } = this.#parts;
    const nowMicros = seat.process.clock.nowMicros();
    const startMicros = nowMicros - Math.floor(random.float() * BEFORE_MICROS * 0.05);
    const endMicros = nowMicros - Math.floor(random.float() * (nowMicros - startMicros));
    const range = { start: this.#oneOf(['', 'f', 'm']), end: this.#oneOf(['n', 't', undefined]) };
    const request = { table: `${DEFAULT_PARENT}/tables/${STREAMED}`, range, startMicros, endMicros, heartbeatMs: 200 };
    const context = new Tables(seat.env, seat.client).context(STREAM_CALL_MS);
    const { deletions } = table;
    const failure = await failureOf(async () => {
      for await (const event of seat.client.changes.readChanges(context, request)) {
        if (event.kind !== 'change') continue;
        const isAsked =
          rangeContains(range, event.row) && event.commitMicros >= startMicros && event.commitMicros <= endMicros;
        if (!isAsked) this.#found(`a change of row ${event.row} at ${event.commitMicros} was not asked for`);
      }
    });
    const isExplained = failure?.codeName === 'OUT_OF_RANGE' && this.#parts.keepsFewChanges;
    if (failure !== undefined && !isExplained && deletions === table.deletions)
      this.#judgeFailure('a part of the change stream', failure, table);
  }

  /**
   * All that was acknowledged is read, and the changes of the stream make the table. Returns what was not answered;
   * undefined if all was.
   */
  async readAll(): Promise<string | undefined> {
    for (const table of this.#tables.filter(({ isLive }) => isLive)) {
      const failure = await this.#readTable(table);
      if (failure !== undefined) return failure.message;
    }
    return this.#streamed?.isLive ? this.#compareStream() : undefined;
  }

  async #compareStream(): Promise<string | undefined> {
    const failure = await this.#catchUp();
    if (this.#isTooLate) return undefined;
    if (failure !== undefined) return failure.message;
    const read = await this.#read(STREAMED);
    if (read instanceof BigtableError) return read.message;
    const made = new Map<string, Map<string, string>>();
    for (const { row, mutations } of this.#stream.changes)
      for (const mutation of mutations) {
        const cells = made.get(row) ?? new Map<string, string>();
        made.set(row, cells);
        if (mutation.kind === 'deleteFromRow') cells.clear();
        else if (mutation.kind === 'setCell') cells.set(mutation.family, Buffer.from(mutation.value).toString());
        else this.#found(`the change stream has a mutation that nobody made: ${mutation.kind}`);
      }
    for (const row of ROWS) {
      const inTable = read.get(row);
      const ofStream = FAMILIES.map((family) => made.get(row)?.get(family));
      if (ofStream.some((value) => value !== (inTable === undefined ? undefined : String(inTable))))
        return `row ${row} of the streamed table is ${inTable}, and ${ofStream.join(', ')} by its changes`;
    }
    return undefined;
  }

  /** The last backup is restored; then all of them are deleted, and some tables. Fails while that is not done. */
  async close(): Promise<void> {
    const backup = this.#backups.at(-1);
    const isOver = (): boolean => true;
    if (backup !== undefined) {
      const restored = this.counts.restores;
      await this.#restore(backup, isOver);
      if (restored === this.counts.restores) throw unavailable('the last backup is not restored');
    }
    for (const each of this.#backups)
      if (!(await this.#deleteBackup(each, isOver))) {
        this.#backups.push(each);
        throw unavailable('a backup is not deleted');
      }
    // half of the tables: of the others everything stays
    for (const table of this.#tables.filter(({ isLive }, i) => isLive && i % 2 === 0))
      await this.#deleteForEver(table, isOver);
  }

  #untilAnswered(
    isOver: () => boolean,
    done: string,
    call: () => Promise<unknown>,
  ): Promise<'done' | 'unknown' | BigtableError> {
    return untilAnswered({ clock: this.#parts.seat.process.clock, isOver, done }, call);
  }

  /** What exists is found. */
  #judgeFailure(what: string, { codeName, message }: BigtableError, table?: VersionedTable): void {
    if (FAILURES.has(codeName) || (table !== undefined && !table.isLive)) return;
    if (table?.mayGo && codeName === 'NOT_FOUND') return this.#isDeleted(table);
    this.#found(`${what} fails: ${message}`);
  }

  #found(what: string): void {
    this.#parts.verdicts.add('kept', what);
  }

  #pause(delayMs: number): Promise<void> {
    return sleep(this.#parts.seat.process.clock, delayMs);
  }

  #oneOf<T>(choices: readonly [T, ...T[]]): T;
  #oneOf<T>(choices: readonly T[]): T | undefined;
  #oneOf<T>(choices: readonly T[]): T | undefined {
    return choices[Math.floor(this.#parts.random.float() * choices.length)];
  }

  #options(): { readonly timeoutMs: number } {
    return { timeoutMs: CALL_MS };
  }
}
