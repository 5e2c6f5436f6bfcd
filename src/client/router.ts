/**
 * Sends calls to the servers of rows: finds the tablet, calls, and if the answer is "not serving" drops the location,
 * waits a little and finds it anew, within the deadline of the caller. No other call is ever sent twice: any other
 * failure of a write leaves its outcome unknown.
 */
import { BigtableError, type ByteString, Code, notFound, toBigtableError } from '../base/index.ts';
import { type Clock, type Random, type RequestContext, within } from '../env/index.ts';
import { type AssignedTablet, Backoff, type Locator, type SchemaCache } from '../locator/index.ts';
import type { TableSchema } from '../model/index.ts';
import { isNotServing } from '../protocol/index.ts';
import type { RowRouter } from './row-writes.ts';

/** The time that a caller without a deadline waits for a tablet that no server serves. */
const MAX_SEARCH_MS = 60_000;

export interface RouterOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly locator: Locator;
  readonly schemas: SchemaCache;
}

export class Router implements RowRouter {
  readonly #options: RouterOptions;
  #closed = false;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /** The schema of the table; NOT_FOUND if it does not exist. */
  async table(name: string, context: RequestContext): Promise<TableSchema> {
    const schema = this.known(name) ?? (await this.readSchema(name, context));
    if (schema === undefined) throw noTable(name);
    return schema;
  }

  /** The schema as it surely was at some instant since the call; undefined if the table does not exist. */
  async readSchema(name: string, context: RequestContext): Promise<TableSchema | undefined> {
    const { schemas, clock } = this.#options;
    return (await within(schemas.read(name), context, clock))?.schema;
  }

  /** The cached schema of the table. */
  known(name: string): TableSchema | undefined {
    return this.#options.schemas.byName(name);
  }

  /** The version of the schema that is cached of the table of that id, for calls on its rows. */
  schemaVersion(tableId: string): number | undefined {
    return this.#options.schemas.versionOf(tableId);
  }

  /** Calls the server of the row. */
  callRow<T>(
    table: string,
    row: ByteString,
    context: RequestContext,
    call: (tableId: string, address: string) => Promise<T>,
  ): Promise<T> {
    const { schemas, locator } = this.#options;
    const schema = schemas.byName(table);
    const tablet = schema && locator.cached(schema.id, row);
    if (tablet === undefined) return this.#search(table, row, context, call);
    return call(tablet.tableId, tablet.server.address).catch((error: unknown) => {
      if (!isMisdirected(error)) throw error;
      locator.drop(tablet);
      return this.#search(table, row, context, call);
    });
  }

  /** The policy for the attempts of one call. */
  retryPolicy(context: RequestContext): RetryPolicy {
    return new RetryPolicy(this.#options, context, () => this.#closed);
  }

  /** From now on no call waits for a tablet. */
  close(): void {
    this.#closed = true;
  }

  /** Finds a tablet. If the table was deleted, and perhaps created anew, the error is "not serving" or NOT_FOUND. */
  async locate(
    table: string,
    schema: TableSchema,
    context: RequestContext,
    find: (locator: Locator) => Promise<AssignedTablet>,
  ): Promise<AssignedTablet> {
    try {
      return await find(this.#options.locator);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.details.noTablet !== true) throw error;
      if ((await this.readSchema(table, context)) === undefined) throw noTable(table);
      // another table of the same name, or one whose tablets are being created: search again
      throw new BigtableError(Code.UNAVAILABLE, `table ${schema.name} has changed`, {
        details: { notServing: true },
        cause: error,
      });
    }
  }

  /** The row's tablet, if it is known already. */
  cached(tableId: string, row: ByteString): AssignedTablet | undefined {
    return this.#options.locator.cached(tableId, row);
  }

  drop(tablet: AssignedTablet): void {
    this.#options.locator.drop(tablet);
  }

  async #search<T>(
    table: string,
    row: ByteString,
    context: RequestContext,
    call: (tableId: string, address: string) => Promise<T>,
  ): Promise<T> {
    const retries = this.retryPolicy(context);
    for (;;) {
      let tablet: AssignedTablet | undefined;
      try {
        const schema = await this.table(table, context);
        tablet = await this.locate(table, schema, context, (locator) => locator.locate(schema.id, row, context));
        return await call(schema.id, tablet.server.address);
      } catch (error) {
        if (!isMisdirected(error)) throw error;
        if (tablet) this.drop(tablet);
        await retries.wait(error);
        await this.refresh(table, context);
      }
    }
  }

  /** Reads the table's schema anew: "not serving" may mean that the table is gone. */
  async refresh(table: string, context: RequestContext): Promise<void> {
    if ((await this.readSchema(table, context)) === undefined) throw noTable(table);
  }
}

/** Waits between attempts, until the deadline of the caller, or a minute without one. */
export class RetryPolicy {
  readonly #backoff: Backoff;
  readonly #context: RequestContext;
  readonly #closed: () => boolean;

  constructor(options: Pick<RouterOptions, 'clock' | 'random'>, context: RequestContext, closed: () => boolean) {
    this.#closed = closed;
    this.#backoff = new Backoff(options);
    this.#context = {
      ...context,
      signal: context.signal,
      deadlineMs: Math.min(context.deadlineMs, options.clock.monotonicMs() + MAX_SEARCH_MS),
    };
  }

  /** Waits before the next attempt; rethrows `error` if the time is over. */
  async wait(error: unknown): Promise<void> {
    if (!this.#closed()) await this.#backoff.wait(this.#context, error);
    if (this.#closed())
      throw new BigtableError(Code.UNAVAILABLE, 'the client is closed', { retry: false, cause: error });
  }
}

export function isMisdirected(thrown: unknown): boolean {
  return thrown instanceof BigtableError && isNotServing(thrown);
}

function noTable(name: string): BigtableError {
  return notFound(`table ${name} does not exist`);
}
