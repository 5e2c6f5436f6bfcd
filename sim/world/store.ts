/**
 * The simulated storage that all processes share. An operation takes effect at one instant between its call and its
 * answer, and each of the two can fail: it may have no effect, or its answer may be lost. What a process has begun when
 * it dies lands, or never does; when it stands still it lands meanwhile, or when it goes on. Commit logs are slots,
 * whose operations can land late, too, while their process goes on. What is read can be damaged: once, or each time
 * until it is repaired.
 */
import { BigtableError, Code, unavailable } from '../../src/base/index.ts';
import { type EncodedRecord, readSortedIndex, recordsOf, SORTED_DIRECTORY } from '../../src/commitlog/index.ts';
import {
  type FileInfo,
  type FileSystem,
  type FileWriter,
  ManualClock,
  MemoryFileSystem,
  MemorySlotStore,
  SeededRandom,
  withSlotLogs,
} from '../../src/env/index.ts';
import { nativeCodecs } from '../../src/platform/index.ts';
import { LogJudge } from './log-judge.ts';
import { MetadataJudge } from './metadata-judge.ts';
import { RecoveryJudge } from './recovery-judge.ts';
import type { SimProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';
import { judgedLogs, SimSlots } from './slots.ts';

/** How operations fare now. A run's faults change it. */
export interface StoreHealth {
  minDelayMs: number;
  maxDelayMs: number;
  /** The share of operations that are slow by up to `slowMs`. */
  slowShare: number;
  slowMs: number;
  /** The share of operations that fail without effect. */
  failedShare: number;
  /** The share of operations that take effect and then fail. */
  unansweredShare: number;
  /** The share of operations on slots that fail, and take effect up to `MAX_LATE_MS` later. */
  lateShare: number;
  /** The share of reads that return a wrong bit. */
  damagedShare: number;
  /** True: writes are refused for lack of space. */
  isFull: boolean;
}

const WRITES = new Set(['append', 'close', 'createSlot', 'reserve']);
const MAX_LATE_MS = 5000;
/** Slots and logs in a page of a list: pages are of an instant each. */
const PAGE_SIZES = [5, 30, 1000];
/** The share of the operations of a machine that is cut off which have no effect; the others are not answered. */
const UNREACHED_SHARE = 0.7;
const TIMEOUT_MS = 2000;
/** The share of the operations of a process that stands still which land when it goes on. */
const HELD_SHARE = 0.5;
/** The share of the operations of a process that died which never land. */
const LOST_SHARE = 0.5;
/** A change that a machine could not make lands within this time after it can. */
const STALLED_MS = 20;
/** The share of damaged reads after which each later one of the file or slot is damaged, too. */
const LASTING_SHARE = 0.1;
/** A damaged read shows in answers and logs for this long, at most. */
const DAMAGE_SHOWS_MS = 40_000;
const checksum = nativeCodecs().checksum;

export class SimStore {
  readonly slots: MemorySlotStore;
  readonly logJudge = new LogJudge();
  readonly metadataJudge = new MetadataJudge();
  /** Called with the records of each append that becomes durable, and the process that wrote it. */
  onAppend: (process: string, records: readonly EncodedRecord[]) => void = () => {};
  readonly recoveryJudge = new RecoveryJudge(this.logJudge);
  readonly #files = new MemoryFileSystem();
  /** All of it, reached without delay. */
  readonly files: FileSystem;
  readonly health: StoreHealth = {
    minDelayMs: 0.1,
    maxDelayMs: 2,
    slowShare: 0,
    slowMs: 0,
    failedShare: 0,
    unansweredShare: 0,
    lateShare: 0,
    damagedShare: 0,
    isFull: false,
  };
  readonly counts = {
    operations: 0,
    slow: 0,
    failed: 0,
    unanswered: 0,
    refused: 0,
    landedLate: 0,
    lost: 0,
    damaged: 0,
  };
  /** Machines whose changes do not land, as long as they are here; those of a process that dies meanwhile are lost. */
  readonly stalledMachines = new Set<string>();
  /** Machines whose operations take up to this much longer. */
  readonly slowMachines = new Map<string, number>();
  /** Machines that cannot reach it, or that it cannot reach. */
  readonly cutMachines = new Set<string>();
  /** Files and slots of which each read returns a wrong bit. */
  readonly #damaged = new Set<string>();
  /** When a read returned damaged bytes last. */
  #lastDamageMs = Number.NEGATIVE_INFINITY;
  readonly #scheduler: Scheduler;
  readonly #draw;
  readonly #slotSettings;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#draw = scheduler.fork('store');
    const isShort = this.#draw.float() < 0.5;
    this.#slotSettings = { checksum, ...(isShort && { switchAfterMs: 20, retryForMs: 3000 }) };
    this.slots = new MemorySlotStore({ pageSize: PAGE_SIZES[Math.floor(this.#draw.float() * PAGE_SIZES.length)]! });
    const atRest = { clock: new ManualClock(), random: new SeededRandom(0), checksum };
    this.files = withSlotLogs(this.#files, this.slots, atRest);
    this.logJudge.onAppend = (log, position, bytes, lowWater) => {
      const records = recordsOf(log, { position, bytes });
      this.onAppend(this.logJudge.writers.get(log) ?? '', records);
      this.recoveryJudge.appended(log, position, records, lowWater);
      this.metadataJudge.appended(log, records);
    };
    this.metadataJudge.onRow = (...change) => this.recoveryJudge.rowChanged(...change);
    this.logJudge.onRemoval = (log) => this.metadataJudge.logRemoved(log);
  }

  fileSystemOf(process: SimProcess): FileSystem {
    const { clock } = process;
    const random = this.#scheduler.fork(`slots of ${process.name}`);
    const files = new SimFiles(this, this.#files, process);
    const fileSystem = withSlotLogs(files, new SimSlots(this, process), { clock, random, ...this.#slotSettings });
    return judgedLogs(fileSystem, this.logJudge, process.name);
  }

  /** `act`: takes effect in the instant in which it is called. */
  perform<T>(process: SimProcess, operation: string, path: string, act: () => Promise<T>): Promise<T> {
    const { health, counts } = this;
    this.#begun(process, operation);
    const isCut = this.cutMachines.has(process.machine);
    const isFailed = this.#draw.float() < (isCut ? UNREACHED_SHARE : health.failedShare);
    const isUnanswered = isCut || this.#draw.float() < health.unansweredShare;
    const landsMs = this.#delayMs(process);
    const answersMs = isCut ? TIMEOUT_MS : this.#delayMs(process);
    const what = `${operation} ${path}`;
    return new Promise((resolve, reject) => {
      const answer = (end: () => void): void => process.later(answersMs, `answer ${what}`, end);
      this.#land(process, landsMs, what, () => {
        if (isFailed) {
          counts.failed++;
          return answer(() => reject(unavailable(`${path}: the storage could not be reached`)));
        }
        if (health.isFull && WRITES.has(operation)) {
          counts.refused++;
          return answer(() => reject(new BigtableError(Code.RESOURCE_EXHAUSTED, `${path}: no space is left`)));
        }
        act().then(
          (result) => {
            if (isUnanswered) counts.unanswered++;
            answer(() => (isUnanswered ? reject(unavailable(`${path}: the answer was lost`)) : resolve(result)));
          },
          (thrown: unknown) => answer(() => reject(thrown)),
        );
      });
    });
  }

  /** Like `perform`, for operations on slots: one that fails can take effect later, while its process goes on. */
  async performLate<T>(process: SimProcess, operation: string, path: string, act: () => Promise<T>): Promise<T> {
    if (this.#draw.float() >= this.health.lateShare) return this.perform(process, operation, path, act);
    const { counts } = this;
    this.#begun(process, operation);
    this.#scheduler.after(this.#draw.float() * MAX_LATE_MS, undefined, `late ${operation} ${path}`, () => {
      counts.landedLate++;
      // nobody waits for it
      act().catch(() => undefined);
    });
    return new Promise((_, reject) => {
      process.later(this.#delayMs(process), `answer ${operation} ${path}`, () =>
        reject(unavailable(`${path}: timed out`)),
      );
    });
  }

  /** A list of files comes in two pages, each of an instant of its own. */
  async listed(process: SimProcess, prefix: string, list: () => Promise<FileInfo[]>): Promise<FileInfo[]> {
    const first = await this.look(process, 'list', prefix, list);
    const last = first[Math.floor(this.#draw.float() * first.length)]?.path;
    if (last === undefined) return first;
    const second = await this.look(process, 'list', `${prefix} after ${last}`, list);
    return [...first.filter(({ path }) => path <= last), ...second.filter(({ path }) => path > last)];
  }

  /** Like `perform`, for what changes nothing: it happens when it is answered. */
  look<T>(process: SimProcess, operation: string, path: string, act: () => Promise<T>): Promise<T> {
    const { health, counts } = this;
    counts.operations++;
    const isCut = this.cutMachines.has(process.machine);
    const isFailed = isCut || this.#draw.float() < health.failedShare + health.unansweredShare;
    if (isFailed) counts.failed++;
    return new Promise((resolve, reject) => {
      process.later(this.#delayMs(process) + this.#delayMs(process), `${operation} ${path}`, () => {
        if (isFailed) reject(unavailable(`${path}: the storage could not be reached`));
        else act().then(resolve, reject);
      });
    });
  }

  /** The bytes of a file or a slot as they are read now. */
  asRead(path: string, bytes: Buffer): Buffer {
    const { damagedShare } = this.health;
    if (damagedShare === 0 || bytes.length === 0) return bytes;
    if (!this.#damaged.has(path)) {
      if (this.#draw.float() >= damagedShare) return bytes;
      if (this.#draw.float() < LASTING_SHARE) this.#damaged.add(path);
    }
    this.counts.damaged++;
    this.#lastDamageMs = this.#scheduler.nowMs;
    const damaged = Buffer.from(bytes);
    damaged[Math.floor(this.#draw.float() * bytes.length)]! ^= 1 << Math.floor(this.#draw.float() * 8);
    return damaged;
  }

  /** True while damage may show: a master tries a damaged tablet again after half a minute. */
  get mayShowDamage(): boolean {
    return this.#scheduler.nowMs < this.#lastDamageMs + DAMAGE_SHOWS_MS;
  }

  /** Every read returns what was written, from now on. */
  repair(): void {
    this.health.damagedShare = 0;
    this.#damaged.clear();
  }

  #begun(process: SimProcess, operation: string): void {
    this.counts.operations++;
    process.acts(operation === 'createSlot' ? 'append' : 'file');
  }

  /** Calls `land` after the delay, or when the process goes on, or never. */
  #land(process: SimProcess, delayMs: number, what: string, land: () => void): void {
    this.#scheduler.after(delayMs, undefined, what, () => {
      const { counts } = this;
      if (this.stalledMachines.has(process.machine)) {
        if (process.isDead) return void counts.lost++;
        return this.#land(process, STALLED_MS, what, land);
      }
      const leftMs = process.pausedUntilMs - this.#scheduler.nowMs;
      if (process.isDead) {
        if (this.#draw.float() < LOST_SHARE) return void counts.lost++;
        counts.landedLate++;
      } else if (leftMs > 0) {
        counts.landedLate++;
        if (this.#draw.float() < HELD_SHARE) return this.#land(process, leftMs + delayMs, what, land);
      }
      land();
    });
  }

  #delayMs({ machine }: SimProcess): number {
    const { minDelayMs, maxDelayMs, slowShare, slowMs } = this.health;
    const isSlow = this.#draw.float() < slowShare;
    if (isSlow) this.counts.slow++;
    const slowMachineMs = (this.slowMachines.get(machine) ?? 0) * this.#draw.float() ** 2;
    return (
      minDelayMs +
      this.#draw.float() * (maxDelayMs - minDelayMs) +
      (isSlow ? this.#draw.float() * slowMs : 0) +
      slowMachineMs
    );
  }
}

/** The files as one process reaches them. */
class SimFiles implements Pick<FileSystem, 'create' | 'size' | 'read' | 'list' | 'delete'> {
  readonly #store: SimStore;
  readonly #files: MemoryFileSystem;
  readonly #process: SimProcess;

  constructor(store: SimStore, files: MemoryFileSystem, process: SimProcess) {
    this.#store = store;
    this.#files = files;
    this.#process = process;
  }

  async create(path: string): Promise<FileWriter> {
    const writer = await this.#perform('create', path, () => this.#files.create(path));
    return {
      append: (bytes) => {
        const copy = Uint8Array.from(bytes);
        return this.#perform('append', path, () => writer.append(copy));
      },
      close: () =>
        this.#perform('close', path, async () => {
          await writer.close();
          if (path.startsWith(SORTED_DIRECTORY)) {
            const index = await readSortedIndex(path, { fileSystem: this.#files, checksum });
            this.#store.logJudge.sorted(index, this.#process.name);
          } else this.#store.metadataJudge.fileCreated(path);
        }),
      abort: () => this.#perform('abort', path, () => writer.abort()),
    };
  }

  size(path: string): Promise<number> {
    return this.#perform('size', path, () => this.#files.size(path));
  }

  read(path: string, offset: number, length: number): Promise<Buffer> {
    return this.#perform('read', path, async () =>
      this.#store.asRead(path, await this.#files.read(path, offset, length)),
    );
  }

  list(prefix: string): Promise<FileInfo[]> {
    return this.#store.listed(this.#process, prefix, () => this.#files.list(prefix));
  }

  delete(path: string): Promise<void> {
    return this.#perform('delete', path, () => {
      this.#store.metadataJudge.fileDeleted(path, this.#process.name);
      return this.#files.delete(path);
    });
  }

  #perform<T>(operation: string, path: string, act: () => Promise<T>): Promise<T> {
    return this.#store.perform(this.#process, operation, path, act);
  }
}
