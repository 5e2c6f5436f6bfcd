/**
 * An open database: tables by name. One process owns a directory; a second `open` of it fails with FAILED_PRECONDITION.
 */
import { BigtableError, type ByteString, Code, invalidArgument } from '../base/index.ts';
import { type DatabaseSettings, openDatabase, ProcessHold } from '../boot/index.ts';
import { type CallOptions, callOptionsOf, takeOptions, type ThenOptions } from './call-options.ts';
import { forCaller } from './caller-error.ts';
import { Calls } from './calls.ts';
import { boundOf, type Bytes, textOf } from './input.ts';
import { DEFAULT_PARENT, fullTableName } from './names.ts';
import { bringTo, isOvertaken, MOST_ATTEMPTS } from './open-table.ts';
import { INSPECT, type Inspect, type InspectOptions, inspected } from './show.ts';
import { Table } from './table.ts';
import { askedTable, type TableOptions } from './table-options.ts';

/** What the database under a service can do besides. */
export interface DatabaseHooks {
  /** A directory, ':memory:' or the address of a server. */
  readonly where: string;
  close(): Promise<void>;
  flush(): Promise<void>;
  compact(table: string | undefined): Promise<void>;
  split(table: string, row: ByteString | undefined): Promise<void>;
  merge(table: string, row: ByteString): Promise<void>;
  counters(): Readonly<Record<string, number>>;
}

export class Database {
  readonly #calls: Calls;
  readonly #hooks: DatabaseHooks;

  /** Made by `open` and `connect`. */
  constructor(calls: Calls, hooks: DatabaseHooks) {
    this.#calls = calls;
    this.#hooks = hooks;
  }

  /** Creates a table. ALREADY_EXISTS where there is one of that name; INVALID_ARGUMENT for an option that is not known. */
  async createTable(name: string, options: TableOptions = {}): Promise<Table> {
    const asked = askedTable(this.#fullName(name), options, 'createTable').table;
    await this.#calls.write((service, context) => service.createTable(context, asked), callOptionsOf(options));
    return new Table(asked.name, this.#calls);
  }

  /**
   * The table of that name, made where there is none, with the families of the options, made where they are missing. What exists is never
   * changed: FAILED_PRECONDITION where the table is otherwise than the options say (another GC rule, aggregate, granularity or locality group).
   * A rule that is left out agrees with any; `splits` are for a new table alone. Many may do it at once.
   */
  async openTable(name: string, options: TableOptions = {}): Promise<Table> {
    const asked = askedTable(this.#fullName(name), options, 'openTable');
    await this.#calls.write(async (service, context) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await bringTo(service, context, asked);
        } catch (error) {
          if (attempt === MOST_ATTEMPTS || !isOvertaken(error)) throw error;
        }
      }
    }, callOptionsOf(options));
    return new Table(asked.table.name, this.#calls);
  }

  /** The table of that name, whether or not it exists: its calls fail with NOT_FOUND where it does not. A full resource name is taken as it is. */
  table(name: string): Table {
    return new Table(this.#fullName(name), this.#calls);
  }

  async hasTable(name: string, options?: CallOptions): Promise<boolean> {
    try {
      await this.table(name).schema(options);
      return true;
    } catch (error) {
      if (error instanceof BigtableError && error.code === Code.NOT_FOUND) return false;
      throw error;
    }
  }

  /** Ids of the tables that were made by their id alone; `listTableNames` has those of other instances too. */
  async listTables(options?: CallOptions): Promise<readonly string[]> {
    const prefix = `${this.#calls.parent}/tables/`;
    return (await this.listTableNames(prefix, options)).map((name) => name.slice(prefix.length));
  }

  /**
   * Full resource names of the tables, of all or of those that start with the prefix; over a server it must name an
   * instance.
   */
  async listTableNames(...more: ThenOptions<string>): Promise<readonly string[]> {
    const [prefix, options] = takeOptions<string>(more);
    const start = prefix.length === 0 ? '' : textOf(prefix[0], 'prefix');
    if (prefix.length > 0 && start === '') {
      throw invalidArgument('prefix must not be empty; leave it out to list all tables');
    }
    const tables = await this.#calls.read((service, context) => service.listTables(context, start), options);
    return tables.map(({ name }) => name);
  }

  async deleteTable(name: string, options?: CallOptions): Promise<void> {
    const fullName = this.#fullName(name);
    return this.#calls.write((service, context) => service.deleteTable(context, fullName), options);
  }

  /** Writes what is in memory to SSTables, so that the next open has nothing to replay. Never needed for durability. */
  flush(options?: CallOptions): Promise<void> {
    return this.#calls.write(() => this.#hooks.flush(), options);
  }

  /**
   * Major compactions of a table, or of all: afterwards every locality group of a tablet is one SSTable without deleted data and
   * without versions that garbage collection drops. They come by themselves too, every `majorCompactionMs`.
   * INVALID_ARGUMENT for undefined.
   */
  async compact(...more: ThenOptions<string>): Promise<void> {
    const [table, options] = takeOptions<string>(more);
    const fullName = table.length === 0 ? undefined : this.#fullName(table[0]);
    return this.#calls.write(() => this.#hooks.compact(fullName), options);
  }

  /**
   * Splits the tablet that holds the row before it, so that it begins a tablet; without a row every tablet of the
   * table near its middle. Tablets split by themselves too, when they have grown above `tabletBytes`. Reads and
   * writes go on. FAILED_PRECONDITION where a tablet of one row is all there is; INVALID_ARGUMENT for a row that is
   * undefined or empty.
   */
  async split(table: string, ...more: ThenOptions<Bytes>): Promise<void> {
    const [row, options] = takeOptions<Bytes>(more);
    const fullName = this.#fullName(table);
    const bound = row.length === 0 ? undefined : boundOf(row[0], 'a row key');
    return this.#calls.write(() => this.#hooks.split(fullName, bound), options);
  }

  /** Makes one tablet of the two that meet at that row, with which the second begins. FAILED_PRECONDITION where none do. */
  async merge(table: string, row: Bytes, options?: CallOptions): Promise<void> {
    const fullName = this.#fullName(table);
    const bound = boundOf(row, 'a row key');
    return this.#calls.write(() => this.#hooks.merge(fullName, bound), options);
  }

  /** Counters since the database was opened, by name: blocks read, cache hits, bytes logged, compactions. */
  counters(): Readonly<Record<string, number>> {
    return this.#hooks.counters();
  }

  /** Ends everything in order: what was acknowledged stays. May be called again. */
  close(): Promise<void> {
    this.#calls.close();
    return this.#calls.awaited(this.#hooks.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    return inspected('Database', { where: this.#hooks.where, closed: this.#calls.isClosed }, depth, options, inspect);
  }

  #fullName(name: string): string {
    return fullTableName(name, this.#calls.parent);
  }
}

/**
 * Opens the database in a directory (made if it is not there), or a fresh one in memory with ':memory:'.
 * FAILED_PRECONDITION where another process has the directory open.
 */
export async function open(directory: string, settings: Partial<DatabaseSettings> = {}): Promise<Database> {
  if (textOf(directory, 'the directory') === '') {
    throw invalidArgument("the directory must not be empty: './' is the current one");
  }
  const where = directory === ':memory:' ? ({ memory: true } as const) : { directory };
  const hold = new ProcessHold();
  const { service, env, close, flush, compact, splitTablet, mergeTablets } = await forCaller(openDatabase({ ...where, settings }), DEFAULT_PARENT, hold);
  return new Database(new Calls(service, env, hold), {
    where: directory,
    close,
    flush,
    compact,
    split: splitTablet,
    merge: mergeTablets,
    counters: () => env.metrics.snapshot(),
  });
}
