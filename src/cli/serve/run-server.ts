/**
 * Runs a program that serves until a signal, or an uncaught exception, ends it: its log, its metrics and probes, and
 * what it tells the user who has started it.
 */
import { BigtableError, Code } from '../../base/index.ts';
import type { Logger, Metrics, MetricsReport } from '../../env/index.ts';
import type { Terminal } from '../output/terminal.ts';
import type { ServerSettings } from '../settings/server-settings.ts';
import { ServeMonitor } from './serve-monitor.ts';
import { StopReason } from './stop-reason.ts';

export interface Running {
  /** HOST:PORT. */
  readonly address: string;
  /** Lines before "listening on", for the user who starts it; `metrics`: the line about those. */
  greeting(metrics: string): readonly string[];
  /** Lines that it ends with. */
  readonly report?: () => Promise<readonly string[]>;
  /** Figures of other threads. */
  readonly reports?: () => Promise<readonly MetricsReport[]>;
  close(): Promise<void>;
}

export interface ServerProgram {
  readonly settings: ServerSettings;
  readonly terminal: Terminal;
  /** About the settings. */
  readonly warnings: readonly string[];
  /** The address by which the port of the metrics is chosen. */
  readonly address: string;
  /** The directory of the data, if they are on a disk of this machine. */
  readonly directory: string | undefined;
}

export interface StartParts {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Prints a line. */
  readonly say: (line: string) => Promise<void>;
}

/** Resolves when it has ended in good order. */
export async function runServer(
  { settings, terminal, warnings, ...about }: ServerProgram,
  start: (parts: StartParts) => Promise<Running>,
): Promise<void> {
  // a server continues when its output is not read
  const say = (line: string): Promise<void> => terminal.print(`${line}\n`).catch(() => {});
  const monitor = new ServeMonitor({ ...settings, ...about }, terminal);
  const { logger, metrics } = monitor;
  for (const warning of warnings) logger.warn(warning);
  const stop = new StopReason(logger, metrics, () => logger.flush());
  let running: Running | undefined;
  try {
    await monitor.start();
    running = await start({ logger, metrics, say });
    for (const line of running.greeting(monitor.greeting)) await say(line);
    stop.isServing = true;
    monitor.serving(running.reports);
    await say(`listening on ${running.address}`);
    const reason = await stop.reason;
    monitor.stopping();
    await say(`stopping on ${reason}`);
    if (!stop.isFailure) for (const line of (await running.report?.()) ?? []) await say(line);
  } finally {
    await running?.close();
    stop.end();
    await monitor.close();
  }
  if (stop.isFailure)
    throw new BigtableError(Code.INTERNAL, 'the server has ended because of an uncaught exception: see above');
}
