/**
 * Deletions of tables in progress: each has a mark in the lock service
 * (docs/decisions/0021-tables-without-a-schema.md).
 *
 * Invariant: a table's schema is removed only while its mark exists, and the mark only while the schema exists, or once
 * no row does. So rows without schema and without mark are those of a table whose schema has vanished, unless they were
 * never given to a server.
 */
import { assert } from '../base/index.ts';
import { type Env, listFiles, type LockHandle } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import { decodeDeletionMark, deletionPath, encodeDeletionMark } from '../metadata/index.ts';

export class Deletions {
  readonly #env: Env;
  readonly #lock: LockHandle;
  readonly #names = new Map<string, string>();

  /** `lock`: the master's. */
  constructor(env: Env, lock: LockHandle) {
    this.#env = env;
    this.#lock = lock;
  }

  /** Finds the deletions that an earlier master left. If the schema exists the deletion has not happened. */
  async start(schemas: SchemaCache): Promise<void> {
    for (const { path, contents } of await listFiles(this.#env.lockService, deletionPath())) {
      const { tableId, name } = decodeDeletionMark(path, contents);
      this.#names.set(tableId, name);
      if (schemas.byId(tableId) !== undefined) await this.end(tableId);
    }
  }

  /** True when the rows of that table are to be removed. */
  has(tableId: string): boolean {
    return this.#names.has(tableId);
  }

  /** Ids and full names of the tables. */
  all(): [tableId: string, name: string][] {
    return [...this.#names];
  }

  /** Called before the schema is removed. */
  async begin(tableId: string, name: string): Promise<void> {
    await this.#env.lockService.write(deletionPath(tableId), encodeDeletionMark({ name }), { lock: this.#lock });
    this.#names.set(tableId, name);
  }

  /** Called when no row is left, or the schema could not be removed. */
  async end(tableId: string): Promise<void> {
    assert(this.#names.has(tableId), 'a deletion ends once, after it has begun');
    await this.#env.lockService.remove(deletionPath(tableId), { lock: this.#lock });
    this.#names.delete(tableId);
  }
}
