/**
 * Assigns every tablet to a server (paper section 5.2): the root tablet first, then METADATA's, then the users', the
 * last in batches. Runs at the start, whenever a server comes or dies, and at intervals; a further run changes no
 * tablet that is assigned well.
 *
 * Invariants:
 * - A tablet is given away only if its row names no server, a server that is dead and fenced, or one that has released
 *   the tablet; by a commit conditional on the row, that raises the epoch and adds the new owner's log; and only then
 *   is the new owner called to load it.
 * - A row that has ever named a server is removed only if its table was deleted
 *   (docs/decisions/0021-tables-without-a-schema.md).
 */
import {
  assert,
  BigtableError,
  checksInvariants,
  Code,
  CorruptionError,
  toBigtableError,
  unavailable,
} from '../base/index.ts';
import { readAppends } from '../commitlog/index.ts';
import { type Env, fromPlainError, type PlainError, type RequestContext, toPlainError, within } from '../env/index.ts';
import type { MetadataClient, SchemaCache } from '../locator/index.ts';
import {
  assertDisjoint,
  assertPartition,
  commitOfRow,
  keyOfRow,
  isMetadataTablet,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataRow,
  parseMetadataKey,
  ROOT_KEY,
  ROOT_RANGE,
  USER_RANGE,
} from '../metadata/index.ts';
import { ALL_ROWS, type RowRange } from '../model/index.ts';
import { type CommitOutcome, isDeposed, type SchemaRef, type TabletRef } from '../protocol/index.ts';
import { chooseMoves } from './balance.ts';
import type { Creations } from './creations.ts';
import type { Deletions } from './deletions.ts';
import { ReleasedTablets } from './released-tablets.ts';
import { LoadFailures } from './load-failures.ts';
import { assertGiven, assignTo, newRow } from './new-rows.ts';
import { SchemalessTablets } from './schemaless-tablets.ts';
import type { LiveServer, Servers } from './servers.ts';

/** The number of rows in one commit and one load. */
const MAX_BATCH_ROWS = 256;

export interface AssignmentOptions {
  readonly env: Env;
  readonly metadata: MetadataClient;
  readonly schemas: SchemaCache;
  readonly servers: Servers;
  readonly creations: Creations;
  readonly deletions: Deletions;
}

/** The outcome for the tablets: those that no server could load. */
export interface AssignmentResult {
  readonly failures: readonly BigtableError[];
}

/** The limit of tablets that are moved at a time. */
const MAX_MOVES = 4;

export class Assignment {
  readonly #options: AssignmentOptions;
  readonly #released = new ReleasedTablets();
  readonly #failures: LoadFailures;
  readonly #schemaless: SchemalessTablets;
  #metadataWasServed = false;

  constructor(options: AssignmentOptions) {
    this.#options = options;
    this.#failures = new LoadFailures(options.env.logger);
    this.#schemaless = new SchemalessTablets(options);
  }

  /** True once METADATA was served: its root tablet and all of its tablets were loaded. */
  get metadataWasServed(): boolean {
    return this.#metadataWasServed;
  }

  /** Rejects if METADATA itself cannot be served; the answer names users' tablets that cannot be. */
  async assignAll(context: RequestContext): Promise<AssignmentResult> {
    const { metadata } = this.#options;
    this.#released.begin();
    const root = (await metadata.readRoot(context)) ?? (await this.#beginDatabase(context));
    throwFirst(await this.assign([root], context));
    let metadataRows = await this.#collect(ROOT_RANGE, context);
    if (metadataRows.length === 0)
      metadataRows = [await this.#createRow(undefined, newRow(METADATA_TABLE_ID, USER_RANGE), context)];
    if (checksInvariants) assertDisjoint(metadataRows.map(({ range }) => range));
    throwFirst(await this.assign(metadataRows, context));
    this.#metadataWasServed = true;
    const failures: BigtableError[] = [];
    for await (const rows of this.#batches(USER_RANGE, context))
      failures.push(...(await this.assignUsers(rows, context)));
    this.#released.end();
    this.#failures.assignedAll();
    return { failures };
  }

  /**
   * The root tablet's first row. All other files were written after it: if there are any, the row has been lost, and a
   * new row would leave them all to the sweep.
   */
  async #beginDatabase(context: RequestContext): Promise<MetadataRow> {
    const { fileSystem } = this.#options.env;
    const [table] = await fileSystem.list('sstables/');
    if (table !== undefined) throw rootIsLost(table.path);
    for (const log of await fileSystem.listLogs('logs/')) {
      for await (const { records } of readAppends(fileSystem, log)) {
        if (records.some(({ body }) => body.kind !== 'rows' || body.rows.length > 0)) throw rootIsLost(log);
      }
    }
    return this.#createRow(ROOT_KEY, newRow(METADATA_TABLE_ID, ROOT_RANGE), context);
  }

  /**
   * Creates the rows of new tablets of a table, at epoch 0: they are given to no server while the table has no schema.
   * INTERNAL if such rows exist.
   */
  async createRows(tableId: string, ranges: readonly RowRange[], context: RequestContext): Promise<MetadataRow[]> {
    const { env, metadata } = this.#options;
    assert(this.#metadataWasServed, 'tables are created once METADATA was served');
    assertPartition(ranges, ALL_ROWS);
    const event = { kind: 'created', atMicros: env.clock.nowMicros() } as const;
    const id = env.random.uniqueName();
    const commits = ranges
      .map((range) => newRow(tableId, range))
      .map((row) => commitOfRow(id, event, keyOfRow(row), undefined, row));
    const outcomes = await metadata.commit(commits, context);
    assert(outcomes.length === commits.length, 'each new row of METADATA has an outcome');
    if (outcomes.some(({ kind }) => kind === 'refused'))
      throw new BigtableError(Code.INTERNAL, `METADATA has rows of the new table id ${tableId} already`);
    return commits.map(({ rows }) => rows[0]!.row!);
  }

  /** Has the servers named by the rows load them. Returns the failures. */
  async load(rows: readonly MetadataRow[], context: RequestContext): Promise<BigtableError[]> {
    const failures: BigtableError[] = [];
    await Promise.all(
      [...this.#byServer(rows)].map(async ([server, tablets]) => {
        for (const [i, answer] of (await this.#callLoad(server, tablets, context)).entries()) {
          const ref = tablets[i]!;
          if (answer === undefined) {
            server.tablets.set(ref.key, ref.epoch);
            this.#failures.loaded(ref);
          } else {
            failures.push(fromPlainError(answer));
            this.#failures.failed(ref, fromPlainError(answer));
          }
          // it has released the tablet at this epoch, or is about to: it gets it at a later one
          if (answer?.code === Code.FAILED_PRECONDITION) await this.#release(server, ref, context);
        }
      }),
    );
    return failures;
  }

  /** Those of the tablets' tables, as they are now. */
  #schemasOf(tablets: readonly TabletRef[]): SchemaRef[] {
    const { schemas } = this.#options;
    const ids = new Set(tablets.map(({ key }) => parseMetadataKey(key).tableId));
    return [...ids].flatMap((tableId) => {
      const version = schemas.versionOf(tableId);
      if (version === undefined) return [];
      const schema = schemas.byId(tableId);
      assert(schema !== undefined, 'a schema of which a version is known is known');
      return [{ tableId, tableName: schema.name, version }];
    });
  }

  /** The answer by tablet. A server that cannot be called does not fail the loads of the others. */
  async #callLoad(
    server: LiveServer,
    tablets: readonly TabletRef[],
    context: RequestContext,
  ): Promise<readonly (PlainError | undefined)[]> {
    try {
      return await this.#options.servers.callUntilDone(
        server,
        'load',
        { tablets, schemas: this.#schemasOf(tablets) },
        context,
      );
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (context.signal?.aborted || isDeposed(error)) throw thrown;
      // it was not carried out for another reason than "released at this epoch"
      return tablets.map(() => toPlainError(unavailable(error.message, error)));
    }
  }

  /**
   * Moves some users' tablets from servers with many tablets or bytes to those with few. Each is first flushed and
   * released by its server, and its row then changed; if that is cut short the next assignment finishes it. Returns the
   * number that were moved.
   */
  async balance(context: RequestContext): Promise<number> {
    const { servers, env } = this.#options;
    const loads = servers.all().map(({ name, tablets, sizes }) => ({
      name,
      tablets: [...tablets].flatMap(([key, epoch]) => {
        const sizeBytes = sizes.get(key);
        return sizeBytes === undefined || isMetadataTablet(key) ? [] : [{ key, epoch, sizeBytes }];
      }),
    }));
    const moves = chooseMoves(loads, MAX_MOVES);
    let moved = 0;
    for (const { tablet, from, to } of moves) {
      const [owner, next] = [servers.get(from), servers.get(to)];
      if (owner === undefined || next === undefined) continue;
      if (await this.#move(tablet, owner, next, context)) moved++;
    }
    env.metrics.add('master.movedTablets', moved);
    return moved;
  }

  async #move({ key, epoch }: TabletRef, from: LiveServer, to: LiveServer, context: RequestContext): Promise<boolean> {
    const { metadata, servers, env } = this.#options;
    assert(from.name !== to.name, 'a tablet is moved to another server');
    if (!(await this.#release(from, { key, epoch }, context))) return false;
    const row = await metadata.readRow(key, context);
    if (row?.epoch !== epoch || row.server?.name !== from.name) return false;
    if (servers.get(to.name) === undefined) return false;
    const commit = commitOfRow(
      env.random.uniqueName(),
      { kind: 'assigned', atMicros: env.clock.nowMicros() },
      key,
      row,
      assignTo(row, to),
    );
    const [outcome] = await this.#commitAssignments([commit], context);
    const moved = commit.rows[0]?.row;
    if (outcome?.kind === 'refused' || moved === undefined) return false;
    this.#released.delete(key);
    return (await this.load([moved], context)).length === 0;
  }

  /** Has the server flush the tablet and release it at that epoch, for ever. */
  async #release(server: LiveServer, ref: TabletRef, context: RequestContext): Promise<boolean> {
    const { env, servers } = this.#options;
    const [error] = await servers.callUntilDone(server, 'unload', { tablets: [ref], flush: true }, context);
    server.tablets.delete(ref.key);
    if (error === undefined) this.#released.add(ref);
    else if (error.code === Code.FAILED_PRECONDITION)
      env.logger.info('a tablet server no longer has a tablet that it was to release', {
        server: server.name,
        error: error.message,
      });
    else env.logger.warn('a tablet server could not release a tablet', { server: server.name, error: error.message });
    return error === undefined;
  }

  /**
   * Rows that no table owns any more: of a deleted table, or of a creation that was cut short. Their servers drop the
   * tablets once the rows are gone; a row that has changed meanwhile stays.
   */
  async removeRows(rows: readonly MetadataRow[], context: RequestContext): Promise<void> {
    const { metadata, env, servers } = this.#options;
    const event = { kind: 'released', atMicros: env.clock.nowMicros() } as const;
    await servers.checkMastership();
    const outcomes = await metadata.commit(
      rows.map((row) => commitOfRow(env.random.uniqueName(), event, keyOfRow(row), row, undefined)),
      context,
    );
    const byServer = this.#byServer(rows.filter((_, i) => outcomes[i]?.kind === 'done'));
    await Promise.all(
      [...byServer].map(async ([server, tablets]) => {
        await servers.callUntilDone(server, 'unload', { tablets, flush: false }, context);
        for (const { key } of tablets) server.tablets.delete(key);
      }),
    );
  }

  /** The rows' tablets, by those of their servers that are alive. */
  #byServer(rows: readonly MetadataRow[]): Map<LiveServer, TabletRef[]> {
    const byServer = new Map<LiveServer, TabletRef[]>();
    for (const row of rows) {
      const server = row.server && this.#options.servers.get(row.server.name);
      if (server === undefined) continue;
      const refs = byServer.get(server) ?? [];
      refs.push({ key: keyOfRow(row), epoch: row.epoch });
      byServer.set(server, refs);
    }
    return byServer;
  }

  async #collect(range: RowRange, context: RequestContext): Promise<MetadataRow[]> {
    const all: MetadataRow[] = [];
    for await (const rows of this.#options.metadata.scan(range, context)) all.push(...rows);
    return all;
  }

  async *#batches(range: RowRange, context: RequestContext): AsyncGenerator<MetadataRow[], void, void> {
    let batch: MetadataRow[] = [];
    for await (const rows of this.#options.metadata.scan(range, context)) {
      for (const row of rows) {
        batch.push(row);
        if (batch.length < MAX_BATCH_ROWS) continue;
        yield batch;
        batch = [];
      }
    }
    if (batch.length > 0) yield batch;
  }

  async #createRow(key: string | undefined, row: MetadataRow, context: RequestContext): Promise<MetadataRow> {
    const { servers, env } = this.#options;
    const assigned = assignTo(row, servers.choose());
    const commit = commitOfRow(
      env.random.uniqueName(),
      { kind: 'created', atMicros: env.clock.nowMicros() },
      key ?? keyOfRow(row),
      undefined,
      assigned,
    );
    const [outcome] = await this.#commitAssignments([commit], context);
    if (outcome?.kind === 'refused') throw new BigtableError(Code.ABORTED, 'another master is creating the database');
    return commit.rows[0]!.row!;
  }

  /** Assigns users' tablets, except those of tables that are being created: their creation assigns them. */
  assignUsers(rows: readonly MetadataRow[], context: RequestContext): Promise<BigtableError[]> {
    const { creations } = this.#options;
    return this.assign(
      rows.filter(({ tableId }) => !creations.isRunning(tableId)),
      context,
    );
  }

  /** Gives the tablets of rows that are not with a live server to one, and has them loaded. Returns the failures. */
  async assign(rows: readonly MetadataRow[], context: RequestContext): Promise<BigtableError[]> {
    const { servers, env } = this.#options;
    const toLoad: MetadataRow[] = [];
    const free: MetadataRow[] = [];
    // the lock of a server that does not answer is read once, not for each of its tablets
    const silent = new Set<string>();
    const isFree = async (name: string): Promise<boolean> => {
      if (silent.has(name)) return false;
      if (await servers.isDead(name)) return true;
      silent.add(name);
      return false;
    };
    for (const row of await this.#withSchema(rows, context)) {
      const owner = row.server && servers.get(row.server.name);
      if (owner !== undefined && !this.#released.has(row)) {
        if (owner.tablets.get(keyOfRow(row)) !== row.epoch) toLoad.push(row);
      } else if (row.server === undefined || owner !== undefined || (await isFree(row.server.name))) {
        free.push(row);
      }
      // a server that holds its lock and does not answer may still be serving: its tablets wait
    }
    const event = { kind: 'assigned', atMicros: env.clock.nowMicros() } as const;
    // no await between the choice of a server and the commit, so that it is not found dead unseen
    const commits = free.map((row) =>
      commitOfRow(env.random.uniqueName(), event, keyOfRow(row), row, assignTo(row, servers.choose())),
    );
    const outcomes = await this.#commitAssignments(commits, context);
    commits.forEach((commit, i) => {
      const row = commit.rows[0]?.row;
      if (!row || outcomes[i]?.kind !== 'done') return;
      this.#released.delete(keyOfRow(row));
      toLoad.push(row);
    });
    return this.load(toLoad, context);
  }

  /**
   * Commits rows that name new owners. The caller may cancel; until the outcome is known no sweep deletes the log of
   * one of those owners, since a row may yet come to list it.
   */
  #commitAssignments(commits: readonly MetadataCommit[], context: RequestContext): Promise<CommitOutcome[]> {
    const { metadata, servers, env } = this.#options;
    for (const commit of commits) for (const one of commit.rows) assertGiven(one);
    const names = commits.flatMap(({ rows }) => rows.flatMap(({ row }) => row?.server?.name ?? []));
    const known = servers.giving(names);
    const committing = metadata
      .commit(commits, { ...context, signal: undefined, deadlineMs: Number.POSITIVE_INFINITY })
      .finally(known);
    return within(committing, context, env.clock);
  }

  /**
   * The rows whose tables have schemas. Those that were never given to a server are left by a creation, and are
   * removed; the others are kept.
   */
  async #withSchema(rows: readonly MetadataRow[], context: RequestContext): Promise<MetadataRow[]> {
    const { schemas, deletions, creations } = this.#options;
    // what the watch has not reported yet may be a new table
    if (rows.some(({ tableId }) => schemas.byId(tableId) === undefined)) await schemas.refreshAll();
    const [known, unknown]: [MetadataRow[], MetadataRow[]] = [[], []];
    for (const row of rows) (schemas.byId(row.tableId) === undefined ? unknown : known).push(row);
    const left = unknown.filter(({ tableId, epoch }) => epoch === 0 && !creations.mayHappen(tableId));
    if (left.length > 0) await this.removeRows(left, context);
    for (const row of unknown)
      if (row.epoch > 0 && !deletions.has(row.tableId)) await this.#schemaless.keep(row, context);
    return known;
  }
}

function throwFirst(failures: readonly BigtableError[]): void {
  const [first] = failures;
  if (first) throw first;
}

function rootIsLost(found: string): CorruptionError {
  return new CorruptionError(
    'root',
    0,
    `the lock service (lock-service/files) has no file "root", which tells where the database begins, though ${found} exists: the file was removed`,
  );
}
