import { BigtableError, Code } from '../../base/index.ts';
import { cut, INSPECT, type InspectOptions } from '../values/show.ts';

export interface BatchFailure {
  /** The index of the mutation in the batch. */
  readonly index: number;
  readonly error: BigtableError;
}

/** The most failures in the message. */
const MAX_TOLD = 5;
/** The most failures that are inspected: Node's own default. */
const MAX_INSPECTED = 100;

/** Some mutations of a batch failed; the others were applied. The code is that of the first failure. */
export class BatchError extends BigtableError {
  override readonly name: string = 'BatchError';
  /** All failures, by index. Not enumerable, because Node would print the stack of each with an uncaught error. */
  declare readonly failures: readonly BatchFailure[];

  /** `more`: text after the number of failures. */
  constructor(failures: readonly BatchFailure[], more = '') {
    super(failures[0]?.error.code ?? Code.UNKNOWN, messageOf(failures, more), {
      retry: failures.every(({ error }) => error.retry),
    });
    const list = [...failures];
    Object.defineProperty(list, INSPECT, { value: inspectFailures });
    Object.defineProperty(this, 'failures', { value: list });
  }

  override toJSON(): object {
    return { ...super.toJSON(), failures: this.failures };
  }
}

/** One failure in a line; of several the first few, a line each. */
function messageOf(failures: readonly BatchFailure[], more: string): string {
  const [first] = failures;
  if (failures.length === 1) return `mutation ${first?.index} failed${more}: ${first?.error.message}`;
  return [`${failures.length} mutations failed${more}:`, ...linesOf(failures, MAX_TOLD)].join('\n');
}

/** `index: CODE message`. */
function linesOf(failures: readonly BatchFailure[], most: number): string[] {
  const lines = failures.slice(0, most).map(({ index, error: { codeName, message } }) => {
    return `  ${index}: ${codeName} ${cut(message.replaceAll(/\s+/g, ' '))}`;
  });
  return failures.length > lines.length ? [...lines, `  … and ${failures.length - lines.length} more`] : lines;
}

function inspectFailures(this: readonly BatchFailure[], depth: number, { maxArrayLength }: InspectOptions): string {
  if (depth < 0) return '[Array]';
  return ['[', ...linesOf(this, maxArrayLength ?? MAX_INSPECTED), ']'].join('\n');
}
