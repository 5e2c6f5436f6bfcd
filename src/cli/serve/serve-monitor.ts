/**
 * The monitoring of a program that serves: the log on standard error, and the port with metrics and probes.
 *
 * The port is there before the database is opened, and until it is closed: /readyz tells that the server starts, and
 * that it stops.
 */
import { statfs } from 'node:fs/promises';
import { BigtableError, Code, VERSION } from '../../base/index.ts';
import { systemClock } from '../../boot/index.ts';
import { labelled, Metrics, type MetricsReport, sumOfReports } from '../../env/index.ts';
import { LogWriter, MetricsPage, MonitorServer, Readiness } from '../../monitor/index.ts';
import type { ServerSettings } from '../settings/server-settings.ts';
import type { Terminal } from '../output/terminal.ts';

/** Without --metrics-address: the server's port plus this, on this machine alone. */
const METRICS_PORT_OFFSET = 1000;
const LAST_PORT = 65_535;
/** With less space than this on the disk the server is not ready: the commit log reserves this much at a time. */
const MIN_FREE_BYTES = 1024 * 1024;
/** The time for readers to take the rest of the log when the server ends. */
const LAST_LINES_MS = 1000;

export interface ServeMonitorOptions extends Pick<ServerSettings, 'metricsAddress' | 'logLevel' | 'logFormat'> {
  /** By its port that of the metrics is chosen, if no setting names one. */
  readonly address: string;
  /** Where the data are. Default: not on a disk of this machine. */
  readonly directory: string | undefined;
}

export class ServeMonitor {
  readonly logger: LogWriter;
  readonly metrics = new Metrics();
  readonly readiness: Readiness;
  readonly #options: ServeMonitorOptions;
  readonly #page: MetricsPage;
  #server: MonitorServer | undefined;
  /** The address of the metrics, or the reason why there is none. */
  #where = 'off';
  /** The figures of the threads of tablet servers, if there are any. */
  #threads: () => Promise<readonly MetricsReport[]> = async () => [];
  #disk: { readonly freeBytes: number; readonly sizeBytes: number } | undefined;

  constructor(options: ServeMonitorOptions, terminal: Terminal) {
    this.#options = options;
    const { logLevel: level, logFormat: format } = options;
    this.logger = new LogWriter({
      clock: systemClock,
      output: { write: async (text) => (terminal.log ? terminal.log(text) : terminal.complain(text)) },
      level,
      format,
      metrics: this.metrics,
    });
    this.readiness = new Readiness(systemClock, [() => this.#isDiskFull(), () => this.#cannotServe()]);
    this.#page = new MetricsPage(
      { main: () => this.#mainReport(), threads: async () => sumOfReports(await this.#threads()) },
      systemClock,
    );
    this.metrics.gauge(labelled('build.info', VERSION, process.version), () => 1);
  }

  /** Starts the port. Fails if an explicit address is in use or invalid. */
  async start(): Promise<void> {
    const { metricsAddress } = this.#options;
    if (metricsAddress === 'off') return;
    const address = metricsAddress ?? usualAddress(this.#options.address);
    try {
      this.#server = await MonitorServer.listen({
        clock: systemClock,
        address,
        page: this.#page,
        readiness: this.readiness,
      });
    } catch (error) {
      if (metricsAddress !== undefined || !(error instanceof BigtableError) || error.code === Code.INVALID_ARGUMENT)
        throw error;
      this.#where = `off, because ${error.message} (--metrics-address chooses another)`;
      return;
    }
    this.#where = `http://${this.#server.address}/metrics, /healthz, /readyz`;
    if (this.#server.isPublic)
      this.logger.warn('other machines can read the metrics without authentication', {
        address: this.#server.address,
      });
  }

  /** A line for the user who starts the server. */
  get greeting(): string {
    return `metrics: ${this.#where}`;
  }

  /** The server serves. `threads`: the figures of its threads, if it has any. */
  serving(threads?: () => Promise<readonly MetricsReport[]>): void {
    if (threads) this.#threads = threads;
    this.readiness.serving();
    if (this.#server !== undefined) {
      this.#page
        .load()
        .catch((error: unknown) => this.logger.error('the metrics could not be loaded', { message: String(error) }));
    }
  }

  stopping(): void {
    this.readiness.stopping();
  }

  /** Ends the port, and waits a while for the last lines to be read. */
  async close(): Promise<void> {
    await this.#server?.close();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LAST_LINES_MS);
    });
    await Promise.race([this.logger.flush(), late]);
    clearTimeout(timer);
  }

  async #mainReport(): Promise<MetricsReport> {
    const isReady = (await this.readiness.obstacle()) === undefined;
    const disk = this.#disk;
    const own: MetricsReport = {
      counters: {},
      gauges: {
        'server.ready': Number(isReady),
        ...(disk === undefined ? {} : { 'disk.freeBytes': disk.freeBytes, 'disk.sizeBytes': disk.sizeBytes }),
      },
      histograms: {},
    };
    return sumOfReports([own, this.metrics.report()]);
  }

  async #isDiskFull(): Promise<string | undefined> {
    const { directory } = this.#options;
    if (directory === undefined) return undefined;
    const { bavail, blocks, bsize } = await statfs(directory).catch(() => ({
      bavail: undefined,
      blocks: 0,
      bsize: 0,
    }));
    // no file system tells it, or not every one
    this.#disk =
      bavail === undefined || blocks === 0 ? undefined : { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
    return this.#disk !== undefined && this.#disk.freeBytes < MIN_FREE_BYTES ? 'the disk is full' : undefined;
  }

  async #cannotServe(): Promise<string | undefined> {
    const { gauges } = sumOfReports([this.metrics.report(), ...(await this.#threads())]);
    if ((gauges['memtables.refusing'] ?? 0) > 0)
      return 'what is in memory cannot be written to files: writes are refused as soon as memory is full';
    if ((gauges['memtables.flushFailing'] ?? 0) > 0)
      return 'what is in memory cannot be written to files, as the log says: writes wait as soon as memory is full';
    const unserved = gauges['master.unservedTablets'] ?? 0;
    return unserved > 0 ? `tablets that cannot be served: ${unserved}` : undefined;
  }
}

function usualAddress(serverAddress: string): string {
  const port = Number(serverAddress.slice(serverAddress.lastIndexOf(':') + 1));
  return `127.0.0.1:${port > 0 && port + METRICS_PORT_OFFSET <= LAST_PORT ? port + METRICS_PORT_OFFSET : 0}`;
}
