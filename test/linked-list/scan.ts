/** Reads the whole table in key order, in parts: each as one scan, which goes on after its last row where it fails. */
import { setTimeout as pause } from 'node:timers/promises';
import { BigtableError } from '../../src/embedded/index.ts';
import type { Doors } from '../cluster/doors.ts';
import { TABLE } from './nodes.ts';
import type { FoundRow } from './verification.ts';

const PARTS = 64;
const AT_ONCE = 4;
const TIMEOUT_MS = 60_000;
const PAUSE_MS = 500;
/** A part that has had so many failures without a row between them is given up. */
const MAX_FAILURES = 20;

/** `see` gets each row once. Rejects where a part cannot be read, and where rows do not ascend within their part. */
export async function scanAll(doors: Doors, see: (row: FoundRow) => void): Promise<void> {
  let next = 0;
  const read = async (): Promise<void> => {
    while (next < PARTS) await scanPart(doors, next++, see);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, read));
}

/** The first and the last part have no bounds outwards: a row of any key is seen. */
async function scanPart(doors: Doors, part: number, see: (row: FoundRow) => void): Promise<void> {
  const end = part + 1 === PARTS ? {} : { end: boundary(part + 1) };
  let start = part === 0 ? {} : { start: boundary(part) };
  let last = '';
  for (let failures = 0; ; ) {
    try {
      for await (const row of doors
        .any()
        .table(TABLE)
        .scan({ ...start, ...end, timeoutMs: TIMEOUT_MS })) {
        if (row.name <= last) throw new Error(`a scan went from row ${last} to row ${row.name}`);
        last = row.name;
        failures = 0;
        see({ key: row.name, cells: row.cells.map(({ column, text }) => ({ column, text })) });
      }
      return;
    } catch (error) {
      if (!(error instanceof BigtableError) || ++failures > MAX_FAILURES) throw error;
      if (last !== '') start = { start: `${last}\0` };
      await pause(PAUSE_MS);
    }
  }
}

/** Keys are hexadecimal, and spread evenly. */
const boundary = (part: number): string => ((part * 256) / PARTS).toString(16).padStart(2, '0');
