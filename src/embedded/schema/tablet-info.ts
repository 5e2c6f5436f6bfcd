/** A tablet as the library shows it: its rows, its server, its size. */
import { toBytes } from '../../base/index.ts';
import type { PastEvent, TabletHistory, TabletStatistics } from '../../model/index.ts';

export interface TabletInfo {
  /** The first row; empty = from the beginning of the table. */
  readonly start: Buffer;
  /** The first row of the next tablet; undefined = to the end of the table. */
  readonly end: Buffer | undefined;
  /** Name of the tablet server. */
  readonly server: string;
  readonly files: number;
  readonly fileBytes: number;
  /** Bytes that are not in files yet, with overheads. */
  readonly memoryBytes: number;
}

export function tabletInfo({
  range: { start, end },
  server,
  files,
  fileBytes,
  memoryBytes,
}: TabletStatistics): TabletInfo {
  return {
    start: toBytes(start),
    end: end === undefined ? undefined : toBytes(end),
    server,
    files,
    fileBytes,
    memoryBytes,
  };
}

export interface TabletEvents {
  /** The first row; empty = from the beginning of the table. */
  readonly start: Buffer;
  /** The first row of the next tablet; undefined = to the end of the table. */
  readonly end: Buffer | undefined;
  /** Newest first, 20 at most. */
  readonly events: readonly PastEvent[];
}

export function tabletEvents({ range: { start, end }, events }: TabletHistory): TabletEvents {
  return { start: toBytes(start), end: end === undefined ? undefined : toBytes(end), events };
}
