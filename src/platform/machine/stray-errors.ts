/**
 * Uncaught errors of the calling thread: logged with their stack, and counted. Without this Node would end the process
 * at the first of them, with calls of other clients under way.
 *
 * An unhandled rejection leaves only its own work undone, so the thread continues. An exception may have left any work
 * half done.
 */
import type { Logger, Metrics } from '../../env/index.ts';

export interface StrayErrorOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Called after an exception was logged. Default: exceptions are left to Node, which ends the thread. */
  readonly onException?: () => void;
}

/**
 * Installs handlers of the whole process, or of a worker thread alone, so only programs may call it, never the library.
 * Returns a function that removes them.
 */
export function watchStrayErrors({ logger, metrics, onException }: StrayErrorOptions): () => void {
  const report = (message: string, counter: string, thrown: unknown): void => {
    metrics.add(counter);
    logger.error(message, { stack: stackOf(thrown), count: metrics.get(counter) });
  };
  const onRejection = (reason: unknown): void =>
    report(
      'a promise was rejected and not handled; the work that it was part of is not done',
      'process.unhandledRejections',
      reason,
    );
  const onUncaught = (error: unknown): void => {
    report('an exception was not caught', 'process.uncaughtExceptions', error);
    onException?.();
  };
  process.on('unhandledRejection', onRejection);
  if (onException) process.on('uncaughtException', onUncaught);
  return () => {
    process.off('unhandledRejection', onRejection);
    process.off('uncaughtException', onUncaught);
  };
}

/** The stack, with those of its causes. */
export function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const cause = thrown.cause === undefined || thrown.cause === thrown ? '' : `\ncaused by ${stackOf(thrown.cause)}`;
  return `${thrown.stack ?? String(thrown)}${cause}`;
}
