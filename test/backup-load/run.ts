/**
 * A table under load on a server that is killed and started again: every second a backup is taken, others are copied,
 * deleted, or expire, and any of them is restored and judged (ledger.ts). Meanwhile tablets are flushed, compacted,
 * split and merged, and so are restored tables, which share files with the backups.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, toBigtableError } from '../../src/base/index.ts';
import { checkDirectory } from '../../src/boot/index.ts';
import { connect, type Database, open, type Row, RowMutation, type Table } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { backupPath, decodeBackup, encodeBackup } from '../../src/metadata/index.ts';
import { nativeCodecs, openDirectory, openLocalLockService } from '../../src/platform/index.ts';
import { type Bounds, Ledger } from './ledger.ts';

/** The server of a directory, at an address that stays the same. */
export interface LoadedServer {
  readonly address: string;
  readonly directory: string;
  start(): Promise<void>;
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

export interface LoadOptions {
  readonly server: LoadedServer;
  readonly minutes: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

export interface LoadResult {
  readonly findings: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** Milliseconds of the calls that were answered, in order of length. */
  readonly times: Readonly<Record<'create' | 'copy' | 'restore', readonly number[]>>;
}

/** The server's settings: small, so that tablets are flushed, compacted and split all the time. */
export const SERVER_SETTINGS = [
  ...['--tablet-bytes', '1048576', '--memtable-bytes', '4194304', '--log-limit-bytes', '4194304'],
  ...['--major-compaction-ms', '15000'],
];
const TABLE = 'load';
const ROWS = 4000;
const WRITERS = 8;
const BACKUP_EVERY_MS = 1000;
const BACKUPS_AT_ONCE = 4;
/** More are deleted. */
const MAX_BACKUPS = 25;
const MAX_FINDINGS = 20;
const KILL_AFTER_MS = { least: 8_000, most: 20_000 };
/** A server that was killed is ready again. */
const READY_MS = 60_000;
/** The master looks for backups that have expired every 30 s. */
const EXPIRED_MS = 90_000;
const EXPIRED_AT_ONCE = 2;

interface Taken {
  readonly name: string;
  readonly bounds: Bounds;
  /** It may be gone at any moment. */
  mayBeGone: boolean;
}

export class BackupLoad {
  readonly #options: LoadOptions;
  readonly #ledger = new Ledger(ROWS);
  readonly #random: SeededRandom;
  readonly #findings: string[] = [];
  readonly #counts: Record<string, number> = {};
  readonly #times = { create: [] as number[], copy: [] as number[], restore: [] as number[] };
  readonly #taken = new Map<string, Taken>();
  /** Names of backups whose creation or deletion had no answer, and the least writes that they must show. */
  readonly #doubtful = new Map<string, Bounds['least'] | undefined>();
  readonly #expiring = new Set<string>();
  #database!: Database;
  #table!: Table;
  #number = 0;
  #isOver = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  async run(): Promise<LoadResult> {
    const { server, minutes } = this.#options;
    const families = { a: { maxVersions: 1, group: 'one' }, b: { maxVersions: 1 } };
    // only where the directory is open a table gets groups
    const opened = await open(server.directory);
    await opened.createTable(TABLE, { families, groups: { one: {} }, splits: ['row-002000'] });
    await opened.close();
    await server.start();
    this.#database = await connect(server.address);
    this.#table = this.#database.table(TABLE);
    const over = sleep(minutes * 60_000).then(() => (this.#isOver = true));
    await Promise.all([
      over,
      ...Array.from({ length: WRITERS }, (_, writer) => this.#act(() => this.#write(writer))),
      this.#takeBackups(),
      this.#act(() => this.#copy()),
      this.#act(() => this.#delete()),
      this.#act(() => this.#restore()),
      this.#act(() => this.#disturb()),
      this.#act(() => this.#resolve()),
      this.#act(() => this.#kill()),
    ]);
    await this.#finish();
    return { findings: this.#findings, counts: this.#counts, times: this.#times };
  }

  /** Does it again and again until the end, or until there are many findings. */
  async #act(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver)
      await work().catch((thrown: unknown) => this.#find(String((thrown as Error).stack ?? thrown)));
  }

  #find(what: string): void {
    this.#findings.push(what);
    this.#options.say(`FOUND ${what}`);
    if (this.#findings.length >= MAX_FINDINGS) this.#isOver = true;
  }

  #count(what: string, number = 1): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + number;
  }

  async #write(writer: number): Promise<void> {
    const row = writer + WRITERS * Math.floor((this.#random.float() * ROWS) / WRITERS);
    try {
      await this.#table.apply(this.#ledger.begin(row));
      this.#ledger.acknowledge(row);
      this.#count('writes');
    } catch (thrown) {
      if (!this.#isOfKill(thrown)) throw thrown;
      this.#count('writes of unknown outcome');
      await sleep(100);
    }
  }

  /** One a second, also where the former is not answered yet. */
  async #takeBackups(): Promise<void> {
    const running = new Set<Promise<void>>();
    while (!this.#isOver) {
      if (running.size < BACKUPS_AT_ONCE) {
        const one: Promise<void> = this.#take().finally(() => running.delete(one));
        running.add(one);
      } else this.#count('seconds without a backup: too many are not answered');
      await sleep(BACKUP_EVERY_MS);
    }
    await Promise.all(running);
  }

  async #take(): Promise<void> {
    const name = `b-${++this.#number}`;
    const least = this.#ledger.acknowledged;
    try {
      await this.#timed('create', () => this.#database.createBackup(TABLE, name));
      this.#taken.set(name, { name, bounds: { least, most: this.#ledger.begun }, mayBeGone: false });
      this.#count('backups');
    } catch (thrown) {
      this.#doubtful.set(name, least);
      if (this.#isOfKill(thrown)) this.#count('backups of unknown outcome');
      else this.#find(`backup ${name} was not taken: ${toBigtableError(thrown).message}`);
    }
  }

  async #copy(): Promise<void> {
    await sleep(2000);
    const source = this.#any();
    if (source === undefined) return;
    const name = `c-${++this.#number}`;
    try {
      await this.#timed('copy', () => this.#database.copyBackup(source.name, name));
      this.#taken.set(name, { name, bounds: source.bounds, mayBeGone: false });
      this.#count('copies');
    } catch (thrown) {
      this.#doubtful.set(name, undefined);
      if (!this.#isOfKill(thrown) && !(source.mayBeGone && isNotFound(thrown))) throw thrown;
    }
  }

  async #delete(): Promise<void> {
    await sleep(300);
    if (this.#taken.size <= MAX_BACKUPS) return;
    const one = this.#any()!;
    one.mayBeGone = true;
    this.#taken.delete(one.name);
    try {
      await this.#database.deleteBackup(one.name);
      this.#count('deletions of backups');
    } catch (thrown) {
      this.#doubtful.set(one.name, undefined);
      if (!this.#isOfKill(thrown) && !isNotFound(thrown)) throw thrown;
    }
  }

  async #restore(): Promise<void> {
    await sleep(500);
    const one = this.#any();
    if (one !== undefined) await this.#judge(one, this.#random.float() < 0.3);
  }

  /** `rewrites`: also after the files that it shares with the backup were replaced. */
  async #judge(one: Taken, rewrites: boolean): Promise<void> {
    const name = `r-${++this.#number}`;
    let table: Table;
    try {
      table = await this.#timed('restore', () => this.#database.restoreTable(one.name, name));
    } catch (thrown) {
      if (this.#isOfKill(thrown)) {
        this.#count('restored tables of unknown outcome');
        return this.#drop(name);
      }
      if (one.mayBeGone && isNotFound(thrown)) return this.#count('backups that were gone before they were restored');
      return this.#find(`backup ${one.name} was not restored: ${toBigtableError(thrown).message}`);
    }
    const rows = await this.#again(() => table.scan().toArray());
    this.#judgeRows(one, rows);
    if (rewrites) await this.#rewrite(one, table, rows);
    await this.#drop(name);
  }

  /** Some rows are deleted, and then the files replaced that were shared: the other rows are as they were. */
  async #rewrite(one: Taken, table: Table, rows: readonly Row[]): Promise<void> {
    const deleted = rows.filter(() => this.#random.float() < 0.02);
    await this.#again(() => table.applyAll(deleted.map(({ key }) => new RowMutation(key).deleteRow())));
    await this.#again(() => this.#database.flush());
    const middle = rows[Math.floor(rows.length / 2)];
    // its parts open their files anew
    if (middle !== undefined) await this.#tried('splits', () => this.#database.split(table.name, middle.key));
    this.#judgeRows(one, [...(await this.#again(() => table.scan().toArray())), ...deleted]);
    await this.#again(() => this.#database.compact(table.name));
    this.#judgeRows(one, [...(await this.#again(() => table.scan().toArray())), ...deleted]);
    this.#count('restored tables that were rewritten');
  }

  #judgeRows({ name, bounds }: Taken, rows: readonly Row[]): void {
    const faults = this.#ledger.judge(rows, bounds);
    this.#count('tables judged');
    this.#count('rows judged', rows.length);
    for (const fault of faults.slice(0, 3)) this.#find(`backup ${name}, of ${faults.length} faults: ${fault}`);
  }

  async #drop(table: string): Promise<void> {
    await this.#again(() => this.#database.deleteTable(table)).catch((thrown: unknown) => {
      if (!isNotFound(thrown)) throw thrown;
    });
  }

  async #disturb(): Promise<void> {
    await sleep(500 + 2000 * this.#random.float());
    const row = `row-${String(Math.floor(this.#random.float() * ROWS)).padStart(6, '0')}`;
    const works: Readonly<Record<string, () => Promise<unknown>>> = {
      compactions: () => this.#database.compact(TABLE),
      flushes: () => this.#database.flush(),
      splits: () => this.#database.split(TABLE, row),
      merges: async () => {
        const tablets = await this.#table.tablets();
        const second = tablets[1 + Math.floor(this.#random.float() * (tablets.length - 1))];
        if (second !== undefined) await this.#database.merge(TABLE, second.start);
      },
    };
    const [name, work] = Object.entries(works)[Math.floor(this.#random.float() * 4)]!;
    await this.#tried(name, work);
  }

  async #tried(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      this.#count(what);
    } catch (thrown) {
      const { code } = toBigtableError(thrown);
      if (!this.#isOfKill(thrown) && code !== Code.FAILED_PRECONDITION && code !== Code.ABORTED) throw thrown;
    }
  }

  /** Kills the server, and starts it again. Meanwhile a few backups get a time that is over. */
  async #kill(): Promise<void> {
    const { server } = this.#options;
    const waitMs = KILL_AFTER_MS.least + (KILL_AFTER_MS.most - KILL_AFTER_MS.least) * this.#random.float();
    for (let leftMs = waitMs; leftMs > 0 && !this.#isOver; leftMs -= 100) await sleep(100);
    if (this.#isOver) return;
    await server.kill('SIGKILL');
    this.#count('kills');
    await this.#expire();
    await server.start();
  }

  async #expire(): Promise<void> {
    const { server } = this.#options;
    const { checksum } = nativeCodecs();
    const { fileSystem, release } = await openDirectory(server.directory, { checksum });
    const lockService = await openLocalLockService(fileSystem);
    for (let i = 0; i < EXPIRED_AT_ONCE; i++) {
      const one = this.#any();
      const path = one && backupPath(this.#fullName(one.name));
      const file = path === undefined ? undefined : await lockService.read(path);
      if (one === undefined || path === undefined || file === undefined) continue;
      const backup = decodeBackup(path, file.contents);
      await lockService.write(path, encodeBackup({ ...backup, expireMicros: backup.startMicros + 1 }));
      one.mayBeGone = true;
      this.#taken.delete(one.name);
      this.#expiring.add(one.name);
      this.#count('backups that expired');
    }
    await release();
  }

  #fullName(backup: string): string {
    return `${this.#table.fullName.replace(/\/tables\/.*/, '')}/clusters/edubba/backups/${backup}`;
  }

  /** Finds out what became of backups whose calls had no answer. */
  async #resolve(): Promise<void> {
    await sleep(3000);
    const doubtful = [...this.#doubtful];
    const all = await this.#again(() => this.#database.listBackups());
    const states = new Map(all.map(({ name, state }) => [name, state]));
    for (const [name, least] of doubtful) {
      const state = states.get(name);
      if (state === 'creating') continue;
      this.#doubtful.delete(name);
      if (state === undefined) continue;
      const found = { name, bounds: { least: least!, most: this.#ledger.begun }, mayBeGone: false };
      if (least === undefined) await this.#remove(name);
      else this.#taken.set(name, found);
    }
  }

  async #remove(backup: string): Promise<void> {
    await this.#again(() => this.#database.deleteBackup(backup)).catch((thrown: unknown) => {
      if (!isNotFound(thrown)) throw thrown;
    });
  }

  /** All backups that are left are judged; those that have expired are gone; then nothing is left, and all is whole. */
  async #finish(): Promise<void> {
    const { server, say } = this.#options;
    say(`the load ends; ${this.#taken.size} backups are left`);
    await this.#resolve();
    if (this.#findings.length < MAX_FINDINGS) for (const one of this.#taken.values()) await this.#judge(one, false);
    const endMs = performance.now() + EXPIRED_MS;
    const left = async (): Promise<string[]> =>
      (await this.#database.listBackups()).map(({ name }) => name).filter((name) => this.#expiring.has(name));
    while ((await left()).length > 0 && performance.now() < endMs) await sleep(1000);
    for (const name of await left()) this.#find(`backup ${name} has expired, and is there`);
    await this.#database.close();
    await server.kill('SIGTERM');
    const { findings } = await checkDirectory(server.directory);
    for (const { file, message } of findings) this.#find(`inspect check: ${file}: ${message}`);
  }

  #any(): Taken | undefined {
    const all = [...this.#taken.values()];
    return all[Math.floor(this.#random.float() * all.length)];
  }

  async #timed<T>(what: 'create' | 'copy' | 'restore', call: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const answer = await call();
    this.#times[what].push(performance.now() - startMs);
    return answer;
  }

  /** Until it is answered: a server that was killed comes back. */
  async #again<T>(call: () => Promise<T>): Promise<T> {
    for (const endMs = performance.now() + READY_MS; ; await sleep(200)) {
      try {
        return await call();
      } catch (thrown) {
        if (!this.#isOfKill(thrown) || performance.now() > endMs) throw thrown;
      }
    }
  }

  #isOfKill(thrown: unknown): boolean {
    return toBigtableError(thrown).code === Code.UNAVAILABLE;
  }
}

function isNotFound(thrown: unknown): boolean {
  return toBigtableError(thrown).code === Code.NOT_FOUND;
}
