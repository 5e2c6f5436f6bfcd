import { BigtableError, Code } from '../base/index.ts';

export interface BatchFailure {
  /** Which of the mutations given. */
  readonly index: number;
  readonly error: BigtableError;
}

/** Some mutations of a batch failed; the others were applied. The code is that of the first failure. */
export class BatchError extends BigtableError {
  override readonly name: string = 'BatchError';
  readonly failures: readonly BatchFailure[];

  constructor(failures: readonly BatchFailure[], what = `${failures.length} of the mutations failed, the first with`) {
    const first = failures[0]?.error;
    super(first?.code ?? Code.UNKNOWN, `${what}: ${first?.message}`, {
      retry: failures.every(({ error }) => error.retry),
    });
    this.failures = failures;
  }
}
