/**
 * Uncaught errors of the thread that asks for it: logged with their stack, and counted. Without
 * this Node would end the process at the first of them, with calls of others under way.
 *
 * An unhandled rejection leaves its own work undone and nothing else, so the thread goes on. An exception may
 * have left anything half done.
 */
import type { Logger, Metrics } from '../../env/index.ts';

export interface StrayErrorOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** An exception was logged. Where this is not given exceptions are left to Node, which ends the thread. */
  readonly onException?: () => void;
}

/**
 * Installs handlers of the whole process, or of a worker thread alone, so only programs may call it, never the library.
 * Answers how to take them off.
 */
export function watchStrayErrors({ logger, metrics, onException }: StrayErrorOptions): () => void {
  const tell = (message: string, counter: string, thrown: unknown): void => {
    metrics.add(counter);
    logger.error(message, { stack: stackOf(thrown), count: metrics.get(counter) });
  };
  const onRejection = (reason: unknown): void =>
    tell(
      'a promise was rejected and not handled; the work that it was part of is not done',
      'process.unhandledRejections',
      reason,
    );
  const onUncaught = (error: unknown): void => {
    tell('an exception was not caught', 'process.uncaughtExceptions', error);
    onException?.();
  };
  process.on('unhandledRejection', onRejection);
  if (onException) process.on('uncaughtException', onUncaught);
  return () => {
    process.off('unhandledRejection', onRejection);
    process.off('uncaughtException', onUncaught);
  };
}

/** With the stacks of what caused it. */
export function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const cause = thrown.cause === undefined || thrown.cause === thrown ? '' : `\ncaused by ${stackOf(thrown.cause)}`;
  return `${thrown.stack ?? String(thrown)}${cause}`;
}
