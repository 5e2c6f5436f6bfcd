/**
 * The services of a server to one tablet: the schema, the lease, names for files, and commits to METADATA that are
 * conditional on the assignment under which the tablet is served.
 */
import { assert, BigtableError, Code } from '../base/index.ts';
import type { LogPosition, RequestContext } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import {
  commitOfRow,
  commitOfSplit,
  keyOfRow,
  type MetadataCommit,
  type MetadataKey,
  type MetadataRow,
  ownersSince,
} from '../metadata/index.ts';
import type { TableSchema } from '../model/index.ts';
import type { TabletCommit, TabletHost, TabletState } from '../tablet/index.ts';

/** The services that the server shares among all its tablets. */
export interface HostServices {
  readonly logPath: string;
  readonly metadata: MetadataClient;
  schema(tableId: string): TableSchema | undefined;
  leaseHeld(): boolean;
  newFilePath(): string;
  /** Files that no row and no reader refers to: they may be deleted. */
  released(files: readonly string[]): void;
  /** Files that a tablet no longer needs and that another may need. */
  leftToSweep(): void;
  filesChanged(tablet: MetadataKey): void;
  compactionEarned(tablet: MetadataKey): void;
  /**
   * Ends the server. METADATA gives a tablet to another that this one had not released, so a master has declared it
   * dead; or a tablet whose invariants are broken could not be opened anew.
   */
  endServer(reason: BigtableError): void;
  /** Throws if an append has failed: only a replay tells then what the log holds. */
  checkLog(): void;
  /** Resolves when every record that was handed to the log is durable. */
  logIsDurable(): Promise<void>;
  /** The tablet's memtable may have grown. */
  written(tablet: MetadataKey): void;
  /** Without deadline. */
  serverContext(): RequestContext;
  uniqueName(): string;
  nowMicros(): number;
  /** Keeps the log for a change stream of that retention. Returns the position from which on it is kept. */
  keepChanges(retentionMicros: number): LogPosition;
  /** The newest durable append of the server's log. */
  newestPosition(): LogPosition;
  /** The wall clock is behind a time that was given to a cell of a tablet. */
  clockIsBehind(nowMicros: number, lastMicros: number): void;
}

const NO_CHANGES = {};

export class ServedTabletHost implements TabletHost {
  readonly #services: HostServices;
  /** The last schema seen: the tablet may outlive the schema's file by a moment. */
  #schema: TableSchema;
  #row: MetadataRow;
  /** Where the changes of the tablet begin in the server's log, once they are kept. */
  #changesFrom: LogPosition | undefined;
  #isCommitting = false;
  /** Called when METADATA shows that the tablet is no longer this server's, with its row as it is now. */
  readonly #onLost: (now: MetadataRow | undefined) => void;
  /** Called when an invariant of the tablet is broken. */
  readonly #onFailed: (error: BigtableError) => void;

  constructor(
    services: HostServices,
    row: MetadataRow,
    schema: TableSchema,
    onLost: (now: MetadataRow | undefined) => void,
    onFailed: (error: BigtableError) => void,
  ) {
    this.#services = services;
    this.#row = row;
    this.#schema = schema;
    this.#onLost = onLost;
    this.#onFailed = onFailed;
  }

  /** The row as the last commit left it. */
  get row(): MetadataRow {
    return this.#row;
  }

  get logPath(): string {
    return this.#services.logPath;
  }

  schema(tableId: string): TableSchema {
    const now = this.#services.schema(tableId);
    if (now !== undefined) this.#schema = now;
    return this.#schema;
  }

  leaseHeld(): boolean {
    return this.#services.leaseHeld();
  }

  clockIsBehind(nowMicros: number, lastMicros: number): void {
    this.#services.clockIsBehind(nowMicros, lastMicros);
  }

  newFilePath(): string {
    return this.#services.newFilePath();
  }

  released(files: readonly string[]): void {
    this.#services.released(files);
  }

  leftToSweep(): void {
    this.#services.leftToSweep();
  }

  failed(error: BigtableError): void {
    this.#onFailed(error);
  }

  written(): void {
    this.#services.written(keyOfRow(this.#row));
  }

  filesChanged(): void {
    this.#services.filesChanged(keyOfRow(this.#row));
  }

  compactionEarned(): void {
    this.#services.compactionEarned(keyOfRow(this.#row));
  }

  /**
   * Commits come one at a time: the tablet ensures it. If the row has another version under the same epoch, the host
   * takes that over and makes the change on top of it.
   */
  commit(state: TabletState, change: TabletCommit): Promise<void> {
    return this.#exclusively([state], () => this.#commit(state, change));
  }

  async #commit(state: TabletState, change: TabletCommit): Promise<void> {
    for (;;) {
      const commit = commitOfRow(
        this.#services.uniqueName(),
        { kind: 'compacted', atMicros: this.#services.nowMicros() },
        keyOfRow(this.#row),
        this.#row,
        { ...this.#row, ...change, ...this.#keptChanges(), ...this.#endOfChanges(change) },
      );
      if (await this.#isDone(commit, state)) {
        this.#row = commit.rows[0]!.row!;
        return;
      }
    }
  }

  /** Replaces the tablet's row by two, low and high; returns both. */
  split(parts: readonly [TabletState, TabletState]): Promise<readonly [MetadataRow, MetadataRow]> {
    return this.#exclusively(parts, () => this.#split(parts));
  }

  async #split(parts: readonly [TabletState, TabletState]): Promise<readonly [MetadataRow, MetadataRow]> {
    for (;;) {
      const now = { ...this.#row, ...this.#keptChanges() };
      const commit = commitOfSplit(this.#services.uniqueName(), this.#services.nowMicros(), now, parts);
      if (await this.#isDone(commit, parts[1])) return commit.rows.map(({ row }) => row) as [MetadataRow, MetadataRow];
    }
  }

  /** True where the row says otherwise than it is to: the change stream began, ended, or forgets past owners. */
  get isOutdated(): boolean {
    const { pastOwners, changesFrom } = this.#keptChanges();
    return pastOwners !== this.#row.pastOwners || changesFrom !== this.#row.changesFrom;
  }

  /** What the row is to say of the table's change stream. Without one it says nothing. */
  #keptChanges(): Pick<MetadataRow, 'pastOwners' | 'changesFrom'> {
    const { pastOwners, changesFrom } = this.#row;
    const { changeStream } = this.schema(this.#row.tableId);
    if (changeStream === undefined) {
      this.#changesFrom = undefined;
      return pastOwners === undefined ? NO_CHANGES : { pastOwners: undefined, changesFrom: undefined };
    }
    const { retentionMicros } = changeStream;
    const sinceMicros = this.#services.nowMicros() - retentionMicros;
    this.#changesFrom ??= changesFrom ?? this.#services.keepChanges(retentionMicros);
    return {
      pastOwners: pastOwners === undefined ? [] : ownersSince(pastOwners, sinceMicros),
      changesFrom: this.#changesFrom,
    };
  }

  /** Where the tablet's changes end in the server's log, if none comes after this commit: no replay needs it then. */
  #endOfChanges({ logs }: TabletCommit): Pick<MetadataRow, 'changesUntil'> {
    if (this.#changesFrom === undefined) return NO_CHANGES;
    return { changesUntil: logs.includes(this.#services.logPath) ? undefined : this.#services.newestPosition() };
  }

  /** The change of the tablet's row: nothing else changes it meanwhile. */
  async #exclusively<T>(states: readonly TabletState[], change: () => Promise<T>): Promise<T> {
    const { tableId, epoch } = this.#row;
    assert(
      states.every((state) => state.tableId === tableId && state.epoch === epoch),
      'a tablet commits under the row of its own assignment',
    );
    assert(!this.#isCommitting, 'one commit of a tablet is under way at a time');
    this.#isCommitting = true;
    try {
      return await change();
    } finally {
      this.#isCommitting = false;
    }
  }

  /**
   * False if the row is at another version now, which is taken over. The tablet's own row is the last that the commit
   * names.
   */
  async #isDone(commit: MetadataCommit, { tableId, epoch }: TabletState): Promise<boolean> {
    const [outcome] = await this.#services.metadata.commit([commit], this.#services.serverContext());
    assert(outcome !== undefined, 'a commit has an outcome');
    if (outcome.kind === 'done') return true;
    const now = outcome.rows.at(-1);
    if (now === undefined || now.epoch !== epoch || now.range.start !== this.#row.range.start) {
      this.#onLost(now);
      const message = `tablet ${tableId} of epoch ${epoch} belongs to another server since epoch ${now?.epoch}, or is not the same any more`;
      throw new BigtableError(Code.FAILED_PRECONDITION, message, { details: { tabletGone: true } });
    }
    if (now.version === this.#row.version)
      throw new BigtableError(
        Code.INTERNAL,
        `METADATA refuses a change of tablet ${tableId} of epoch ${epoch}, whose row is as this server knows it`,
      );
    this.#row = now;
    return false;
  }
}
