/**
 * Looks whether every tablet is where its row says: requests the tablets of all servers, walks over METADATA, and puts
 * into the assignment queue what is wrong. It assigns nothing itself, so it may wait, or be cut short, at any point.
 */
import { assert, type BigtableError, checksInvariants, unavailable } from '../base/index.ts';
import { type Env, type RequestContext, within } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import { assertDisjoint, keyOfRow, type MetadataRow, ROOT_RANGE, USER_RANGE } from '../metadata/index.ts';
import type { Assignment } from './assignment.ts';
import type { AssignmentQueue } from './assignment-queue.ts';
import type { MetadataTablets } from './metadata-tablets.ts';
import type { Servers } from './servers.ts';

export interface VerificationOptions {
  readonly env: Pick<Env, 'clock'>;
  readonly metadata: MetadataClient;
  readonly metadataTablets: MetadataTablets;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly queue: AssignmentQueue;
  /** Called with the id of the backup for each of its rows. */
  readonly onBackup: (id: string) => void;
}

export class Verification {
  readonly #options: VerificationOptions;
  #isUnderWay = false;
  #isWalking = false;

  constructor(options: VerificationOptions) {
    this.#options = options;
  }

  /** The servers, the root tablet, and METADATA's others. Resolves when those are served; rejects if one is not. */
  async ofMetadata(context: RequestContext): Promise<void> {
    assert(!this.#isUnderWay, 'one look at METADATA runs at a time');
    this.#isUnderWay = true;
    try {
      await this.#ofMetadata(context);
    } finally {
      this.#isUnderWay = false;
    }
  }

  async #ofMetadata(context: RequestContext): Promise<void> {
    const { servers, assignment, metadata, metadataTablets, queue } = this.#options;
    await servers.scan({ ...context, signal: undefined });
    if (!assignment.metadataWasServed && servers.all().length === 0) throw unavailable('no tablet server is alive');
    await this.#served([await assignment.rootRow(context)], context);
    const rows: MetadataRow[] = [];
    for await (const some of metadata.scan(ROOT_RANGE, context)) rows.push(...some);
    if (rows.length === 0) rows.push(await assignment.createMetadataRow(context));
    if (checksInvariants) assertDisjoint(rows.map(({ range }) => range));
    metadataTablets.replace(rows.map(keyOfRow));
    queue.metadataIsKnown();
    await this.#served(rows, context);
    assignment.metadataIsServed();
  }

  /**
   * Rejects with the failure of one that is not served, and when the context ends: the commits of these assignments may
   * wait for the root tablet, whose server has died since, and the next look finds that.
   */
  async #served(rows: readonly MetadataRow[], context: RequestContext): Promise<void> {
    const { env, assignment, queue } = this.#options;
    for (const row of rows) if (assignment.needsWork(row)) queue.found(row);
    const settled = Promise.all(rows.map((row) => queue.settled(keyOfRow(row))));
    const failures = await within(settled, context, env.clock);
    const failure = failures.find((one): one is BigtableError => one !== undefined);
    if (failure !== undefined) throw failure;
  }

  /** The users' tablets. Resolves when all of their rows were read. */
  async ofUsers(context: RequestContext): Promise<void> {
    const { metadata, assignment, queue, onBackup } = this.#options;
    assert(assignment.metadataWasServed, "users' rows are read once METADATA was served");
    assert(!this.#isWalking, 'one walk over all rows runs at a time');
    this.#isWalking = true;
    assignment.walkBegins();
    try {
      for await (const rows of metadata.scan(USER_RANGE, context)) {
        for (const row of rows) {
          if (row.isOfBackup) onBackup(row.tableId);
          else if (assignment.needsWork(row)) queue.found(row);
        }
        await queue.room();
      }
      assignment.walkEnds();
    } finally {
      this.#isWalking = false;
    }
  }
}
