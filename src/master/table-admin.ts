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
import { changeFamilies, protectedTable } from './family-changes.ts';
import { withGroups } from './locality-groups.ts';
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

  deleteTable(name: string, context: RequestContext): Promise<void> {
    return this.#changes.inTurn(name, () => this.#deleteTable(name, context));
  }

  async #createTable(
    name: string,
    { schemaOf, createRows }: TableContents,
    context: RequestContext,
  ): Promise<TableSchema> {
    const { env, lock, schemas, servers, assignment, queue, creations, ids } = this.#options;
    if (await schemas.read(name)) throw exists(name);
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

  async #deleteTable(name: string, context: RequestContext): Promise<void> {
    const { env, lock, schemas, deletions, onRowsLeft } = this.#options;
    const known = await schemas.read(name);
    if (!known) {
      const left = deletions.all().find((deletion) => deletion[1] === name);
      if (left === undefined) throw noTable(name);
      // the repetition of a deletion that was not confirmed
      await this.#confirm(name, context);
      return this.#finishDeletion(left[0], context);
    }
    if (known.schema.deletionProtection) throw protectedTable(name, 'it cannot be deleted');
    const { id } = known.schema;
    await deletions.begin(id, name);
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
    await this.#finishDeletion(id, context).catch((thrown: unknown) => {
      const error = toBigtableError(thrown).message;
      env.logger.warn('rows of a deleted table are left, and will be removed later', { table: name, error });
      onRowsLeft();
    });
  }

  /** Finishes deletions that were cut short. */
  async finishDeletions(context: RequestContext): Promise<void> {
    const { deletions } = this.#options;
    for (const [id, name] of deletions.all()) {
      // the change under way may be this very deletion, or a second attempt of it
      if (this.#changes.has(name) || !deletions.has(id)) continue;
      await this.#changes.inTurn(name, async () => {
        if (!(await this.#cancelDeletion(id, name))) await this.#finishDeletion(id, context);
      });
    }
  }

  /**
   * Keeps a table whose schema could not be removed; false if it was. The schema is written once more, so that a
   * removal with an unknown outcome cannot happen when the mark is gone.
   */
  async #cancelDeletion(id: string, name: string): Promise<boolean> {
    const { env, lock, schemas, deletions } = this.#options;
    const known = await schemas.read(name);
    if (known?.schema.id !== id) return false;
    await writeSettled(env, schemaPath(name), encodeSchema(known.schema), { version: known.version, lock });
    await deletions.end(id);
    return true;
  }

  /** Finishes the deletion of a table whose schema is gone already. */
  async #finishDeletion(id: string, context: RequestContext): Promise<void> {
    const { assignment, deletions, schemas } = this.#options;
    assert(schemas.byId(id) === undefined, 'the rows of a table are removed after its schema');
    await assignment.removeAllRows(id, context);
    await deletions.end(id);
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
