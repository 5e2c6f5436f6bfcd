/**
 * Tablets that METADATA gives to this server, and that no master has announced to it: a master that died after its
 * commit, and before its call arrived, leaves them without anyone who serves them until the next master works. Calls
 * for their rows arrive meanwhile, so this server looks whether it should have them
 * (docs/decisions/0090-tablets-taken-back.md).
 *
 * Invariants:
 * - METADATA decides: a tablet is loaded at the epoch that its row names, as at a master's call. Of a tablet that this
 *   server has released at that epoch the load is refused.
 * - Its schema is at least as new as it was when the look began, so no confirmed change of it is missed.
 * - Each second at most MAX_LOOKS rows are looked up, of whatever many callers with stale locations ask for; none of a
 *   tablet that was found to be on its way here.
 */
import { assert, type ByteString, toBigtableError } from '../base/index.ts';
import type { Env, RequestContext, Timer } from '../env/index.ts';
import { type AssignedTablet, Locator, type SchemaCache } from '../locator/index.ts';
import { keyOfRow, METADATA_TABLE_ID } from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';
import type { TabletRef } from '../protocol/index.ts';
import type { TabletMap } from './tablet-map.ts';

/** A master's call arrives within milliseconds of its commit, and callers wait for seconds. */
const LOOK_AFTER_MS = 1000;
const LOOK_MS = 5000;
const MAX_LOOKS = 16;

export interface MissedLoadsOptions {
  readonly env: Env;
  readonly serverName: string;
  readonly schemas: Pick<SchemaCache, 'byId' | 'refresh' | 'refreshAll'>;
  readonly tablets: Pick<TabletMap, 'find'>;
  readonly serverContext: () => RequestContext;
  /** True while the tablet is loaded at that epoch. */
  isLoading(ref: TabletRef): boolean;
  load(ref: TabletRef): Promise<void>;
}

interface Missed {
  readonly tableId: string;
  readonly row: ByteString;
}

export class MissedLoads {
  readonly #options: MissedLoadsOptions;
  readonly #locator: Locator;
  /** Rows of calls since the last look. */
  #missed: Missed[] = [];
  /** Rows that are looked up now. */
  readonly #looking = new Set<Missed>();
  /** Tablets that were found to be this server's, until they are loaded. */
  readonly #coming = new Set<AssignedTablet>();
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: MissedLoadsOptions) {
    this.#options = options;
    this.#locator = new Locator(options.env);
  }

  /** A caller believes that this server has the row's tablet, and it does not serve it. */
  asked(tableId: string, row: ByteString): void {
    if (this.#stopped || this.#missed.length === MAX_LOOKS) return;
    const isSame = (other: Missed): boolean => other.tableId === tableId && other.row === row;
    if (this.#missed.some(isSame) || [...this.#looking].some(isSame)) return;
    if ([...this.#coming].some((tablet) => tablet.tableId === tableId && rangeContains(tablet.range, row))) return;
    this.#missed.push({ tableId, row });
    this.#timer ??= this.#options.env.clock.timer(LOOK_AFTER_MS, () => this.#lookAll());
  }

  /** The server loads nothing more by itself. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#missed = [];
  }

  /** Each by itself: a look at a row of a table may wait for a tablet of METADATA that this server should have, too. */
  #lookAll(): void {
    this.#timer = undefined;
    assert(!this.#stopped && this.#missed.length <= MAX_LOOKS, 'a server looks up a few rows, as long as it works');
    for (const missed of this.#missed.splice(0)) void this.#look(missed);
  }

  async #look(missed: Missed): Promise<void> {
    const { tablets, env } = this.#options;
    const isServed = (): boolean => tablets.find(missed.tableId, missed.row) !== undefined;
    this.#looking.add(missed);
    try {
      if (isServed()) return;
      const found = await this.#locate(missed);
      this.#looking.delete(missed);
      if (this.#stopped || found.server.name !== this.#options.serverName || isServed()) return;
      await this.#load(found);
    } catch (thrown) {
      // it moves, or is gone; a caller that still asks for it has it looked up again
      if (!this.#stopped)
        env.logger.debug('a tablet that a caller asks for is not looked up', {
          error: toBigtableError(thrown).message,
        });
    } finally {
      this.#looking.delete(missed);
    }
  }

  /** Callers who ask for its rows meanwhile have nothing looked up. */
  async #load(found: AssignedTablet): Promise<void> {
    const { load, isLoading, env } = this.#options;
    const ref = { key: keyOfRow(found), epoch: found.epoch };
    this.#coming.add(found);
    try {
      if (isLoading(ref)) return await load(ref);
      if (!(await this.#learnSchema(found.tableId)) || this.#stopped) return;
      await load(ref);
      env.logger.info('a tablet that no master has announced is served', { tablet: ref.key, epoch: ref.epoch });
    } finally {
      this.#coming.delete(found);
    }
  }

  /** As METADATA says now. */
  #locate({ tableId, row }: Missed): Promise<AssignedTablet> {
    const cached = this.#locator.cached(tableId, row);
    if (cached !== undefined) this.#locator.drop(cached);
    const { serverContext, env } = this.#options;
    const context = { ...serverContext(), deadlineMs: env.clock.monotonicMs() + LOOK_MS };
    return this.#locator.locate(tableId, row, context);
  }

  /** False if there is none. */
  async #learnSchema(tableId: string): Promise<boolean> {
    const { schemas } = this.#options;
    if (tableId === METADATA_TABLE_ID) return true;
    const known = schemas.byId(tableId);
    await (known === undefined ? schemas.refreshAll() : schemas.refresh(known.name));
    return schemas.byId(tableId) !== undefined;
  }
}
