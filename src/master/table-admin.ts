/**
 * Creates, changes and deletes tables. The schema's file is the table: it is written after the rows of METADATA and
 * removed before them, by compare-and-set under the master's lock. The next assignment finishes a creation or deletion
 * that a crash cut short (docs/decisions/0021-tables-without-a-schema.md).
 *
 * Invariant: a table's rows name no server before its schema exists, and its schema is removed only while the mark of
 * its deletion exists.
 */
import {
  assert,
  BigtableError,
  type ByteString,
  Code,
  compareBytes,
  notFound,
  toBigtableError,
  unavailable,
} from '../base/index.ts';
import {
  type Env,
  isOutcomeUnknown,
  type LockHandle,
  removeSettled,
  type RequestContext,
  writeSettled,
} from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import { decodeSchema, encodeSchema, keyOfRow, type MetadataRow, schemaPath } from '../metadata/index.ts';
import type { RowRange, TableSchema } from '../model/index.ts';
import type { FamilyChange, MasterCalls, NewTable } from '../protocol/index.ts';
import type { Assignment } from './assignment.ts';
import type { AssignmentQueue } from './assignment-queue.ts';
import type { Creations } from './creations.ts';
import type { Deletions } from './deletions.ts';
import { changeFamilies, protectedTable, withQuota } from './family-changes.ts';
import { withGroups } from './locality-groups.ts';
import type { KeptTables } from './kept-tables.ts';
import { newRow } from './new-rows.ts';
import type { Servers } from './servers.ts';
import type { TableIds } from './table-ids.ts';
import { Turns } from './turns.ts';

export interface TableAdminOptions {
  readonly env: Env;
  /** The master's. */
  readonly lock: LockHandle;
  readonly schemas: SchemaCache;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly queue: AssignmentQueue;
  readonly creations: Creations;
  readonly deletions: Deletions;
  readonly ids: TableIds;
  readonly kept: KeptTables;
  /** How long deleted tables are kept. 0: not at all. */
  readonly keepDeletedMs: number;
  /** Called when rows of a deleted table are left: `finishDeletions` is due. */
  readonly onRowsLeft: () => void;
}

/** What a new table has, by its id. */
export interface TableContents {
  readonly schemaOf: (id: string) => TableSchema;
  /** Creates its rows of METADATA. */
  readonly createRows: (id: string) => Promise<MetadataRow[]>;
}

/** A change of a schema that was made and that some server has not confirmed. */
interface Unconfirmed {
  readonly before: TableSchema;
  /** The version that the change made of the schema's file. */
  readonly version: number;
  readonly contents: Uint8Array;
}

export class TableAdmin {
  readonly #options: TableAdminOptions;
  /** Changes of one table come one after another. */
  readonly #changes = new Turns();
  /** By table name, the last change if it is not confirmed: its repetition is not a second change. */
  readonly #unconfirmed = new Map<string, Unconfirmed>();

  constructor(options: TableAdminOptions) {
    this.#options = options;
  }

  createTable(table: NewTable, context: RequestContext): Promise<TableSchema> {
    const { assignment } = this.#options;
    const contents: TableContents = {
      schemaOf: (id) => schemaOf(table, id),
      createRows: (id) =>
        assignment.createRows(
          rangesOf(table.splits).map((range) => newRow(id, range, table.changeStream !== undefined)),
          context,
        ),
    };
    return this.#changes.inTurn(table.name, () => this.#createTable(table.name, contents, context));
  }

  /** Creates a table with rows of METADATA that list files already. */
  restoreTable(name: string, contents: TableContents, context: RequestContext): Promise<TableSchema> {
    return this.#changes.inTurn(name, () => this.#createTable(name, contents, context));
  }

  updateTable(
    { name, deletionProtection, groups, changeStream, extra }: MasterCalls['updateTable']['message'],
    context: RequestContext,
  ): Promise<TableSchema> {
    return this.#change(name, context, (schema) => ({
      ...(groups ? withGroups(schema, groups) : schema),
      deletionProtection: deletionProtection ?? schema.deletionProtection,
      ...(changeStream !== undefined && { changeStream: changeStream === 'none' ? undefined : changeStream }),
      ...(extra && { extra: { ...schema.extra, ...extra } }),
    }));
  }

  modifyFamilies(name: string, changes: readonly FamilyChange[], context: RequestContext): Promise<TableSchema> {
    return this.#change(name, context, (schema) => changeFamilies(schema, changes));
  }

  setQuota({ name, ...change }: MasterCalls['setQuota']['message'], context: RequestContext): Promise<TableSchema> {
    return this.#change(name, context, (schema) => withQuota(schema, change));
  }

  /**
   * Resolves to true if the table is kept. `atOnce`: it is not; where there is no table of the name, the one that was
   * deleted last is removed.
   */
  deleteTable(name: string, atOnce: boolean, context: RequestContext): Promise<boolean> {
    const isKept = this.#options.keepDeletedMs > 0;
    return this.#changes.inTurn(name, () =>
      atOnce ? this.#deleteAtOnce(name, context) : this.#deleteTable(name, isKept, context),
    );
  }

  /**
   * Restores the table of that name that was deleted last. NOT_FOUND where none is kept, ALREADY_EXISTS where there is
   * a table of the name.
   */
  undeleteTable(name: string, context: RequestContext): Promise<TableSchema> {
    return this.#changes.inTurn(name, () => this.#undeleteTable(name, context));
  }

  async #createTable(
    name: string,
    { schemaOf, createRows }: TableContents,
    context: RequestContext,
  ): Promise<TableSchema> {
    const { env, lock, schemas, servers, assignment, queue, creations, ids } = this.#options;
    if (await schemas.read(name)) throw exists(name);
    const clearing = this.#clearName(name);
    if (clearing !== undefined) await clearing;
    const id = await ids.next();
    // encoded and decoded, so that the kept schema is the one that would be read
    const contents = encodeSchema(schemaOf(id));
    const schema = decodeSchema(schemaPath(name), contents);
    creations.begin(id);
    try {
      const rows = await createRows(id);
      await writeSettled(env, schemaPath(name), contents, { version: 0, lock }).catch(async (thrown: unknown) => {
        const error = toBigtableError(thrown);
        if (isOutcomeUnknown(error)) {
          creations.outcomeUnknown(id);
          throw error;
        }
        await assignment.removeRows(rows, context);
        throw error.code === Code.ABORTED && (await schemas.read(name)) ? exists(name) : error;
      });
      await schemas.refresh(name);
      // a server that misses this reads the schema when it is given a tablet of the table
      await servers.callAll('schemaChanged', { tableName: name }, context);
      const failures = await Promise.all(rows.map((row) => queue.look(keyOfRow(row), row)));
      const failure = failures.find((one) => one !== undefined);
      if (failure) throw failure;
    } finally {
      creations.end(id);
    }
    return schema;
  }

  /** Resolves to true if the table is kept. */
  async #deleteTable(name: string, isKept: boolean, context: RequestContext): Promise<boolean> {
    const { env, lock, schemas, deletions, onRowsLeft } = this.#options;
    const known = await schemas.read(name);
    if (!known) {
      const left = deletions.unfinished().findLast((deletion) => deletion[1] === name);
      if (left === undefined) throw noTable(name);
      // the repetition of a deletion that was not confirmed
      await this.#confirm(name, context);
      await this.#finishDeletion(left[0], name, context);
      return deletions.has(left[0]);
    }
    if (known.schema.deletionProtection) throw protectedTable(name, 'it cannot be deleted');
    const { id } = known.schema;
    if (deletions.hasFiles(id)) {
      // left by an earlier deletion, which did not happen, or after which the table was restored
      await this.#cancelDeletion(id, name);
      return this.#deleteTable(name, isKept, context);
    }
    if (isKept) await this.#beginToKeep(known.schema, context);
    else await deletions.begin(id, name);
    assert(deletions.has(id), 'the schema of a table is removed after the mark of its deletion is set');
    await removeSettled(env, schemaPath(name), { version: known.version, lock }).catch(async (thrown: unknown) => {
      // if that fails the next assignment does it
      await this.#cancelDeletion(id, name).catch(() => {});
      throw thrown;
    });
    // from here on the table is gone: the steps that fail below are repeated
    this.#unconfirmed.delete(name);
    await this.#confirm(name, context).catch((thrown: unknown) => {
      onRowsLeft();
      throw thrown;
    });
    await this.#finishDeletion(id, name, context).catch((thrown: unknown) => {
      const error = toBigtableError(thrown).message;
      const left = isKept ? 'tablets of a deleted table are not released yet' : 'rows of a deleted table are left';
      env.logger.warn(isKept ? left : `${left}, and will be removed later`, { table: name, error });
      onRowsLeft();
    });
    return isKept;
  }

  async #deleteAtOnce(name: string, context: RequestContext): Promise<boolean> {
    const { schemas, deletions, creations } = this.#options;
    const last = (await schemas.read(name)) === undefined ? deletions.lastKept(name) : undefined;
    if (last === undefined) return this.#deleteTable(name, false, context);
    const { tableId } = last;
    if (creations.mayHappen(tableId)) throw unavailable(`table ${name} may yet be restored: try again`);
    await this.#confirm(name, context);
    await deletions.drop(tableId);
    await this.#finishDeletion(tableId, name, context);
    return false;
  }

  /** Marks the table as one that is kept, and copies its schema. */
  async #beginToKeep(schema: TableSchema, context: RequestContext): Promise<void> {
    const { env, assignment, deletions, kept, keepDeletedMs, onRowsLeft } = this.#options;
    const { id, name } = schema;
    const tablets = (await assignment.rowsOf(id, context)).length;
    if (kept.makeRoom(tablets)) onRowsLeft();
    const deletedMicros = env.clock.nowMicros();
    const keptUntilMicros = deletedMicros + keepDeletedMs * 1000;
    await deletions.begin(id, name, { deletedMicros, keptUntilMicros, tablets });
    await kept.keepSchema(schema);
  }

  /** A table of the name is to be created, or restored: the files of deleted ones are to lie apart before. */
  #clearName(name: string): Promise<void> | undefined {
    const { deletions, kept } = this.#options;
    const left = deletions.kept().filter((one) => one.name === name && !deletions.areFilesApart(one.tableId));
    if (left.length === 0) return undefined;
    return left.reduce((before, { tableId }) => before.then(() => kept.keepFiles(tableId, name)), Promise.resolve());
  }

  async #undeleteTable(name: string, { deadlineMs, ...rest }: RequestContext): Promise<TableSchema> {
    // what was begun is finished also after the caller's deadline: its repetition would not be known as one
    const context = { ...rest, deadlineMs: Number.POSITIVE_INFINITY };
    const { env, lock, schemas, servers, queue, creations, deletions, kept, onRowsLeft } = this.#options;
    const existing = await schemas.read(name);
    if (existing !== undefined) {
      // one that was restored, or not deleted, and whose mark is left
      if (!deletions.hasFiles(existing.schema.id)) throw exists(name);
      await this.#cancelDeletion(existing.schema.id, name);
      return existing.schema;
    }
    const last = deletions.lastKept(name);
    if (last === undefined) throw notFound(`table ${name} was not deleted, or is not kept any longer`);
    const { tableId: id } = last;
    const schema = await kept.schemaOf(last);
    const clearing = this.#clearName(name);
    if (clearing !== undefined) await clearing;
    creations.begin(id);
    try {
      // a server that has let a tablet go, or is about to, does not load it at the same epoch
      await kept.release(id, { ...context, deadlineMs }).catch((thrown: unknown) => {
        const error = toBigtableError(thrown).message;
        env.logger.info('a table is restored before its tablets are released', { table: name, error });
      });
      const rows = await kept.rowsOf(id, name, context);
      await kept.returnFiles(id, name, context);
      // its time may be over by now: the table was kept when its restoration was requested
      assert(deletions.keptOf(id) !== undefined, 'a table that is restored is kept until it is there');
      await writeSettled(env, schemaPath(name), encodeSchema(schema), { version: 0, lock }).catch((thrown: unknown) => {
        if (isOutcomeUnknown(toBigtableError(thrown))) creations.outcomeUnknown(id);
        throw thrown;
      });
      await schemas.refresh(name);
      // the table is there: the rest may be repeated
      await this.#endMark(id).catch((thrown: unknown) => {
        const error = toBigtableError(thrown).message;
        env.logger.warn('the mark of a deletion is left, and will be removed later', { table: name, error });
        onRowsLeft();
      });
      // a server that misses this reads the schema when it is given a tablet of the table
      await servers.callAll('schemaChanged', { tableName: name }, context);
      // the table is there, though a tablet is not served yet
      await Promise.all(rows.map((row) => queue.look(keyOfRow(row))));
    } finally {
      creations.end(id);
    }
    return schema;
  }

  /** Removes the mark, and before it the files that lie apart. */
  #endMark(id: string): Promise<void> {
    const { deletions, kept } = this.#options;
    return deletions.hasFiles(id) ? kept.forgetFiles(id).then(() => deletions.end(id)) : deletions.end(id);
  }

  /** Finishes deletions that were cut short. */
  async finishDeletions(context: RequestContext): Promise<void> {
    const { deletions } = this.#options;
    let failure: { readonly thrown: unknown } | undefined;
    for (const [id, name] of deletions.unfinished()) {
      // the change under way may be this very deletion, or a second attempt of it
      if (this.#changes.has(name) || !deletions.has(id)) continue;
      try {
        await this.#changes.inTurn(name, async () => {
          if (!(await this.#cancelDeletion(id, name))) await this.#finishDeletion(id, name, context);
        });
      } catch (thrown) {
        // a kept table whose server does not answer keeps no other from its end
        if (deletions.keptOf(id) === undefined) throw thrown;
        failure ??= { thrown };
      }
    }
    if (failure !== undefined) throw failure.thrown;
  }

  /**
   * Keeps a table whose schema could not be removed; false if it was. The schema is written once more, so that a
   * removal with an unknown outcome cannot happen when the mark is gone.
   */
  async #cancelDeletion(id: string, name: string): Promise<boolean> {
    const { env, lock, schemas } = this.#options;
    const known = await schemas.read(name);
    if (known?.schema.id !== id) return false;
    await writeSettled(env, schemaPath(name), encodeSchema(known.schema), { version: known.version, lock });
    await this.#endMark(id);
    return true;
  }

  /**
   * Finishes the deletion of a table whose schema is gone already: removes its rows, or, while it is kept, has its
   * tablets released.
   */
  async #finishDeletion(id: string, name: string, context: RequestContext): Promise<void> {
    const { assignment, deletions, schemas, creations, kept } = this.#options;
    assert(schemas.byId(id) === undefined, 'the rows of a table are removed after its schema');
    // its schema may yet be written
    const mayBeRestored = creations.mayHappen(id);
    if (deletions.isOver(id) && !mayBeRestored) await deletions.drop(id);
    if (deletions.keptOf(id) !== undefined) {
      await kept.keepFiles(id, name);
      await kept.release(id, context);
      if (!mayBeRestored) deletions.settled(id);
      return;
    }
    if (deletions.hasFiles(id)) await kept.keepFiles(id, name);
    await assignment.removeAllRows(id, context);
    await this.#endMark(id);
  }

  #change(name: string, context: RequestContext, change: (schema: TableSchema) => TableSchema): Promise<TableSchema> {
    const { env, lock, schemas } = this.#options;
    return this.#changes.inTurn(name, async () => {
      const known = await schemas.read(name);
      if (!known) throw noTable(name);
      if (this.#isRepetition(known.schema, known.version, change)) {
        await this.#confirm(name, context);
        return known.schema;
      }
      const changed = await this.#changed(known.schema, change, context);
      assert(
        changed.id === known.schema.id && changed.name === known.schema.name,
        'a change of a schema leaves it that of its table',
      );
      const contents = encodeSchema(changed);
      const version = await writeSettled(env, schemaPath(name), contents, { version: known.version, lock });
      assert(version > known.version, 'a change of a schema raises the version of its file');
      this.#unconfirmed.set(name, { before: known.schema, version, contents });
      await this.#confirm(name, context);
      return decodeSchema(schemaPath(name), contents);
    });
  }

  /** True when the last change made the same schema of the same one, and was not confirmed. */
  #isRepetition({ name, id }: TableSchema, version: number, change: (schema: TableSchema) => TableSchema): boolean {
    const last = this.#unconfirmed.get(name);
    if (last?.version !== version || last.before.id !== id) return false;
    try {
      return compareBytes(encodeSchema(change(last.before)), last.contents) === 0;
    } catch {
      // another change, that this schema does not allow
      return false;
    }
  }

  /**
   * The schema with that change. A refusal because of what an earlier change has made comes once that one is confirmed:
   * it may be a repetition whose first call an earlier master answered with UNAVAILABLE.
   */
  async #changed(
    schema: TableSchema,
    change: (schema: TableSchema) => TableSchema,
    context: RequestContext,
  ): Promise<TableSchema> {
    try {
      return change(schema);
    } catch (thrown) {
      const { code } = toBigtableError(thrown);
      if (code === Code.ALREADY_EXISTS || code === Code.NOT_FOUND) await this.#confirm(schema.name, context);
      throw thrown;
    }
  }

  /** Resolves when the master and all servers have read the schema's file as it is now. */
  async #confirm(name: string, context: RequestContext): Promise<void> {
    assert(this.#changes.has(name), 'no other change of the table comes before the confirmation');
    await this.#options.schemas.refresh(name);
    await this.#options.servers.confirm(`the schema of table ${name}`, 'schemaChanged', { tableName: name }, context);
    this.#unconfirmed.delete(name);
  }
}

function schemaOf(
  { name, families, granularity, deletionProtection, groups, changeStream, extra }: NewTable,
  id: string,
): TableSchema {
  const changes = families.map((family): FamilyChange => ({ kind: 'create', family }));
  const schema = changeFamilies(
    {
      name,
      id,
      granularity,
      families: {},
      deletionProtection,
      ...(changeStream && { changeStream }),
      ...(extra && { extra }),
    },
    changes,
  );
  return groups ? withGroups(schema, groups) : schema;
}

/** Consecutive ranges that meet at the splits. */
function rangesOf(splits: readonly ByteString[]): RowRange[] {
  const keys = [...new Set(splits)].filter((key) => key !== '').sort();
  return [...keys, undefined].map((end, i) => ({ start: i === 0 ? '' : keys[i - 1]!, end }));
}

function exists(name: string): BigtableError {
  return new BigtableError(Code.ALREADY_EXISTS, `table ${name} exists already`);
}

export function noTable(name: string): BigtableError {
  return notFound(`table ${name} does not exist`);
}
