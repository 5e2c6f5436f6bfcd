/**
 * METADATA's records in the logs that its tablets list. A log holds the records of all tablets of its server, so it is
 * read once, and from its last append on when it is requested again: its server may be writing.
 */
import { type LogRecord, readAppends } from '../commitlog/index.ts';
import type { FileSystem, LogPosition } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';

interface KnownLog {
  readonly records: LogRecord[];
  /** Position of the last append read. */
  last: LogPosition | undefined;
}

export class MetadataLogs {
  readonly #fileSystem: FileSystem;
  readonly #logs = new Map<string, KnownLog>();

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem;
  }

  /** All records of METADATA's tablets that the log holds now, in its order. */
  async records(path: string): Promise<readonly LogRecord[]> {
    const known = this.#logs.get(path);
    if (known && (await this.#readOn(path, known))) return known.records;
    const log: KnownLog = { records: [], last: undefined };
    await this.#readOn(path, log);
    this.#logs.set(path, log);
    return log.records;
  }

  /** False if the log was trimmed beyond the known part. */
  async #readOn(path: string, log: KnownLog): Promise<boolean> {
    const known = log.last;
    let found = known === undefined;
    for await (const { position, records } of readAppends(this.#fileSystem, path, known)) {
      if (position === known) {
        found = true;
        continue;
      }
      if (!found) return false;
      log.records.push(...records.filter(({ tableId }) => tableId === METADATA_TABLE_ID));
      log.last = position;
    }
    return found;
  }
}
