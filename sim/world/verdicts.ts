/** What the judges of a run find. The first finding ends the run. */

/** Who found it. */
export type Judge =
  /** A row's history is not linearizable, or a scan is not in order. */
  | 'histories'
  /** A counter is less than was added to it, or more. */
  | 'counters'
  /** A change of a schema that was answered is not in force, or what it created is gone (`operator.ts`). */
  | 'schemas'
  /** A call on a table of the operator is answered with what cannot be (`table-calls.ts`). */
  | 'tables'
  /** A backup, a restored or undeleted table, or a change stream lacks what it must have, or has more (`keeper.ts`). */
  | 'kept'
  /** A view, a policy, a quota or a part of an instance is not what it was made, or a front door does not know it (`steward.ts`). */
  | 'resources'
  /** METADATA does not partition a table, or a file that it lists is missing or damaged (I3, I4). */
  | 'storage'
  /** Two servers whose leases surely hold serve one tablet (I2). */
  | 'one server'
  /** A server answers after its session is over (I1, I2; `answer-judge.ts`). */
  | 'answers'
  /** Something landed behind a FENCE, or in a log that another server had replayed (I5, I6; `log-judge.ts`). */
  | 'logs'
  /** A row of METADATA, or a file that one lists, changes as it must not (I3, I4, I6, I7; `metadata-judge.ts`). */
  | 'METADATA'
  /** A recovery would miss a record, or a tablet is taken from a server that may still write (I1; `recovery-judge.ts`). */
  | 'recovery'
  /** A role says that an invariant of its own is broken, or that a tablet is damaged. */
  | 'roles'
  /** Something is not served long after the faults, or a file is left over (I8). */
  | 'in the end'
  /** The run itself ended early. */
  | 'run';

export interface Violation {
  readonly judge: Judge;
  readonly message: string;
}

export class Verdicts {
  /** Resolves with the first finding. */
  readonly found: Promise<Violation>;
  #first: Violation | undefined;
  #resolve: (violation: Violation) => void = () => {};

  constructor() {
    this.found = new Promise((resolve) => (this.#resolve = resolve));
  }

  get first(): Violation | undefined {
    return this.#first;
  }

  add(judge: Judge, message: string): void {
    if (this.#first !== undefined) return;
    this.#first = { judge, message };
    this.#resolve(this.#first);
  }
}

/** Names of codes: with faults any call may fail so. */
export const FAILURES: ReadonlySet<string | undefined> = new Set([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'ABORTED',
  'CANCELLED',
  // a front door has no memory for the call
  'RESOURCE_EXHAUSTED',
  // the storage returned wrong bytes; where it did not, the roles are judged by what they log
  'DATA_LOSS',
]);
