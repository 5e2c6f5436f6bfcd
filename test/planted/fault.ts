/** A wrong state that a mistake of ours could bring about, and the operation that must notice it. */
import type { MetadataRow } from '../../src/metadata/index.ts';

export interface Fault {
  /** The wrong state, in words. */
  readonly fault: string;
  /** Matches the message of the assert. */
  readonly message: RegExp;
  /** Does one ordinary operation, in the wrong state if `planted`. Must fail then, and only then. */
  run(planted: boolean): unknown;
}

/** A row of METADATA: the only tablet of its table, which no server serves. */
export const ROW: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: undefined,
  epoch: 3,
  version: 7,
  commitId: 'c',
  files: {},
  redo: { epoch: 3, sequence: 5 },
  logs: [],
};
