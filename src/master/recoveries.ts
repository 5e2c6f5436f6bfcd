/**
 * Recoveries of the tablets of dead servers (paper section 5.2), each by itself: fences the server's log, reads the
 * rows of the tablets that it is known to have had, and assigns those that still name it. METADATA is not scanned.
 *
 * Invariants: a dead server is fenced before any row is read. Several recoveries run concurrently; one that waits for
 * METADATA goes on when that is served, and none begins anew because another server dies. A tablet of which the master
 * does not know is found by the next assignment of all tablets, which follows each recovery.
 */
import { assert, type BigtableError, toBigtableError, unavailable } from '../base/index.ts';
import type { Logger, RequestContext } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import { isMetadataTablet, type MetadataKey, type MetadataRow } from '../metadata/index.ts';
import { isDeposed } from '../protocol/index.ts';
import type { Assignment } from './assignment.ts';
import type { Servers } from './servers.ts';
import { RETRY_MS } from './work-schedule.ts';

/** The number of rows that are read and assigned together. */
const BATCH_ROWS = 256;
/** The delay between a recovery and the next assignment of all tablets: several deaths share one. */
const VERIFY_MS = 5000;

export interface RecoveriesOptions {
  readonly logger: Logger;
  readonly metadata: MetadataClient;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly context: () => RequestContext;
  /** Throws while the master may not work. */
  readonly check: () => void;
  /** Has all tablets assigned, after that delay. */
  readonly assignLater: (delayMs: number) => void;
  /** Ends an assignment of all tablets that is under way, and begins anew. */
  readonly assignAnew: () => void;
  /** A later master has taken the place of this one. */
  readonly onDeposed: () => void;
}

export class Recoveries {
  readonly #options: RecoveriesOptions;
  /** Dead servers whose recovery has begun. */
  readonly #begun = new Set<string>();

  constructor(options: RecoveriesOptions) {
    this.#options = options;
  }

  /** The server's lock or file has gone: they go one after the other. */
  serverGone(name: string): void {
    if (this.#begun.has(name)) return;
    const { servers, assignment, assignAnew } = this.#options;
    const server = servers.get(name);
    if (server === undefined || !assignment.metadataWasServed) return assignAnew();
    const keys = [...server.tablets.keys()];
    // work under way may wait for METADATA, which that server served
    if (keys.some(isMetadataTablet)) assignAnew();
    this.#begun.add(name);
    void this.#recover(
      name,
      keys.filter((key) => !isMetadataTablet(key)),
    );
  }

  /** Forgets the dead servers whose logs were deleted. */
  forget(): void {
    for (const name of this.#begun) if (!this.#options.servers.remembersDead(name)) this.#begun.delete(name);
  }

  async #recover(name: string, keys: readonly MetadataKey[]): Promise<void> {
    const { logger, check, assignLater, assignAnew, onDeposed } = this.#options;
    try {
      check();
      const failures = await this.#reassign(name, keys);
      assignLater(failures.length === 0 ? VERIFY_MS : RETRY_MS);
    } catch (thrown) {
      this.#begun.delete(name);
      const error = toBigtableError(thrown);
      if (isDeposed(error)) return onDeposed();
      const fields = { server: name, error: error.message };
      logger.info('the recovery of a dead server failed: all tablets are assigned instead', fields);
      assignAnew();
    }
  }

  /** Returns the failures of the loads. */
  async #reassign(name: string, keys: readonly MetadataKey[]): Promise<BigtableError[]> {
    const { servers, metadata, assignment } = this.#options;
    const context = this.#options.context();
    assert(!keys.some(isMetadataTablet), "METADATA's own tablets are assigned by an assignment of all");
    const failures: BigtableError[] = [];
    if (!(await servers.isDead(name))) throw unavailable('it has its lock');
    await Promise.all([servers.removeDead(name), servers.leaveOutSilent(context)]);
    for (let i = 0; i < keys.length; i += BATCH_ROWS) {
      const batch = keys.slice(i, i + BATCH_ROWS);
      const rows = await Promise.all(batch.map((key) => metadata.readRow(key, context)));
      assert(servers.get(name) === undefined, 'a server that was fenced is given no tablet');
      const left = rows.filter((row): row is MetadataRow => row?.server?.name === name);
      failures.push(...(await assignment.assignUsers(left, context)));
    }
    return failures;
  }
}
