/**
 * Assigns tablets to servers (paper section 5.2), by changes of their rows, and takes them away again. Which tablets,
 * and in which order, the assignment queue says.
 *
 * Invariants:
 * - A tablet is given away only if its row names no server, a server that is dead and fenced, or one that has released
 *   the tablet; by a commit conditional on the row, that raises the epoch and adds the new owner's log; and only then
 *   is the new owner called to load it.
 * - A row that has ever named a server is removed only if its table was deleted
 *   (docs/decisions/0021-tables-without-a-schema.md).
 */
import { assert, BigtableError, Code, CorruptionError } from '../base/index.ts';
import { readAppends } from '../commitlog/index.ts';
import { type Env, type RequestContext, within } from '../env/index.ts';
import type { MetadataClient, SchemaCache } from '../locator/index.ts';
import {
  assertPartition,
  commitOfRow,
  keyOfRow,
  keysOfTable,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataRow,
  ROOT_KEY,
  ROOT_RANGE,
  USER_RANGE,
} from '../metadata/index.ts';
import { ALL_ROWS } from '../model/index.ts';
import type { CommitOutcome, TabletRef } from '../protocol/index.ts';
import type { Creations } from './creations.ts';
import type { Deletions } from './deletions.ts';
import type { LiveServer } from './live-server.ts';
import type { LogSorting } from './log-sorting.ts';
import { afterRelease, assertGiven, assignTo, newRow } from './new-rows.ts';
import { ReleasedTablets } from './released-tablets.ts';
import { SchemalessTablets } from './schemaless-tablets.ts';
import type { Servers } from './servers.ts';

export interface AssignmentOptions {
  readonly env: Env;
  readonly metadata: MetadataClient;
  readonly schemas: SchemaCache;
  readonly servers: Servers;
  readonly creations: Creations;
  readonly deletions: Deletions;
  readonly sorting: LogSorting;
  /** Without deadline. */
  readonly context: () => RequestContext;
}

/** A tablet that is to be assigned. */
export interface Candidate {
  readonly row: MetadataRow;
  /** The name of the server that shall have it, if that is alive and it goes to another one. */
  readonly preferred: string | undefined;
}

/** What comes of a candidate. */
export type Placement =
  /** The server that its row names is to load it. */
  | { readonly kind: 'load'; readonly server: LiveServer; readonly row: MetadataRow }
  /** There is nothing to do, or nothing that can be done before the servers change. */
  | { readonly kind: 'settled' }
  /** The log of its dead server is being sorted: it is assigned after that. */
  | { readonly kind: 'sorting'; readonly until: Promise<unknown> }
  /** Its row has changed meanwhile; undefined: it is gone. */
  | { readonly kind: 'changed'; readonly row: MetadataRow | undefined };

const SETTLED: Placement = { kind: 'settled' };

export class Assignment {
  readonly #options: AssignmentOptions;
  readonly #released = new ReleasedTablets();
  readonly #schemaless: SchemalessTablets;
  #metadataWasServed = false;

  constructor(options: AssignmentOptions) {
    this.#options = options;
    this.#schemaless = new SchemalessTablets(options);
  }

  /** True once METADATA was served: its root tablet and all of its tablets were loaded. */
  get metadataWasServed(): boolean {
    return this.#metadataWasServed;
  }

  /** The root tablet and all of METADATA's tablets were loaded. */
  metadataIsServed(): void {
    this.#metadataWasServed = true;
  }

  /** A walk over all rows begins, which asks `needsWork` of each. */
  walkBegins(): void {
    this.#released.begin();
  }

  /** It has seen every row. */
  walkEnds(): void {
    this.#released.end();
  }

  /** True when something is to be done about the tablet of a row, as far as is known. */
  needsWork(row: MetadataRow): boolean {
    const { schemas, servers, deletions, creations } = this.#options;
    const { tableId, server, epoch } = row;
    if (row.isOfBackup) return false;
    const isReleased = this.#released.has(row);
    if (schemas.byId(tableId) === undefined) {
      if (deletions.keptOf(tableId) !== undefined) return false;
      return epoch > 0 ? !deletions.has(tableId) : !creations.mayHappen(tableId);
    }
    const owner = server && servers.get(server.name);
    if (owner !== undefined) return isReleased || owner.tablets.get(keyOfRow(row)) !== epoch;
    return server === undefined || !servers.isSilent(server.name);
  }

  /** The row of the root tablet; begins the database if there is none. */
  async rootRow(context: RequestContext): Promise<MetadataRow> {
    return (await this.#options.metadata.readRoot(context)) ?? this.#beginDatabase(context);
  }

  /** The row of METADATA's first tablet, once the root tablet is served. */
  createMetadataRow(context: RequestContext): Promise<MetadataRow> {
    return this.#createRow(undefined, newRow(METADATA_TABLE_ID, USER_RANGE), context);
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
   * Creates the rows of new tablets of a table, or of a backup, at epoch 0: they are given to no server while the table
   * has no schema. INTERNAL if such rows exist.
   */
  async createRows(created: readonly MetadataRow[], context: RequestContext): Promise<MetadataRow[]> {
    const { env, metadata } = this.#options;
    assert(this.#metadataWasServed, 'tables are created once METADATA was served');
    assertPartition(
      created.map(({ range }) => range),
      ALL_ROWS,
    );
    const event = { kind: 'created', atMicros: env.clock.nowMicros() } as const;
    const id = env.random.uniqueName();
    const commits = created.map((row) => commitOfRow(id, event, keyOfRow(row), undefined, row));
    const outcomes = await metadata.commit(commits, context);
    assert(outcomes.length === commits.length, 'each new row of METADATA has an outcome');
    if (outcomes.some(({ kind }) => kind === 'refused'))
      throw new BigtableError(Code.INTERNAL, `METADATA has rows of the new table id ${created[0]!.tableId} already`);
    return commits.map(({ rows }) => rows[0]!.row!);
  }

  /**
   * Has the server flush the tablet and release it at that epoch, for ever. False if it keeps the tablet, or has it no
   * more for another reason.
   */
  async release(server: LiveServer, ref: TabletRef, context: RequestContext): Promise<boolean> {
    const { env, servers } = this.#options;
    assert(ref.epoch > 0, 'a tablet is released by a server that it was given to');
    const [error] = await servers.caller.callUntilDone(server, 'unload', { tablets: [ref], flush: true }, context);
    const fields = { server: server.name, ...(error && { error: error.message }) };
    if (error !== undefined && error.code !== Code.FAILED_PRECONDITION) {
      env.logger.warn('a tablet server could not release a tablet', fields);
      return false;
    }
    server.drop(ref.key);
    if (error === undefined) this.#released.add(ref);
    else env.logger.info('a tablet server no longer has a tablet that it was to release', fields);
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
        await servers.caller.callUntilDone(server, 'unload', { tablets, flush: false }, context);
        for (const { key } of tablets) server.drop(key);
      }),
    );
  }

  /** All rows under the id of a table, or of a backup, that exists no more. */
  async removeAllRows(id: string, context: RequestContext): Promise<void> {
    for (;;) {
      const rows = await this.rowsOf(id, context);
      if (rows.length === 0) return;
      await this.removeRows(rows, context);
    }
  }

  /** All rows under the id of a table, or of a backup. */
  async rowsOf(id: string, context: RequestContext): Promise<MetadataRow[]> {
    const rows: MetadataRow[] = [];
    for await (const found of this.#options.metadata.scan(keysOfTable(id), context)) rows.push(...found);
    return rows;
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

  async #createRow(key: string | undefined, row: MetadataRow, context: RequestContext): Promise<MetadataRow> {
    const { servers, env } = this.#options;
    const server = servers.choose();
    const id = env.random.uniqueName();
    const event = { kind: 'created', atMicros: env.clock.nowMicros() } as const;
    const commit = commitOfRow(id, event, key ?? keyOfRow(row), undefined, assignTo(row, server, event.atMicros));
    const [outcome] = await this.#commitAssignments([commit], context);
    if (outcome?.kind === 'refused') throw new BigtableError(Code.ABORTED, 'another master is creating the database');
    return commit.rows[0]!.row!;
  }

  /**
   * Gives the tablets of rows that are not with a live server to one. Returns what comes of each; all rows lie in one
   * tablet of METADATA, so that no commit waits for another one.
   */
  async assign(candidates: readonly Candidate[], context: RequestContext): Promise<Placement[]> {
    const { servers, env } = this.#options;
    assert(candidates.length > 0, 'some tablets are assigned together');
    assert(!candidates.some(({ row }) => row.isOfBackup), 'the row of a backup is given to no server');
    const known = new Set(
      await this.#withSchema(
        candidates.map(({ row }) => row),
        context,
      ),
    );
    const dead = await this.#deadOwners([...known]);
    const placements = new Array<Placement>(candidates.length).fill(SETTLED);
    const free: number[] = [];
    for (const [i, { row }] of candidates.entries()) {
      if (!known.has(row)) continue;
      const owner = row.server && servers.get(row.server.name);
      if (owner !== undefined && !this.#released.has(row)) {
        if (owner.tablets.get(keyOfRow(row)) !== row.epoch) placements[i] = { kind: 'load', server: owner, row };
      } else if (row.server === undefined || owner !== undefined || dead.has(row.server.name)) {
        const until = this.#options.sorting.sorted(row.logs);
        if (until === undefined) free.push(i);
        else placements[i] = { kind: 'sorting', until };
      } else {
        // a server that holds its lock and does not answer may still be serving: its tablets wait for its death
        servers.isNamed(row.server, { key: keyOfRow(row), epoch: row.epoch });
      }
    }
    const event = { kind: 'assigned', atMicros: env.clock.nowMicros() } as const;
    // no await between the choice of a server and the commit, so that it is not found dead unseen
    const given = free.map((i) => {
      const { row, preferred } = candidates[i]!;
      const left = this.#released.has(row) ? afterRelease(row) : row;
      const server = (preferred === undefined ? undefined : servers.get(preferred)) ?? servers.choose();
      return {
        i,
        server,
        commit: commitOfRow(env.random.uniqueName(), event, keyOfRow(row), row, assignTo(left, server, event.atMicros)),
      };
    });
    const outcomes = await this.#commitAssignments(
      given.map(({ commit }) => commit),
      context,
    ).catch((thrown: unknown) => {
      // a later attempt finds out whether it was carried out
      for (const { server, commit } of given) server.drop(commit.rows[0]!.key);
      throw thrown;
    });
    for (const [at, { i, server, commit }] of given.entries())
      placements[i] = this.#placed(candidates[i]!.row, server, commit, outcomes[at]!);
    return placements;
  }

  /** What comes of a tablet whose row is `before`, by the outcome of the commit that gives it to the server. */
  #placed(before: MetadataRow, server: LiveServer, commit: MetadataCommit, outcome: CommitOutcome): Placement {
    const { key, row } = commit.rows[0]!;
    if (outcome.kind === 'refused') {
      server.drop(key);
      return { kind: 'changed', row: outcome.rows[0] };
    }
    assert(row !== undefined, 'a tablet that is given away keeps its row');
    this.#released.delete(key);
    const owner = before.server && this.#options.servers.get(before.server.name);
    if (owner !== undefined && owner !== server) owner.drop(key);
    return { kind: 'load', server, row };
  }

  /** The dead among the servers that the rows name. */
  async #deadOwners(rows: readonly MetadataRow[]): Promise<Set<string>> {
    const { servers } = this.#options;
    const names = new Set(rows.flatMap(({ server }) => server?.name ?? []));
    const dead = await Promise.all(
      [...names].map(async (name) => {
        if (servers.get(name) !== undefined || servers.isSilent(name)) return [];
        return (await servers.isDead(name)) ? [name] : [];
      }),
    );
    return new Set(dead.flat());
  }

  /**
   * Commits rows that name new owners. The caller may cancel; until the outcome is known, or the master ends, no sweep
   * deletes the log of one of those owners, since a row may yet come to list it.
   */
  #commitAssignments(commits: readonly MetadataCommit[], context: RequestContext): Promise<CommitOutcome[]> {
    const { metadata, servers, env, context: ownContext } = this.#options;
    for (const commit of commits) for (const one of commit.rows) assertGiven(one);
    if (commits.length === 0) return Promise.resolve([]);
    const names = commits.flatMap(({ rows }) => rows.map(({ row }) => row!.server!.name));
    const known = servers.giving(names);
    const committing = metadata.commit(commits, ownContext()).finally(known);
    return within(committing, context, env.clock);
  }

  /**
   * The rows whose tables have schemas. Those that were never given to a server are left by a creation, and are
   * removed; the others are kept.
   */
  async #withSchema(rows: readonly MetadataRow[], context: RequestContext): Promise<MetadataRow[]> {
    const { schemas, deletions, creations } = this.#options;
    // what the watch has not reported yet may be a new table
    let isWhole = true;
    if (rows.some(({ tableId }) => schemas.byId(tableId) === undefined)) isWhole = await schemas.refreshAll();
    const [known, unknown]: [MetadataRow[], MetadataRow[]] = [[], []];
    for (const row of rows) (schemas.byId(row.tableId) === undefined ? unknown : known).push(row);
    // a damaged schema may be that of any table
    const created = isWhole ? unknown.filter(({ tableId, epoch }) => epoch === 0 && !creations.mayHappen(tableId)) : [];
    const left = created.filter(({ tableId }) => deletions.keptOf(tableId) === undefined);
    if (left.length > 0) await this.removeRows(left, context);
    for (const row of unknown)
      if (row.epoch > 0 && !deletions.has(row.tableId)) await this.#schemaless.keep(row, context);
    return known;
  }
}

function rootIsLost(found: string): CorruptionError {
  return new CorruptionError(
    'root',
    0,
    `the lock service (lock-service/files) has no file "root", which tells where the database begins, though ${found} exists: the file was removed`,
  );
}
