/**
 * Deletions of tables that are not over: each has a mark in the lock service
 * (docs/decisions/0021-tables-without-a-schema.md).
 *
 * Invariant: a table's schema is removed only while its mark is there, and the mark only when the table has its schema
 * yet, or no row any more. So rows without schema and without mark are those of a table whose schema has vanished,
 * unless they were never given to a server.
 */
import { assert } from '../base/index.ts';
import type { Env, LockHandle } from '../env/index.ts';
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

  /** Finds what an earlier master left. Where the schema is there the deletion has not come about. */
  async start(schemas: SchemaCache): Promise<void> {
    for (const { path, contents } of await this.#env.lockService.list(deletionPath())) {
      const { tableId, name } = decodeDeletionMark(path, contents);
      this.#names.set(tableId, name);
      if (schemas.byId(tableId) !== undefined) await this.end(tableId);
    }
  }

  /** Whether the rows of that table are to be removed. */
  has(tableId: string): boolean {
    return this.#names.has(tableId);
  }

  /** Ids and full names of the tables. */
  all(): [tableId: string, name: string][] {
    return [...this.#names];
  }

  /** Before the schema is removed. */
  async begin(tableId: string, name: string): Promise<void> {
    await this.#env.lockService.write(deletionPath(tableId), encodeDeletionMark({ name }), { lock: this.#lock });
    this.#names.set(tableId, name);
  }

  /** When no row is left, or the schema could not be removed. */
  async end(tableId: string): Promise<void> {
    assert(this.#names.has(tableId), 'a deletion ends that has not begun, or twice');
    await this.#env.lockService.remove(deletionPath(tableId), { lock: this.#lock });
    this.#names.delete(tableId);
  }
}
