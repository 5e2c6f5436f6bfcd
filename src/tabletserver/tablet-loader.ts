/**
 * Loads and unloads tablets when the master requests it (paper section 5.2; docs/ARCHITECTURE.md, "Location and
 * assignment").
 *
 * Invariants:
 * - A tablet is loaded only if its row names this server and that epoch, and the epoch is above the floor, the highest
 *   one at which this server has released the tablet; so a load or an unload that comes late or twice does nothing.
 * - A tablet is released only when no call or commit of it is in flight.
 * - A server never needs its own log to load a tablet, with one exception: a tablet whose invariants are broken is
 *   opened anew from it, under the same assignment, once nothing of the tablet is in flight
 *   (docs/decisions/0037-broken-invariants.md). A tablet that the server releases was flushed, or its row is gone. Once
 *   METADATA takes a tablet away from the server, or the server is ending, it loads no more tablets: others read its
 *   log after it is fenced. What it leaves to be replayed then stays in the log, and is not reported as released.
 */
import { assert, BigtableError, type ByteString, Code, quote, toBigtableError, unavailable } from '../base/index.ts';
import type { Logger, RequestContext } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import { assertPartition, keyOfRow, METADATA_TABLE_ID, type MetadataKey, type MetadataRow } from '../metadata/index.ts';
import { rangeContains, type TableSchema } from '../model/index.ts';
import type { TabletRef } from '../protocol/index.ts';
import type { TabletApi, TabletState } from '../tablet/index.ts';
import { EpochFloors } from './epoch-floors.ts';
import type { LogReplay } from './log-replay.ts';
import type { MemtableBudget } from './memtable-budget.ts';
import { type HostServices, ServedTabletHost } from './tablet-host.ts';
import type { ServedTablet, TabletMap } from './tablet-map.ts';
import type { RedoRecord } from '../commitlog/index.ts';

export interface TabletLoaderOptions {
  readonly serverName: string;
  readonly services: HostServices;
  readonly metadata: MetadataClient;
  readonly tablets: TabletMap;
  readonly budget: MemtableBudget;
  readonly replay: LogReplay;
  readonly logger: Logger;
  /** A split under way of which the tablet is, or will be, a part. */
  splitOf(key: MetadataKey): Promise<void> | undefined;
  openTablet(host: ServedTabletHost, state: TabletState, records: Iterable<RedoRecord>): Promise<TabletApi>;
}

interface Loading {
  readonly epoch: number;
  readonly loaded: Promise<void>;
  /** The files that its row lists, once that was read. */
  files: readonly string[];
  aborted: boolean;
}

export class TabletLoader {
  readonly #options: TabletLoaderOptions;
  readonly #loading = new Map<MetadataKey, Loading>();
  readonly #unloading = new Map<MetadataKey, Promise<void>>();
  /** Tablets that are no longer served and whose memtables are not all in files yet. */
  readonly #unfinished = new Map<MetadataKey, ServedTablet>();
  readonly #floors: EpochFloors;
  /**
   * Tablets that METADATA gives to this server and that it cannot serve, since their bytes are damaged. The master
   * retries them.
   */
  readonly #damaged = new Map<MetadataKey, { readonly row: MetadataRow; readonly error: BigtableError }>();
  /** Tablets that are no longer served here while reads may still be inside a row of them: their files are spared. */
  readonly #retired = new Set<TabletApi>();
  /** The server of the row that was read last: this one, as METADATA names it. */
  #server: MetadataRow['server'];
  #stopped = false;

  constructor(options: TabletLoaderOptions) {
    const { serverName, metadata, services, logger } = options;
    this.#options = options;
    this.#floors = new EpochFloors({
      serverName,
      readRow: (key) => metadata.readRow(key, services.serverContext()),
      onError: (error) => logger.info('rows of METADATA could not be read', { error: toBigtableError(error).message }),
    });
  }

  /** Loads no more tablets. From now on tablets may be released without a flush. */
  stop(): void {
    this.#stopped = true;
  }

  /** True from the call that loads the tablet at that epoch until it has ended. */
  isLoading({ key, epoch }: TabletRef): boolean {
    return this.#loading.get(key)?.epoch === epoch;
  }

  /** Resolves when the tablet is served at that epoch. */
  async load(ref: TabletRef, context: RequestContext): Promise<void> {
    const { key, epoch } = ref;
    await this.#options.splitOf(key);
    await this.#unloading.get(key);
    const served = this.#options.tablets.get(key);
    if (served?.epoch === epoch) return;
    if (this.#unfinished.has(key))
      throw stale(`tablet at epoch ${epoch} is not loaded: an earlier unloading is not finished`);
    const under = this.#loading.get(key);
    if (under?.epoch === epoch) return under.loaded;
    if (served || under)
      throw stale(`tablet at epoch ${epoch} is not loaded: this server has it at epoch ${(served ?? under)?.epoch}`);
    if (this.#stopped) throw ending();
    if (this.#floors.of(key) >= epoch) throw stale(`tablet at epoch ${epoch} is not loaded: this server has let it go`);
    const loading: Loading = {
      epoch,
      files: [],
      aborted: false,
      loaded: Promise.resolve().then(() => this.#load(ref, loading, context)),
    };
    this.#loading.set(key, loading);
    const remove = (): void => void this.#loading.delete(key);
    loading.loaded.then(remove, remove);
    return loading.loaded;
  }

  /**
   * Resolves when the tablet is released at that epoch, for ever, with nothing left to replay. Without `flush` the
   * contents of memory are dropped, but only if the tablet's row is gone. UNAVAILABLE once the server is ending: it may
   * have left the tablet to be replayed.
   */
  async unload({ key, epoch }: TabletRef, flush: boolean): Promise<void> {
    const under = this.#loading.get(key);
    if (under && under.epoch <= epoch) {
      under.aborted = true;
      await under.loaded.catch(() => {});
    }
    for (;;) {
      await this.#options.splitOf(key);
      await this.#unloading.get(key);
      const served = this.#options.tablets.get(key) ?? this.#unfinished.get(key);
      if (served === undefined) break;
      if (served.epoch > epoch)
        throw stale(`tablet at epoch ${epoch} is not unloaded: this server has it at epoch ${served.epoch}`);
      // if it is split meanwhile its upper part has the key
      await this.release(served, flush || !(await this.#isGone(key)));
    }
    if (this.#stopped) throw ending();
    this.#damaged.delete(key);
    this.#floors.raise(key, epoch);
  }

  /**
   * Stops serving the tablet. Records that could not be flushed stay with this server, and the release may be retried.
   * A tablet that is split first is served on, as its parts.
   */
  async release(served: ServedTablet, flush: boolean): Promise<void> {
    const { tablets, budget, splitOf } = this.#options;
    await splitOf(served.key);
    if (!tablets.has(served) && !this.#unfinished.has(served.key)) return;
    // most of the memory is written while the tablet is still served
    if (flush) await budget.flush(served);
    await served.tablet.cancelCompaction();
    // one may have begun meanwhile; none begins between the last look and the end of serving
    while (splitOf(served.key) !== undefined) await splitOf(served.key);
    // a server that ends and a master may both request it
    const other = this.#unloading.get(served.key);
    if (other !== undefined) return other;
    if (!tablets.has(served) && !this.#unfinished.has(served.key)) return;
    assert(splitOf(served.key) === undefined, 'no tablet is released while it is split');
    tablets.delete(served);
    this.#unfinished.set(served.key, served);
    const closing = this.#close(served, flush).then(() => {
      // the log is kept for a tablet that is left to be replayed: a server that is ending may still flush others
      if (flush || !this.#stopped) budget.remove(served);
    });
    this.#unloading.set(served.key, closing);
    try {
      await closing;
      this.#unfinished.delete(served.key);
      // synchronously: a load that waited for this finds the floor. A server that ends loads nothing anyway
      if (!this.#stopped) this.#floors.raise(served.key, served.epoch);
    } finally {
      this.#unloading.delete(served.key);
    }
  }

  /**
   * Drops the tablets of deleted tables: the call of the master that was to do it may have been lost. Tablets whose
   * rows cannot be read now are kept.
   */
  async dropDeleted(): Promise<void> {
    const { tablets, services, logger } = this.#options;
    for (const { key, tableId, epoch } of [...tablets.all()]) {
      if (tableId === METADATA_TABLE_ID || services.schema(tableId) !== undefined) continue;
      try {
        if (await this.#isGone(key)) await this.unload({ key, epoch }, false);
      } catch (error) {
        logger.info('a tablet of a deleted table was not dropped', { error: toBigtableError(error).message });
      }
    }
  }

  async #isGone(key: MetadataKey): Promise<boolean> {
    const { metadata, services } = this.#options;
    return (await metadata.readRow(key, services.serverContext())) === undefined;
  }

  /** The reason why the tablet of the row, which is this server's, cannot be served; undefined if none is known. */
  damageOver(tableId: string, row: ByteString): BigtableError | undefined {
    for (const { row: tablet, error } of this.#damaged.values()) {
      if (tablet.tableId === tableId && rangeContains(tablet.range, row)) return error;
    }
    return undefined;
  }

  /** Files of tablets that are being loaded, that are not released yet, and that reads may still be inside. */
  heldFiles(): string[] {
    for (const tablet of this.#retired) if (tablet.heldFiles().length === 0) this.#retired.delete(tablet);
    const past = [...this.#retired, ...[...this.#unfinished.values()].map(({ tablet }) => tablet)];
    return [
      ...past.flatMap((tablet) => tablet.heldFiles()),
      ...[...this.#loading.values()].flatMap((loading) => loading.files),
    ];
  }

  /** Replaces a tablet by the two that it was split into. */
  replace(
    parent: ServedTablet,
    children: readonly { readonly host: ServedTabletHost; readonly tablet: TabletApi }[],
  ): ServedTablet[] {
    const { tablets, budget } = this.#options;
    assert(tablets.has(parent), 'a tablet that is replaced is served');
    assertPartition(
      children.map(({ host }) => host.row.range),
      parent.range,
    );
    assert(
      children.every(({ host }) => host.row.epoch === parent.epoch),
      'the parts of a tablet are served at its epoch',
    );
    tablets.delete(parent);
    budget.remove(parent);
    this.#retired.add(parent.tablet);
    return children.map(({ host, tablet }) => this.#serve(host.row, host, tablet));
  }

  /** The services of the server to the tablet of the row. */
  hostOf(row: MetadataRow, schema: TableSchema): ServedTabletHost {
    const host: ServedTabletHost = new ServedTabletHost(
      this.#options.services,
      row,
      schema,
      (now) => this.#onTabletLost(host, now),
      (error) => void this.#reopen(host, error),
    );
    return host;
  }

  async #close({ key, tablet, host }: ServedTablet, flush: boolean): Promise<void> {
    const { services } = this.#options;
    assert(
      this.#unfinished.has(key) && this.#options.tablets.get(key) === undefined,
      'a tablet is closed once, after it was served',
    );
    await tablet.close({ flush });
    assert(
      !flush || tablet.oldestUnflushed === undefined,
      'a tablet that was released with a flush needs no record of the log',
    );
    this.#retired.add(tablet);
    const { state } = tablet;
    // all writes have ended: the log may hold one whose outcome is unknown, and that is in no memtable
    if (flush) services.checkLog();
    // nothing is left to replay: the next owner need not read a log for it
    if (flush && state.logs.length > 0)
      await host.commit(state, {
        files: state.files,
        clips: state.clips,
        redo: state.redo,
        logs: [],
        lastServerMicros: state.lastServerMicros,
      });
  }

  async #load({ key, epoch }: TabletRef, loading: Loading, context: RequestContext): Promise<void> {
    const { metadata, serverName, services, budget } = this.#options;
    const row = this.#withSharedServer(await metadata.readRow(key, context));
    if (row?.server?.name !== serverName || row.epoch !== epoch) {
      throw stale(
        `tablet at epoch ${epoch} is not loaded: METADATA gives it to ${row?.server?.name ?? 'no server'} at epoch ${row?.epoch ?? 0}`,
      );
    }
    const schema = services.schema(row.tableId);
    if (schema === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, `table ${row.tableId} has no schema`);
    const { host, tablet } = await this.#open(row, schema).catch((thrown: unknown) => {
      const error = toBigtableError(thrown);
      if (error.code === Code.DATA_LOSS) this.#logDamage(key, row, error);
      throw error;
    });
    this.#damaged.delete(key);
    // its row is to say that changes are kept before any is acknowledged
    if (host.isOutdated) await this.#renewRow(tablet);
    if (loading.aborted || this.#stopped) {
      await tablet.close({ flush: false });
      throw this.#stopped ? ending() : stale(`the load of a tablet at epoch ${epoch} was called off`);
    }
    assert(keyOfRow(host.row) === key, 'the row that was read is that of the tablet');
    assert(this.#loading.get(key) === loading, 'one load of a tablet runs at a time');
    assert(
      !this.#unfinished.has(key) && !this.#unloading.has(key),
      'a tablet is served after an earlier unloading of it has ended',
    );
    budget.pause();
    const served = this.#serve(row, host, tablet);
    this.#floors.passed(key, epoch);
    if (row.logs.some((log) => log !== services.logPath)) budget.markReplayed(served);
  }

  async #renewRow(tablet: TabletApi): Promise<void> {
    try {
      await tablet.renewRow();
    } catch (error) {
      await tablet.close({ flush: false });
      throw error;
    }
  }

  /** The row with the same object for the server and its log as all others: a server may have many tablets. */
  #withSharedServer(row: MetadataRow | undefined): MetadataRow | undefined {
    if (row === undefined) return undefined;
    const { server } = row;
    if (server?.name !== this.#server?.name || server?.address !== this.#server?.address) this.#server = server;
    const { logPath } = this.#options.services;
    return { ...row, server: this.#server, logs: row.logs.map((log) => (log === logPath ? logPath : log)) };
  }

  #serve(row: MetadataRow, host: ServedTabletHost, tablet: TabletApi): ServedTablet {
    const { tableId, range, epoch } = row;
    assert(row.server?.name === this.#options.serverName, 'a tablet is served by the server that METADATA names');
    const served: ServedTablet = {
      key: keyOfRow(row),
      tableId,
      range,
      epoch,
      tablet,
      host,
      countedBytes: 0,
      requests: 0,
    };
    this.#hosts.set(host, served);
    this.#options.tablets.add(served);
    this.#options.budget.add(served);
    return served;
  }

  /** By host, the tablet it belongs to once that is served. */
  readonly #hosts = new WeakMap<ServedTabletHost, ServedTablet>();

  async #open(
    row: MetadataRow,
    schema: TableSchema,
    openLog?: string,
  ): Promise<{ host: ServedTabletHost; tablet: TabletApi }> {
    const { services, replay, metadata } = this.#options;
    const host = this.hostOf(row, schema);
    const { tableId, range, epoch, files, clips, redo, logs, lastServerMicros } = row;
    const loading = this.#loading.get(keyOfRow(row));
    assert(loading !== undefined, 'a tablet is opened by a load that is known');
    loading.files = Object.values(files).flat();
    const toRead = logs.filter((log) => log === openLog || log !== services.logPath);
    try {
      const state = { tableId, range, epoch, files, clips, redo, logs, lastServerMicros };
      const open = (records: Iterable<RedoRecord>): Promise<TabletApi> =>
        this.#options.openTablet(host, state, records);
      const request = { tableId, range, redo, logs: toRead, openLog };
      return { host, tablet: await (toRead.length === 0 ? open([]) : replay.apply(request, open)) };
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.code !== Code.NOT_FOUND && error.code !== Code.DATA_LOSS) throw error;
      const now = await metadata.readRow(keyOfRow(row), services.serverContext());
      if (now?.epoch !== epoch) throw stale('the tablet was given to another server while it was loaded');
      if (now.version !== row.version) return this.#open(now, schema, openLog);
      if (error.code === Code.DATA_LOSS) throw error;
      throw new BigtableError(
        Code.DATA_LOSS,
        `tablet of table ${tableId}: a file that METADATA lists is missing: ${error.message}`,
        { cause: error },
      );
    }
  }

  /** An invariant of the tablet is broken: opens it anew. If that fails the server ends, and others replay its log. */
  async #reopen(host: ServedTabletHost, error: BigtableError): Promise<void> {
    const { tablets, logger, services, splitOf } = this.#options;
    const served = this.#hosts.get(host);
    if (served === undefined) return;
    const { key, tableId, epoch } = served;
    logger.error('an invariant of a tablet is broken: it is opened anew from disk', {
      table: tableId,
      error: error.message,
    });
    await splitOf(key)?.catch(() => {});
    // a server that closes leaves the tablet to be replayed
    if (this.#stopped) return;
    if (!tablets.has(served)) {
      if (this.#unfinished.get(key) === served) services.endServer(error);
      return;
    }
    tablets.delete(served);
    this.#retired.add(served.tablet);
    const loading: Loading = { epoch, files: [], aborted: false, loaded: this.#openAnew(served) };
    assert(!this.#loading.has(key), 'a tablet that is served is not being loaded');
    this.#loading.set(key, loading);
    try {
      await loading.loaded;
    } catch (thrown) {
      if (!this.#stopped) services.endServer(toBigtableError(thrown));
    } finally {
      this.#loading.delete(key);
    }
  }

  async #openAnew(served: ServedTablet): Promise<void> {
    const { budget, metadata, services, serverName } = this.#options;
    const { key, epoch, tableId } = served;
    await served.tablet.close({ flush: false });
    await services.logIsDurable();
    const row = await metadata.readRow(key, services.serverContext());
    const schema = services.schema(tableId);
    if (row === undefined || schema === undefined) return budget.remove(served);
    if (row.server?.name !== serverName || row.epoch !== epoch)
      throw stale(`tablet of epoch ${epoch} belongs to another server since epoch ${row.epoch}`);
    const { host, tablet } = await this.#open(row, schema, services.logPath);
    // the log is kept for the broken one until all its records are in files
    await tablet.flush();
    budget.remove(served);
    if (this.#stopped) return tablet.close({ flush: false });
    this.#serve(host.row, host, tablet);
  }

  /** The master retries again and again: each damage is logged once. */
  #logDamage(key: MetadataKey, row: MetadataRow, error: BigtableError): void {
    const isKnown = this.#damaged.get(key)?.error.message === error.message;
    this.#damaged.set(key, { row, error });
    if (!isKnown)
      this.#options.logger.error('a tablet is damaged and cannot be served', {
        table: row.tableId,
        error: error.message,
      });
  }

  /**
   * METADATA shows that the tablet is no longer this server's. If its row is gone so is the tablet. If it is another's,
   * a master has taken this server for dead and gives away all its tablets: the contents of memory are in the log
   * alone, which must stay as it is. So the server ends.
   */
  #onTabletLost(host: ServedTabletHost, now: MetadataRow | undefined): void {
    const { tablets, budget, logger, services } = this.#options;
    const served = this.#hosts.get(host);
    if (served === undefined || (!tablets.has(served) && this.#unfinished.get(served.key) !== served)) return;
    const { key, tableId, epoch } = served;
    if (now !== undefined && now.epoch !== epoch) {
      const owner = now.server === undefined ? 'no server' : `server ${now.server.name}`;
      services.endServer(
        unavailable(
          `METADATA gives tablet ${quote(key)} to ${owner} at epoch ${now.epoch}, and this server had it at epoch ${epoch}`,
        ),
      );
      return;
    }
    tablets.delete(served);
    this.#unfinished.delete(key);
    this.#retired.add(served.tablet);
    logger.info('a tablet is no longer served, because its row is gone', { table: tableId, epoch });
    void served.tablet.close({ flush: false }).finally(() => budget.remove(served));
  }
}

function ending(): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, 'the tablet server is ending');
}

function stale(message: string): BigtableError {
  return new BigtableError(Code.FAILED_PRECONDITION, message);
}
