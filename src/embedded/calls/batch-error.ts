import { BigtableError, Code } from '../../base/index.ts';
import { cut, INSPECT, type InspectOptions } from '../values/show.ts';

export interface BatchFailure {
  /** Which of the mutations given. */
  readonly index: number;
  readonly error: BigtableError;
}

/** So many failures are shown inside of something else, such as the error that has them. */
const MOST_SHOWN = 5;
/** Node's own default. */
const MOST_OF_A_LIST = 100;

/** Some mutations of a batch failed; the others were applied. The code is that of the first failure. */
export class BatchError extends BigtableError {
  override readonly name: string = 'BatchError';
  readonly failures: readonly BatchFailure[];

  constructor(failures: readonly BatchFailure[], what = howMany(failures)) {
    const first = failures[0]?.error;
    super(first?.code ?? Code.UNKNOWN, `${what}: ${first?.message}`, {
      retry: failures.every(({ error }) => error.retry),
    });
    const list = [...failures];
    // on the list, so that all else of the error is shown as errors are: its stack, its cause, its fields
    Object.defineProperty(list, INSPECT, { value: inspectFailures });
    this.failures = list;
  }
}

function howMany(failures: readonly BatchFailure[]): string {
  return failures.length === 1 ? `mutation ${failures[0]?.index} failed` : `${failures.length} mutations failed, the first with`;
}

/**
 * `index: CODE message`, a line each: a stack for each of a hundred failures would hide that of the caller. All of them
 * where everything was asked for (`depth: null`).
 */
function inspectFailures(this: readonly BatchFailure[], depth: number, options: InspectOptions): string {
  if (depth < 0) return '[Array]';
  const isAlone = depth === options.depth;
  const most = isAlone ? (options.maxArrayLength ?? MOST_OF_A_LIST) : MOST_SHOWN;
  const lines = this.slice(0, most).map(({ index, error: { codeName, message } }) => `  ${index}: ${codeName} ${cut(message.replaceAll(/\s+/g, ' '))}`);
  if (this.length > lines.length) lines.push(`  … and ${this.length - lines.length} more`);
  return `[\n${lines.join('\n')}\n]`;
}
