import { BigtableError } from '../../src/embedded/index.ts';

/** Does the work; returns the error with which it fails, undefined if it does not. Any other error is thrown. */
export async function failureOf(work: () => Promise<unknown>): Promise<BigtableError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof BigtableError) return error;
    throw error;
  }
}
