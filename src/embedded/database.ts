/**
 * An open database: tables by name. One process owns a directory; a second `open` of it fails with FAILED_PRECONDITION.
 */
import { BigtableError, type ByteString, Code, invalidArgument } from '../base/index.ts';
import { type DatabaseSettings, openDatabase, ProcessHold } from '../boot/index.ts';
import type { ByteBudget } from '../env/index.ts';
import type { Service } from '../service/index.ts';
import { Calls } from './calls.ts';
import { boundOf, type Bytes, textOf } from './input.ts';
import { bringTo, isOvertaken, MOST_ATTEMPTS } from './open-table.ts';
import { Table } from './table.ts';
import { askedTable, type TableOptions } from './table-options.ts';

/** What the database under a service can do besides. */
export interface DatabaseHooks {
  close(): Promise<void>;
  flush(): Promise<void>;
  compact(table: string | undefined): Promise<void>;
  split(table: string, row: ByteString | undefined): Promise<void>;
  merge(table: string, row: ByteString): Promise<void>;
  counters(): Readonly<Record<string, number>>;
}

/** Where tables live that are named by their id alone. */
const DEFAULT_PARENT = 'projects/local/instances/local';

export class Database {
  readonly #calls: Calls;
  readonly #hooks: DatabaseHooks;

  /** Made by `open` and `overService`. */
  constructor(calls: Calls, hooks: DatabaseHooks) {
    this.#calls = calls;
    this.#hooks = hooks;
  }

  /** Creates a table. ALREADY_EXISTS where there is one of that name; INVALID_ARGUMENT for an option that is not known. */
  async createTable(name: string, options: TableOptions = {}): Promise<Table> {
    const asked = askedTable(fullTableName(name), options, 'createTable').table;
    await this.#calls.run((service, context) => service.createTable(context, asked));
    return new Table(asked.name, this.#calls);
  }

  /**
   * The table of that name, made where there is none, with the families of the options, made where they are missing. What exists is never
   * changed: FAILED_PRECONDITION where the table is otherwise than the options say (another GC rule, aggregate, granularity or locality group).
   * A rule that is left out agrees with any; `splits` are for a new table alone. Many may do it at once.
   */
  async openTable(name: string, options: TableOptions = {}): Promise<Table> {
    const asked = askedTable(fullTableName(name), options, 'openTable');
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#calls.run((service, context) => bringTo(service, context, asked));
        return new Table(asked.table.name, this.#calls);
      } catch (error) {
        if (attempt === MOST_ATTEMPTS || !isOvertaken(error)) throw error;
      }
    }
  }

  /** The table of that name, whether or not it exists: its calls fail with NOT_FOUND where it does not. A full resource name is taken as it is. */
  table(name: string): Table {
    return new Table(fullTableName(name), this.#calls);
  }

  async hasTable(name: string): Promise<boolean> {
    try {
      await this.table(name).schema();
      return true;
    } catch (error) {
      if (error instanceof BigtableError && error.code === Code.NOT_FOUND) return false;
      throw error;
    }
  }

  /** Ids of the tables that were made by their id alone; `listTableNames` has those of other instances too. */
  async listTables(): Promise<readonly string[]> {
    const prefix = `${DEFAULT_PARENT}/tables/`;
    return (await this.listTableNames(prefix)).map((name) => name.slice(prefix.length));
  }

  /**
   * Full resource names of the tables, of all or of those that start with the prefix; over a server it must name an
   * instance.
   */
  async listTableNames(...prefix: [] | [prefix: string]): Promise<readonly string[]> {
    const start = prefix.length === 0 ? '' : textOf(prefix[0], 'prefix');
    if (prefix.length > 0 && start === '') {
      throw invalidArgument('prefix must not be empty; leave it out to list all tables');
    }
    const tables = await this.#calls.run((service, context) => service.listTables(context, start));
    return tables.map(({ name }) => name);
  }

  async deleteTable(name: string): Promise<void> {
    const fullName = fullTableName(name);
    return this.#calls.run((service, context) => service.deleteTable(context, fullName));
  }

  /** Writes what is in memory to SSTables, so that the next open has nothing to replay. Never needed for durability. */
  flush(): Promise<void> {
    return this.#hooks.flush();
  }

  /**
   * Major compactions of a table, or of all: afterwards every locality group of a tablet is one SSTable without deleted data and
   * without versions that garbage collection drops. They come by themselves too, every `majorCompactionMs`.
   * INVALID_ARGUMENT for undefined.
   */
  async compact(...table: [] | [table: string]): Promise<void> {
    return this.#hooks.compact(table.length === 0 ? undefined : fullTableName(table[0]));
  }

  /**
   * Splits the tablet that holds the row before it, so that it begins a tablet; without a row every tablet of the
   * table near its middle. Tablets split by themselves too, when they have grown above `tabletBytes`. Reads and
   * writes go on. FAILED_PRECONDITION where a tablet of one row is all there is; INVALID_ARGUMENT for a row that is
   * undefined or empty.
   */
  async split(table: string, ...row: [] | [row: Bytes]): Promise<void> {
    return this.#hooks.split(fullTableName(table), row.length === 0 ? undefined : boundOf(row[0], 'a row key'));
  }

  /** Makes one tablet of the two that meet at that row, with which the second begins. FAILED_PRECONDITION where none do. */
  async merge(table: string, row: Bytes): Promise<void> {
    return this.#hooks.merge(fullTableName(table), boundOf(row, 'a row key'));
  }

  /** Counters since the database was opened, by name: blocks read, cache hits, bytes logged, compactions. */
  counters(): Readonly<Record<string, number>> {
    return this.#hooks.counters();
  }

  /** Ends everything in order: what was acknowledged stays. May be called again. */
  close(): Promise<void> {
    this.#calls.close();
    return this.#hooks.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function fullTableName(name: string): string {
  if (textOf(name, 'a table name') === '') throw invalidArgument('a table name must not be empty');
  return name.includes('/') ? name : `${DEFAULT_PARENT}/tables/${name}`;
}

async function refuseCompaction(): Promise<never> {
  throw new BigtableError(Code.UNIMPLEMENTED, 'a server compacts by itself; on demand it is done where the directory is open');
}

async function refuseSplit(): Promise<never> {
  throw new BigtableError(Code.UNIMPLEMENTED, 'a server splits tablets by itself; on demand tablets are split and merged where the directory is open');
}

/** A database over any service: one in this process, or one reached through a server. */
export function overService(service: Service, budget: ByteBudget, close: () => Promise<void>): Database {
  return new Database(new Calls(service, budget), { close, flush: async () => {}, compact: refuseCompaction, split: refuseSplit, merge: refuseSplit, counters: () => ({}) });
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
  const { service, env, close, flush, compact, splitTablet, mergeTablets } = await hold.while(openDatabase({ ...where, settings }));
  return new Database(new Calls(service, env.requestBudget, hold), {
    close: () => hold.while(close()),
    flush: () => hold.while(flush()),
    compact: (table) => hold.while(compact(table)),
    split: (table, row) => hold.while(splitTablet(table, row)),
    merge: (table, row) => hold.while(mergeTablets(table, row)),
    counters: () => env.metrics.snapshot(),
  });
}
