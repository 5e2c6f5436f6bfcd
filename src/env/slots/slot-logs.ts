/**
 * The logs of a FileSystem on a store of numbered slots, for storage that many machines share. All its calls are sent
 * again for a while if they are not answered.
 *
 * What this adds to the promises of file-system.ts:
 * - A writer that is fenced learns it with its next append, whatever is under way, paused or lost.
 * - Paths are not reused: what a former writer or a deletion has sent may land late in a new log of the same path.
 *   A deletion that failed, or whose slots landed late, leaves the path in `listLogs`, and is made again.
 */
import { crc32c } from '../../base/index.ts';
import type { Clock, Random } from '../seams/clock.ts';
import type { Checksum } from '../seams/codecs.ts';
import { checkFilePath } from '../seams/file-path.ts';
import type { FileSystem, LogAppend, LogCuts, LogMemo, LogPosition, LogWriter } from '../seams/file-system.ts';
import { MAX_DELETED_SLOTS, type SlotStore } from '../seams/slot-store.ts';
import { SlotCalls } from './slot-calls.ts';
import { cutSlots } from './slot-cuts.ts';
import { rowsOf } from './slot-format.ts';
import { SlotLogWriter } from './slot-log-writer.ts';
import { drawNonce, findLogEnd, sealRow } from './slot-marks.ts';
import { readSlots } from './slot-reader.ts';

export interface SlotLogsOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Default: base's crc32c. */
  readonly checksum?: Checksum;
  /** How long an unanswered call is sent again, ms. Default: 10,000. */
  readonly retryForMs?: number;
  /**
   * An append this long after the last one is acknowledged only after a look whether its log was deleted meanwhile,
   * ms. Default: 1000.
   */
  readonly doubtMs?: number;
  /** An append that is not durable after this time is written to the log's other row, too, ms. Default: 250. */
  readonly switchAfterMs?: number;
  /**
   * Least that a slot counts in the size of a log: the bytes that a reader could read in the time that the call for one
   * slot takes. So the limit of a log bounds the time of its replay. Default: 0.
   */
  readonly slotCostBytes?: number;
}

type Logs = Pick<FileSystem, 'openLog' | 'fence' | 'readLog' | 'cutLog' | 'logTail' | 'listLogs' | 'deleteLog'>;

export class SlotLogs implements Logs {
  readonly #calls: SlotCalls;
  readonly #random: Random;
  readonly #doubtMs: number;
  readonly #switchAfterMs: number;

  constructor(
    store: SlotStore,
    {
      clock,
      random,
      checksum = crc32c,
      retryForMs = 10_000,
      doubtMs = 1000,
      switchAfterMs = 250,
      slotCostBytes = 0,
    }: SlotLogsOptions,
  ) {
    this.#calls = new SlotCalls({ store, clock, checksum, retryForMs, slotCostBytes });
    this.#random = random;
    this.#doubtMs = doubtMs;
    this.#switchAfterMs = switchAfterMs;
  }

  async openLog(path: string): Promise<LogWriter> {
    checkFilePath(path);
    const nonce = drawNonce(this.#random);
    return SlotLogWriter.open({
      calls: this.#calls,
      log: path,
      nonce,
      doubtMs: this.#doubtMs,
      switchAfterMs: this.#switchAfterMs,
    });
  }

  async fence(path: string): Promise<void> {
    checkFilePath(path);
    for (const row of rowsOf(path)) await sealRow(this.#calls, row, 'fence', this.#random);
  }

  readLog(path: string, from: LogPosition = 0, memo?: LogMemo): AsyncIterable<LogAppend> {
    return readSlots(this.#calls, path, from, memo);
  }

  cutLog(path: string, partBytes: number, from: LogPosition = 0): Promise<LogCuts> {
    return cutSlots(this.#calls, path, partBytes, from);
  }

  async logTail(path: string): Promise<LogPosition> {
    return (await findLogEnd(this.#calls, path))?.last ?? 0;
  }

  async listLogs(prefix: string): Promise<string[]> {
    const rows = await this.#calls.listLogs(prefix);
    const logs = new Set(rows.map((row) => row.slice(0, row.lastIndexOf('/'))));
    return [...logs].filter((log) => log.startsWith(prefix)).sort();
  }

  /**
   * Markers are created first and deleted last: while slots are left the log reads as removed, and its writer is
   * stopped.
   */
  async deleteLog(path: string): Promise<void> {
    const markers: { readonly row: string; readonly marker: number }[] = [];
    for (const row of rowsOf(path)) {
      const marker = await sealRow(this.#calls, row, 'removed', this.#random);
      if (marker !== undefined) markers.push({ row, marker });
    }
    for (const { row, marker } of markers) {
      for await (const slots of this.#calls.pages(row, 0)) {
        const others = slots.filter((slot) => slot < marker);
        for (let i = 0; i < others.length; i += MAX_DELETED_SLOTS)
          await this.#calls.delete(row, others.slice(i, i + MAX_DELETED_SLOTS));
      }
    }
    for (const { row, marker } of markers) await this.#calls.delete(row, [marker]);
  }
}

/** The files of `fileSystem`, and the logs of the slot store. */
export function withSlotLogs(
  fileSystem: Omit<FileSystem, keyof Logs>,
  store: SlotStore,
  options: SlotLogsOptions,
): FileSystem {
  const logs = new SlotLogs(store, options);
  const { readNow, space } = fileSystem;
  return {
    create: (path) => fileSystem.create(path),
    size: (path) => fileSystem.size(path),
    read: (path, offset, length) => fileSystem.read(path, offset, length),
    ...(readNow && { readNow: readNow.bind(fileSystem) }),
    ...(space && { space: space.bind(fileSystem) }),
    list: (prefix) => fileSystem.list(prefix),
    delete: (path) => fileSystem.delete(path),
    openLog: (path) => logs.openLog(path),
    fence: (path) => logs.fence(path),
    readLog: (path, from, memo) => logs.readLog(path, from, memo),
    cutLog: (path, partBytes, from) => logs.cutLog(path, partBytes, from),
    logTail: (path) => logs.logTail(path),
    listLogs: (prefix) => logs.listLogs(prefix),
    deleteLog: (path) => logs.deleteLog(path),
  };
}
