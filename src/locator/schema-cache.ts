/**
 * The tables' schemas as this process knows them: read from the lock service at start, updated by its watch. Clients,
 * tablet servers and masters each have one.
 *
 * Invariant: one object for each state of a schema, so that a holder of derived data compares by identity. A miss
 * proves nothing: `find` reads the file.
 */
import { assert, Code, toBigtableError } from '../base/index.ts';
import { type Clock, followChanges, listFiles, type LockService, type Logger } from '../env/index.ts';
import { decodeSchema, METADATA_SCHEMA, schemaPath } from '../metadata/index.ts';
import type { TableSchema } from '../model/index.ts';

interface Known {
  readonly schema: TableSchema;
  readonly version: number;
}

/**
 * Reads of a file come one after another, so that the last one started wins. Callers that request one while another
 * runs share the next.
 */
interface Reading {
  readonly done: Promise<void>;
  next: Promise<void> | undefined;
}

export interface SchemaCacheParts {
  readonly lockService: LockService;
  readonly clock: Clock;
}

/** A cache that logs what it could not read. */
export function loggingSchemaCache(env: SchemaCacheParts & { readonly logger: Logger }): SchemaCache {
  return new SchemaCache(env, (thrown) =>
    env.logger.error('a schema could not be read', { error: toBigtableError(thrown).message }),
  );
}

export class SchemaCache {
  readonly #parts: SchemaCacheParts;
  readonly #byName = new Map<string, Known>();
  readonly #byId = new Map<string, TableSchema>([[METADATA_SCHEMA.id, METADATA_SCHEMA]]);
  /** By table, the read of its file that is under way. */
  readonly #readings = new Map<string, Reading>();
  readonly #onError: (error: unknown) => void;
  /** The last one requested by name: calls name the same table over and over, by one string. */
  #last: { readonly name: string; readonly schema: TableSchema | undefined } | undefined;
  #isStarted = false;
  #stopWatching: (() => void) | undefined;

  constructor(parts: SchemaCacheParts, onError: (error: unknown) => void) {
    this.#parts = parts;
    this.#onError = onError;
  }

  async start(): Promise<void> {
    assert(!this.#isStarted, 'a cache of schemas is started once');
    this.#isStarted = true;
    const prefix = schemaPath('');
    const changed = new Set<string>();
    this.#stopWatching = await followChanges(this.#parts, prefix, {
      onChange: (event, missed) => {
        if (event.kind !== 'changed' && event.kind !== 'deleted') return;
        const name = event.path.slice(prefix.length);
        changed.add(name);
        this.refresh(name).catch((thrown: unknown) => {
          this.#onError(thrown);
          if (!cannotBeUnderstood(thrown)) missed();
        });
      },
      readAgain: async () => void (await this.refreshAll()),
    });
    try {
      for (const file of await listFiles(this.#parts.lockService, prefix)) {
        const name = file.path.slice(prefix.length);
        if (!changed.has(name))
          this.#set(name, { schema: decodeSchema(file.path, file.contents), version: file.version });
      }
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  stop(): void {
    this.#stopWatching?.();
  }

  /** The number of tables that are known now. */
  get size(): number {
    return this.#byName.size;
  }

  /** By full name, as known now. */
  byName(name: string): TableSchema | undefined {
    if (this.#last?.name !== name) this.#last = { name, schema: this.#byName.get(name)?.schema };
    return this.#last.schema;
  }

  byId(id: string): TableSchema | undefined {
    return this.#byId.get(id);
  }

  /** The version of the file with the schema that is known of that table; undefined if none is. */
  versionOf(id: string): number | undefined {
    const schema = this.#byId.get(id);
    return schema && this.#byName.get(schema.name)?.version;
  }

  /** Reads the table's file again if the schema that is known is of an earlier version, or none is. */
  async reach(id: string, name: string, version: number): Promise<void> {
    if ((this.versionOf(id) ?? 0) < version) await this.refresh(name);
  }

  /** All tables whose name starts with `prefix`, by name. */
  list(prefix: string): TableSchema[] {
    const found = [...this.#byName.values()].filter(({ schema }) => schema.name.startsWith(prefix));
    return found.map(({ schema }) => schema).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The schema and its file's version, as they surely were at some instant since the call. */
  async read(name: string): Promise<{ readonly schema: TableSchema; readonly version: number } | undefined> {
    await this.refresh(name);
    return this.#byName.get(name);
  }

  /** Reads the file again: afterwards this cache has its contents. */
  refresh(name: string): Promise<void> {
    const under = this.#readings.get(name);
    if (under === undefined) return this.#startReading(name);
    under.next ??= under.done.catch(() => {}).then(() => this.#startReading(name));
    return under.next;
  }

  /**
   * Reads all files that have changed: afterwards this cache has every table that existed when this was called. False:
   * not those whose files cannot be understood. Rejects if a file cannot be read now.
   */
  async refreshAll(): Promise<boolean> {
    const prefix = schemaPath('');
    const missing = new Set(this.#byName.keys());
    let isWhole = true;
    const read = async (name: string): Promise<void> => {
      try {
        await this.refresh(name);
      } catch (thrown) {
        this.#onError(thrown);
        if (!cannotBeUnderstood(thrown)) throw thrown;
        isWhole = false;
      }
    };
    for (const { path, version } of await listFiles(this.#parts.lockService, prefix)) {
      const name = path.slice(prefix.length);
      missing.delete(name);
      if (this.#byName.get(name)?.version !== version) await read(name);
    }
    for (const name of missing) await read(name);
    return isWhole;
  }

  #startReading(name: string): Promise<void> {
    const before = this.#readings.get(name);
    assert(before === undefined || before.next !== undefined, 'one read of a schema runs at a time');
    const reading: Reading = { done: this.#readFile(name), next: undefined };
    this.#readings.set(name, reading);
    const remove = (): void => {
      if (reading.next === undefined) this.#readings.delete(name);
    };
    reading.done.then(remove, remove);
    return reading.done;
  }

  async #readFile(name: string): Promise<void> {
    const path = schemaPath(name);
    const file = await this.#parts.lockService.read(path);
    const known = this.#byName.get(name);
    if (file === undefined) this.#set(name, undefined);
    else if (known?.version !== file.version)
      this.#set(name, { schema: decodeSchema(path, file.contents), version: file.version });
  }

  #set(name: string, next: Known | undefined): void {
    this.#last = undefined;
    const before = this.#byName.get(name);
    if (before && before.schema.id !== next?.schema.id) this.#byId.delete(before.schema.id);
    if (next === undefined) {
      this.#byName.delete(name);
    } else {
      this.#byName.set(name, next);
      this.#byId.set(next.schema.id, next.schema);
    }
  }
}

/** The file is damaged, or a later version has written it. */
function cannotBeUnderstood(thrown: unknown): boolean {
  const { code } = toBigtableError(thrown);
  return code === Code.DATA_LOSS || code === Code.FAILED_PRECONDITION;
}
