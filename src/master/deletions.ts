/**
 * Deletions of tables: each has a mark in the lock service (docs/decisions/0021-tables-without-a-schema.md). The mark
 * of a table that is kept stays until the table is restored, or its time is over
 * (docs/decisions/0106-undeleting-tables.md).
 *
 * Invariant: a table's schema is removed only while its mark exists, and the mark only while the schema exists, or once
 * no row does. So rows without schema and without mark are those of a table whose schema has vanished, unless they were
 * never given to a server. Rows are removed only while the mark does not say that the table is kept.
 */
import { assert } from '../base/index.ts';
import { type Env, listFiles, type LockHandle, removeSettled, writeSettled } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import {
  decodeDeletionMark,
  type DeletionMark,
  deletionPath,
  encodeDeletionMark,
  type KeptTable,
} from '../metadata/index.ts';

type Mark = Omit<DeletionMark, 'tableId'>;

/** A table that is kept. */
export interface Kept extends KeptTable {
  readonly tableId: string;
  readonly name: string;
}

export class Deletions {
  readonly #env: Env;
  readonly #lock: LockHandle;
  readonly #marks = new Map<string, Mark>();
  /** Ids of kept tables whose files lie apart. */
  readonly #apart = new Set<string>();
  /** Ids of kept tables of which nothing is left to be done before their time is over. */
  readonly #settled = new Set<string>();

  /** `lock`: the master's. */
  constructor(env: Env, lock: LockHandle) {
    this.#env = env;
    this.#lock = lock;
  }

  /**
   * Finds the deletions that an earlier master left. If the schema exists the deletion has not happened, or the table
   * was restored.
   */
  async start(schemas: SchemaCache): Promise<void> {
    for (const { path, contents } of await listFiles(this.#env.lockService, deletionPath())) {
      const { tableId, ...mark } = decodeDeletionMark(path, contents);
      this.#marks.set(tableId, mark);
      // files of a kept table are to go before the mark
      if (schemas.byId(tableId) !== undefined && !this.hasFiles(tableId)) await this.end(tableId);
    }
  }

  /** True when the rows of that table are kept, or are to be removed. */
  has(tableId: string): boolean {
    return this.#marks.has(tableId);
  }

  /** True when the mark is that of a table that is, or was, kept: files of it may be left. */
  hasFiles(tableId: string): boolean {
    const mark = this.#marks.get(tableId);
    return mark?.kept !== undefined || mark?.wasKept === true;
  }

  /** Ids and full names of the tables of which something is to be done. */
  unfinished(): [tableId: string, name: string][] {
    const all = [...this.#marks].filter(([id]) => !this.#settled.has(id) || this.isOver(id));
    return all.map(([id, { name }]) => [id, name]);
  }

  /** The tables that are kept, the oldest deletion first. */
  kept(): Kept[] {
    const all = [...this.#marks].flatMap(([tableId, { name, kept }]) => (kept ? [{ tableId, name, ...kept }] : []));
    return all.sort((a, b) => a.deletedMicros - b.deletedMicros);
  }

  /** The table of that name that was deleted last, of those that are kept. */
  lastKept(name: string): Kept | undefined {
    // whatever clocks say: a table that exists has a greater id than all of its name that were deleted before
    const ofName = this.kept().filter((kept) => kept.name === name && !this.isOver(kept.tableId));
    return ofName.sort((a, b) => (a.tableId < b.tableId ? 1 : -1))[0];
  }

  keptOf(tableId: string): KeptTable | undefined {
    return this.#marks.get(tableId)?.kept;
  }

  /** True when the table is not kept any longer. */
  isOver(tableId: string): boolean {
    const kept = this.keptOf(tableId);
    return kept !== undefined && kept.keptUntilMicros <= this.#env.clock.nowMicros();
  }

  /** Called before the schema is removed. `kept`: left out, the rows are to be removed. */
  async begin(tableId: string, name: string, kept?: KeptTable): Promise<void> {
    assert(kept === undefined || kept.keptUntilMicros > kept.deletedMicros, 'a table is kept for some time');
    if (kept !== undefined || this.hasFiles(tableId))
      return this.#write(tableId, { name, kept, wasKept: kept === undefined });
    await this.#env.lockService.write(deletionPath(tableId), encodeDeletionMark({ name }), { lock: this.#lock });
    this.#marks.set(tableId, { name });
  }

  /** The rows of a kept table are to be removed from now on. */
  async drop(tableId: string): Promise<void> {
    const mark = this.#marks.get(tableId);
    assert(mark?.kept !== undefined, 'the rows of a table that was kept are to be removed');
    await this.#write(tableId, { name: mark.name, wasKept: true });
  }

  /** The table is kept no longer than until now: others need the room. */
  hurry(tableId: string): void {
    const mark = this.#marks.get(tableId);
    if (mark?.kept !== undefined) this.#marks.set(tableId, { ...mark, kept: { ...mark.kept, keptUntilMicros: 0 } });
  }

  areFilesApart(tableId: string): boolean {
    return this.#apart.has(tableId);
  }

  filesAreApart(tableId: string): void {
    this.#apart.add(tableId);
  }

  /** No server has a tablet of the kept table. */
  settled(tableId: string): void {
    assert(this.keptOf(tableId) !== undefined, 'a table that is settled is kept');
    assert(this.#apart.has(tableId), 'the files of a kept table are moved before all of it is done');
    this.#settled.add(tableId);
  }

  /** Called when no row is left, or the schema could not be removed, or is there again. */
  async end(tableId: string): Promise<void> {
    assert(this.#marks.has(tableId), 'a deletion ends once, after it has begun');
    const { lockService } = this.#env;
    const path = deletionPath(tableId);
    if (this.hasFiles(tableId)) {
      // the table may be deleted again: this removal is not to happen later
      const file = await lockService.read(path);
      if (file !== undefined) await removeSettled(this.#env, path, { version: file.version, lock: this.#lock });
    } else await lockService.remove(path, { lock: this.#lock });
    this.#marks.delete(tableId);
    this.#apart.delete(tableId);
    this.#settled.delete(tableId);
  }

  /** While the outcome is unknown the mark counts as written: if it is not, nothing is lost by its end. */
  async #write(tableId: string, mark: Mark): Promise<void> {
    const { lockService } = this.#env;
    const path = deletionPath(tableId);
    const before = this.#marks.get(tableId);
    const version = (await lockService.read(path))?.version ?? 0;
    this.#settled.delete(tableId);
    if (before === undefined) this.#apart.delete(tableId);
    try {
      await writeSettled(this.#env, path, encodeDeletionMark(mark), { version, lock: this.#lock });
    } catch (thrown) {
      this.#marks.set(tableId, before ?? mark);
      throw thrown;
    }
    this.#marks.set(tableId, mark);
  }
}
