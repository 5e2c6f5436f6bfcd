/**
 * Stands in for a tablet server: a session and a file in the lock service, and the answers to the calls of masters, and
 * to reads and commits on METADATA, in the real protocol. It stores nothing: every step takes the time that was
 * measured of the real one (costs.ts). Its own reads and commits of METADATA go through the real client.
 */
import { BigtableError, Code, toBigtableError, unavailable } from '../../src/base/index.ts';
import type { LogPart } from '../../src/commitlog/index.ts';
import { type Env, type PlainError, type RequestContext, requestContext, toPlainError } from '../../src/env/index.ts';
import { Locator, MetadataClient } from '../../src/locator/index.ts';
import {
  commitOfRow,
  isMetadataTablet,
  keyOfRow,
  METADATA_TABLE_ID,
  type MetadataKey,
  type MetadataRow,
} from '../../src/metadata/index.ts';
import { rangeContains, type ReadBatch, type RowRange } from '../../src/model/index.ts';
import {
  callHandler,
  checkAddressed,
  encodePeerFile,
  type Handlers,
  logPathOf,
  notServing,
  PROTOCOL,
  type ReadMessage,
  SERVERS_DIRECTORY,
  type TabletRef,
  type TabletServerCalls,
} from '../../src/protocol/index.ts';
import type { SimProcess } from '../world/process.ts';
import { APPEND_MS, CPU, FILE_READ_MS, FILE_WRITE_MS, OPEN_FILES_MS, READ_LOG_MS } from './costs.ts';
import type { Cpu } from './cpu.ts';
import type { DeadLogs } from './dead-logs.ts';
import type { MetadataStore } from './metadata-store.ts';

/** Replayed records are written to files this much later, as the real server does. */
const FLUSH_REPLAYED_MS = 2000;
const ROWS_PER_BATCH = 100;
const TABLET_BYTES = 100 * 1024 * 1024;

/** The tablets of a dead server: each has the same share of its log. */
const TABLETS_PER_LOG = 1000;

export interface StandInOptions {
  readonly env: Env;
  readonly process: SimProcess;
  readonly cpu: Cpu;
  readonly store: MetadataStore;
  readonly logs: DeadLogs;
  readonly onServed: (server: StandIn, key: MetadataKey) => void;
}

export class StandIn {
  readonly name: string;
  readonly address: string;
  readonly process: SimProcess;
  sessionId = '';
  /** True once masters can find it. */
  isAnnounced = false;
  /** By key, their epochs. */
  readonly tablets = new Map<MetadataKey, number>();
  /** Those of METADATA's tablets that it has. */
  readonly #metadataRanges = new Map<MetadataKey, RowRange>();
  readonly #options: StandInOptions;
  readonly #metadata: MetadataClient;
  /** By log, its reading. */
  readonly #replays = new Map<string, Promise<void>>();
  /** By log, the opening of its sorted files. */
  readonly #sorted = new Map<string, Promise<void>>();
  #sorting: Promise<void> = Promise.resolve();
  readonly #loading = new Map<string, Promise<void>>();

  constructor(options: StandInOptions, address: string) {
    const { env, process } = options;
    this.#options = options;
    this.name = env.random.uniqueName();
    this.address = address;
    this.process = process;
    this.#metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => process.isDead });
  }

  async start(): Promise<void> {
    const { lockService, transport } = this.#options.env;
    this.sessionId = await lockService.openSession();
    const lock = await lockService.tryAcquire(SERVERS_DIRECTORY + this.name, this.sessionId);
    if (lock === undefined) throw unavailable('the name of a new tablet server is taken');
    const { call, stream } = callHandler<TabletServerCalls>(this.#handlers(), {
      read: (message) => this.#read(message),
    });
    await transport.serve(this.address, { call, stream });
    const file = encodePeerFile({ name: this.name, address: this.address, protocol: PROTOCOL });
    await lockService.write(lock.path, file, { version: 0, lock, sessionId: this.sessionId });
    this.isAnnounced = true;
  }

  #handlers(): Partial<Handlers<TabletServerCalls>> {
    const { cpu } = this.#options;
    const addressed =
      <M extends { readonly to?: string }, A>(answer: (message: M) => Promise<A>) =>
      async (message: M): Promise<A> => {
        checkAddressed(message, this.name);
        await cpu.work(CPU.callMs);
        return answer(message);
      };
    return {
      status: addressed(async ({ brief = false }) => {
        const tablets = brief ? [] : [...this.tablets];
        await cpu.work(CPU.statusTabletMs * tablets.length);
        return {
          name: this.name,
          protocol: PROTOCOL,
          locked: this.#options.env.lockService.leaseHolds(this.sessionId),
          tablets: tablets.map(([key, epoch]) => ({ key, epoch, sizeBytes: TABLET_BYTES, requests: 0 })),
        };
      }),
      load: addressed(({ tablets }) => this.#each(tablets, (ref) => this.#load(ref))),
      unload: addressed(({ tablets }) => this.#each(tablets, (ref) => this.#unload(ref))),
      sortLog: addressed(async ({ server, start, end }) => {
        await this.#sort(logPathOf(server), { from: start, to: end });
        return undefined;
      }),
      holdings: addressed(async () => ({ files: [], logs: [logPathOf(this.name)] })),
      commit: addressed(async ({ commits }) => {
        const keys = commits.flatMap(({ rows }) => rows.map(({ key }) => key));
        const served = this.#servedWith(keys[0]!);
        if (keys.some((key) => !rangeContains(served, key))) throw notServing(METADATA_TABLE_ID, keys[0]!);
        await cpu.work(CPU.commitCallMs + CPU.commitRowMs * commits.length);
        await cpu.wait(APPEND_MS);
        this.#servedWith(keys[0]!);
        return commits.map((commit) => this.#options.store.commit(commit));
      }),
    };
  }

  async #each(
    refs: readonly TabletRef[],
    work: (ref: TabletRef) => Promise<void>,
  ): Promise<(PlainError | undefined)[]> {
    return Promise.all(
      refs.map((ref) =>
        work(ref).then(
          () => undefined,
          (thrown: unknown) => toPlainError(toBigtableError(thrown)),
        ),
      ),
    );
  }

  /** A repeated load joins the one under way. */
  #load(ref: TabletRef): Promise<void> {
    if (this.tablets.get(ref.key) === ref.epoch) return Promise.resolve();
    const id = `${ref.epoch} ${ref.key}`;
    let loading = this.#loading.get(id);
    if (loading === undefined) {
      loading = this.#loadOnce(ref).finally(() => this.#loading.delete(id));
      this.#loading.set(id, loading);
    }
    return loading;
  }

  async #loadOnce({ key, epoch }: TabletRef): Promise<void> {
    const { cpu, onServed, logs } = this.#options;
    const row = await this.#metadata.readRow(key, this.#context());
    if (row?.server?.name !== this.name || row.epoch !== epoch)
      throw new BigtableError(Code.FAILED_PRECONDITION, `the tablet is not given to ${this.name} at epoch ${epoch}`);
    await cpu.work(CPU.readRowMs);
    const foreign = row.logs.filter((log) => log !== logPathOf(this.name));
    for (const log of foreign)
      if (logs.isFull(log)) await (logs.isSorted(log) ? this.#readSorted(log) : this.#replay(log));
    await cpu.wait(OPEN_FILES_MS);
    await cpu.work(CPU.loadMs);
    this.tablets.set(key, epoch);
    if (isMetadataTablet(key)) this.#metadataRanges.set(key, row.range);
    onServed(this, key);
    if (foreign.length > 0) this.process.later(FLUSH_REPLAYED_MS, 'flush', () => void this.#flush(row));
  }

  #replay(log: string): Promise<void> {
    const { cpu } = this.#options;
    let replay = this.#replays.get(log);
    if (replay === undefined) {
      replay = cpu.wait(READ_LOG_MS).then(() => cpu.work(CPU.replayLogMs));
      this.#replays.set(log, replay);
    }
    return replay;
  }

  /** The server sorts one part after another. */
  #sort(log: string, part: LogPart): Promise<void> {
    const { cpu, logs } = this.#options;
    const share = logs.shareOf(part);
    this.#sorting = this.#sorting.then(async () => {
      await cpu.wait(READ_LOG_MS * share);
      await cpu.work(CPU.sortLogMs * share);
      await cpu.wait(READ_LOG_MS * share);
      logs.partIsSorted(log, part);
    });
    return this.#sorting;
  }

  /** The list of its files and their indexes, once; then what has the records of one tablet. */
  async #readSorted(log: string): Promise<void> {
    const { cpu, logs } = this.#options;
    let opening = this.#sorted.get(log);
    if (opening === undefined) {
      opening = cpu.wait((1 + logs.parts) * FILE_READ_MS);
      this.#sorted.set(log, opening);
    }
    await opening;
    await cpu.wait(logs.parts * FILE_READ_MS);
    await cpu.work(CPU.replayLogMs / TABLETS_PER_LOG);
  }

  /** Replayed records go to a file, so that the tablet does not need the dead server's log any more. */
  async #flush(row: MetadataRow): Promise<void> {
    const { cpu, env } = this.#options;
    const key = keyOfRow(row);
    if (this.tablets.get(key) !== row.epoch) return;
    await cpu.work(CPU.flushMs);
    await cpu.wait(FILE_WRITE_MS);
    const event = { kind: 'compacted', atMicros: env.clock.nowMicros() } as const;
    const next = { ...row, logs: [logPathOf(this.name)] };
    await this.#metadata
      .commit([commitOfRow(env.random.uniqueName(), event, key, row, next)], this.#context())
      .catch(() => undefined);
  }

  async #unload({ key, epoch }: TabletRef): Promise<void> {
    const { cpu } = this.#options;
    if (this.tablets.get(key) !== epoch)
      throw new BigtableError(Code.FAILED_PRECONDITION, 'the tablet is not served at that epoch');
    await cpu.work(CPU.unloadMs);
    await cpu.wait(FILE_WRITE_MS);
    // what is written is committed
    const row = await this.#metadata.readRow(key, this.#context());
    if (row !== undefined && row.epoch === epoch) await this.#flush(row);
    this.tablets.delete(key);
  }

  /** The range of METADATA's tablet with that row; "not serving" if this server does not have it. */
  #servedWith(key: MetadataKey): RowRange {
    for (const range of this.#metadataRanges.values()) if (rangeContains(range, key)) return range;
    throw notServing(METADATA_TABLE_ID, key);
  }

  async *#read({ tableId, ranges, rowsLimit, filter }: ReadMessage): AsyncGenerator<ReadBatch, void, void> {
    const { cpu, store } = this.#options;
    if (tableId !== METADATA_TABLE_ID) throw notServing(tableId, '');
    let { start } = ranges[0]!;
    const { end } = ranges[0]!;
    const served = this.#servedWith(start);
    if (served.end !== undefined && (end === undefined || end > served.end)) throw notServing(tableId, served.end);
    await cpu.work(CPU.callMs);
    for (let left = rowsLimit === 0 ? Number.POSITIVE_INFINITY : rowsLimit; left > 0; ) {
      const fragments = store.fragments({ start, end }, Math.min(left, ROWS_PER_BATCH), filter !== undefined);
      if (fragments.length === 0) return;
      await cpu.work(fragments.length === 1 ? CPU.readRowMs - CPU.callMs : CPU.scanRowMs * fragments.length);
      yield { fragments };
      left -= fragments.length;
      if (fragments.length < ROWS_PER_BATCH) return;
      start = `${fragments.at(-1)!.row}\0`;
    }
  }

  #context(): RequestContext {
    return requestContext({ budget: this.#options.env.requestBudget, principal: 'tablet server' });
  }
}
