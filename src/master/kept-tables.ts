/**
 * What becomes of the parts of a deleted table that is kept: its schema and the files of the lock service that belong
 * to it lie apart, its tablets are flushed and taken from their servers, and its rows of METADATA stay, so that no
 * sweep deletes what they list (docs/decisions/0106-undeleting-tables.md).
 *
 * Invariants: no acknowledged write is left in memory alone when a server lets a tablet go; the row of a tablet whose
 * server is dead keeps the logs that it lists. Each step may be repeated, by another master too.
 */
import { assert, BigtableError, Code, CorruptionError, unavailable } from '../base/index.ts';
import { type Env, type LockHandle, type RequestContext, writeSettled } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import {
  commitOfRow,
  decodeSchema,
  encodeSchema,
  keptFilePath,
  keyOfRow,
  type MetadataRow,
  releasedAt,
  schemaPath,
} from '../metadata/index.ts';
import { instanceOfTable, type TableSchema } from '../model/index.ts';
import type { TabletRef } from '../protocol/index.ts';
import { forgetFiles, keepFiles, returnFiles } from '../resources/index.ts';
import type { Assignment } from './assignment.ts';
import type { Deletions, Kept } from './deletions.ts';
import type { LiveServer } from './live-server.ts';
import { afterRelease } from './new-rows.ts';
import type { Servers } from './servers.ts';

/** Together they bound the lists of kept tables and METADATA. */
export const MAX_KEPT_TABLES = 1000;
export const MAX_KEPT_TABLETS = 100_000;

/** The row of a tablet that is free, and what the release leaves of it. */
interface Freed {
  readonly row: MetadataRow;
  readonly left: MetadataRow;
}

export interface KeptTablesOptions {
  readonly env: Env;
  /** The master's. */
  readonly lock: LockHandle;
  readonly metadata: MetadataClient;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly deletions: Deletions;
}

export class KeptTables {
  readonly #options: KeptTablesOptions;

  constructor(options: KeptTablesOptions) {
    this.#options = options;
  }

  /**
   * Lets the oldest go where another table, with that number of tablets, is too much: of the instance that has the
   * most, so that one does not take the room of the others. One table alone may have any number. True if one is to go.
   */
  makeRoom(tablets: number): boolean {
    const { deletions, env } = this.#options;
    const kept = deletions.kept().filter(({ tableId }) => !deletions.isOver(tableId));
    const before = kept.length;
    assert(tablets > 0, 'a table that exists has tablets');
    let sum = kept.reduce((all, one) => all + one.tablets, tablets);
    while (kept.length > 0 && (kept.length >= MAX_KEPT_TABLES || sum > MAX_KEPT_TABLETS)) {
      const [oldest] = kept.splice(indexOfOldest(kept), 1);
      assert(oldest !== undefined, 'there is an oldest of some');
      sum -= oldest.tablets;
      deletions.hurry(oldest.tableId);
      env.logger.warn('a deleted table is kept no longer, because there are too many', { table: oldest.name });
    }
    return kept.length < before;
  }

  /** Copies the schema, before its file is removed. */
  async keepSchema(schema: TableSchema): Promise<void> {
    const { env, lock } = this.#options;
    assert(
      this.#options.deletions.keptOf(schema.id) !== undefined,
      'the schema of a table is copied once it has a mark',
    );
    const path = keptFilePath(schema.id, schemaPath(schema.name));
    const version = (await env.lockService.read(path))?.version ?? 0;
    await writeSettled(env, path, encodeSchema(schema), { version, lock });
  }

  /** DATA_LOSS where the copy is missing, or cannot be read. */
  async schemaOf({ tableId, name }: Pick<Kept, 'tableId' | 'name'>): Promise<TableSchema> {
    const path = keptFilePath(tableId, schemaPath(name));
    const file = await this.#options.env.lockService.read(path);
    if (file === undefined) throw new CorruptionError(path, 0, 'the copy of the schema of a deleted table is missing');
    const schema = decodeSchema(path, file.contents);
    if (schema.id !== tableId || schema.name !== name)
      throw new CorruptionError(path, 0, `it is the schema of table ${schema.id} (${schema.name})`);
    return schema;
  }

  /** Moves the files of the table to their place apart. */
  async keepFiles(tableId: string, name: string): Promise<void> {
    const { deletions } = this.#options;
    if (deletions.areFilesApart(tableId)) return;
    await keepFiles(this.#files(), name, tableId);
    deletions.filesAreApart(tableId);
  }

  /** Puts the files back. Returns when all front doors have read them. */
  async returnFiles(tableId: string, name: string, context: RequestContext): Promise<void> {
    const { servers } = this.#options;
    const paths = await returnFiles(this.#files(), name, tableId);
    if (paths.length > 0) await servers.confirm(paths.join(', '), 'doorFilesChanged', { paths }, context);
  }

  /** Removes what lies apart. */
  async forgetFiles(tableId: string): Promise<void> {
    await forgetFiles(this.#files(), tableId);
  }

  /** FAILED_PRECONDITION where rows of the table are missing, so that it cannot be restored. */
  async rowsOf(tableId: string, name: string, context: RequestContext): Promise<MetadataRow[]> {
    const rows = await this.#options.assignment.rowsOf(tableId, context);
    if (rows.length === 0)
      throw new BigtableError(Code.FAILED_PRECONDITION, `deleted table ${name} has no rows of METADATA any more`);
    return rows;
  }

  /**
   * Takes the tablets of the table from their servers. UNAVAILABLE where some server does not answer, or tablets are
   * split or moved meanwhile: to be repeated.
   */
  async release(tableId: string, context: RequestContext): Promise<void> {
    const { assignment } = this.#options;
    const rows = (await assignment.rowsOf(tableId, context)).filter(({ server }) => server !== undefined);
    if (rows.length === 0) return;
    const released = await this.#unload(rows, context);
    const again = (await assignment.rowsOf(tableId, context)).filter(({ server }) => server !== undefined);
    const free: Freed[] = [];
    for (const row of again) {
      const isReleased = released.has(refText(refOf(row)));
      if (isReleased || (await this.#isDead(row))) free.push({ row, left: isReleased ? afterRelease(row) : row });
    }
    await this.#commit(free, context);
    if (free.length < again.length) throw unavailable('tablets of a deleted table are not released yet');
  }

  /** Has the live servers of the rows flush the tablets and let them go. Returns those that did, at their epochs. */
  async #unload(rows: readonly MetadataRow[], context: RequestContext): Promise<ReadonlySet<string>> {
    const { servers } = this.#options;
    const byServer = new Map<LiveServer, TabletRef[]>();
    for (const row of rows) {
      const owner = row.server && servers.get(row.server.name);
      if (owner === undefined) continue;
      const refs = byServer.get(owner) ?? [];
      refs.push(refOf(row));
      byServer.set(owner, refs);
    }
    const released = new Set<string>();
    await Promise.all(
      [...byServer].map(async ([server, tablets]) => {
        const errors = await servers.caller.callUntilDone(server, 'unload', { tablets, flush: true }, context);
        assert(errors.length === tablets.length, 'each tablet that is unloaded has an answer');
        for (const [i, ref] of tablets.entries()) {
          if (errors[i] !== undefined) continue;
          server.drop(ref.key);
          released.add(refText(ref));
        }
      }),
    );
    return released;
  }

  /** True when the server that the row names is dead. */
  async #isDead({ server }: MetadataRow): Promise<boolean> {
    const { servers } = this.#options;
    if (server === undefined || servers.get(server.name) !== undefined || servers.isSilent(server.name)) return false;
    return servers.isDead(server.name);
  }

  async #commit(freed: readonly Freed[], context: RequestContext): Promise<void> {
    const { env, metadata, servers } = this.#options;
    if (freed.length === 0) return;
    assert(
      freed.every(({ row: { server, epoch } }) => server !== undefined && epoch > 0),
      'a tablet is released that a server had',
    );
    const event = { kind: 'released', atMicros: env.clock.nowMicros() } as const;
    await servers.checkMastership();
    await metadata.commit(
      freed.map(({ row, left }) =>
        commitOfRow(env.random.uniqueName(), event, keyOfRow(row), row, releasedAt(left, event.atMicros)),
      ),
      context,
    );
  }

  #files() {
    const { env, lock } = this.#options;
    return { lockService: env.lockService, clock: env.clock, lock };
  }
}

/** The index of the oldest table of the instance that has the most. The oldest come first. */
function indexOfOldest(kept: readonly Kept[]): number {
  const counts = new Map<string, number>();
  for (const { name } of kept) counts.set(instanceOfTable(name), (counts.get(instanceOfTable(name)) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return kept.findIndex(({ name }) => counts.get(instanceOfTable(name)) === most);
}

function refOf(row: MetadataRow): TabletRef {
  return { key: keyOfRow(row), epoch: row.epoch };
}

function refText({ key, epoch }: TabletRef): string {
  return `${epoch} ${key}`;
}
