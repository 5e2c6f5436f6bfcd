/**
 * Checks logs: every append's checksum, the chain of appends, sequences, trimming, and that each record can be read.
 * One append is held in memory at a time.
 */
import { BigtableError, Code, toBigtableError } from '../base/index.ts';
import { readAppends } from '../commitlog/index.ts';
import { type Clock, type FileSystem, Pacer } from '../env/index.ts';
import type { Findings } from './findings.ts';

export interface CheckedLog {
  readonly appends: number;
  readonly records: number;
  /** The number of its last record; 0 if there is none. */
  readonly lastSequence: number;
  readonly isWhole: boolean;
}

/** The limit of restarts for a log that its running owner trims. */
const ATTEMPTS = 5;

export async function checkLog(
  fileSystem: FileSystem,
  clock: Clock,
  path: string,
  findings: Findings,
): Promise<CheckedLog> {
  const pacer = new Pacer(clock);
  for (let attempt = 1; ; attempt++) {
    let [appends, records, lastSequence] = [0, 0, 0];
    try {
      for await (const append of readAppends(fileSystem, path)) {
        appends++;
        records += append.records.length;
        lastSequence = append.records.at(-1)?.sequence ?? lastSequence;
        if (pacer.due(1 + (append.records.length >> 4))) await pacer.pause();
      }
      return { appends, records, lastSequence, isWhole: true };
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (!(thrown instanceof BigtableError)) throw thrown;
      if (error.code === Code.UNAVAILABLE && attempt < ATTEMPTS) continue;
      findings.addError(error, path);
      return { appends, records, lastSequence, isWhole: false };
    }
  }
}
