/**
 * The logger of a server: lines of a level and above to an output that may be slow, such as a pipe without a reader.
 *
 * Invariants: it never waits, and holds at most MAX_BYTES of lines: lines beyond that are dropped and counted, lines of
 * the access log sooner than others. A line reports how many were dropped, as soon as there is space for it. One piece
 * is written at a time, in the order of the calls.
 */
import {
  type Clock,
  type Counter,
  LOG_LEVELS,
  type LogFields,
  type Logger,
  type LogLevel,
  type Metrics,
} from '../env/index.ts';
import { type LogFormat, type LogKind, logLine } from './log-lines.ts';

const MAX_BYTES = 1024 * 1024;
/** The share that lines of the access log may fill. */
const MAX_ACCESS_BYTES = MAX_BYTES / 2;
/** Lines are written together up to about this size. */
const PIECE_BYTES = 64 * 1024;

export interface LogOutput {
  /** Resolves when the text is written, or can never be. Must neither throw nor reject. */
  write(text: string): Promise<void>;
}

export interface LogWriterOptions {
  readonly clock: Pick<Clock, 'nowMicros'>;
  readonly output: LogOutput;
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly metrics: Metrics;
}

export class LogWriter implements Logger {
  readonly #options: LogWriterOptions;
  readonly #least: number;
  #lines: string[] = [];
  #bytes = 0;
  #writing: Promise<void> | undefined;
  readonly #dropped: Counter;
  /** Dropped lines that no line has reported. */
  #unreported = 0;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#least = LOG_LEVELS.indexOf(options.level);
    this.#dropped = options.metrics.counter('logLines.dropped');
  }

  debug(message: string, fields?: LogFields): void {
    this.#log('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#log('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#log('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#log('error', message, fields);
  }

  access(fields: LogFields): void {
    this.#add('access', 'call', fields, MAX_ACCESS_BYTES);
  }

  /** Resolves when all that was logged so far is written, as far as the output takes it. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #log(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if (LOG_LEVELS.indexOf(level) >= this.#least) this.#add(level, message, fields, MAX_BYTES);
  }

  #add(kind: LogKind, message: string, fields: LogFields | undefined, maxBytes: number): void {
    if (this.#bytes >= maxBytes) {
      this.#dropped.value++;
      this.#unreported++;
      return;
    }
    if (this.#unreported > 0) this.#reportDropped();
    this.#push(this.#line(kind, message, fields));
  }

  #line(kind: LogKind, message: string, fields?: LogFields): string {
    const { format, clock } = this.#options;
    return logLine(format, kind, clock.nowMicros(), message, fields);
  }

  #reportDropped(): void {
    const count = this.#unreported;
    this.#unreported = 0;
    this.#push(this.#line('warn', 'log lines were dropped: they are made faster than they are read', { count }));
  }

  #push(line: string): void {
    this.#lines.push(line);
    // about the memory that it takes
    this.#bytes += line.length;
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    // the lines of one turn are written together
    await Promise.resolve();
    while (this.#lines.length > 0) {
      let bytes = 0;
      let count = 0;
      while (count < this.#lines.length && bytes < PIECE_BYTES) bytes += this.#lines[count++]!.length;
      const piece = this.#lines.splice(0, count).join('');
      await this.#options.output.write(piece);
      this.#bytes -= bytes;
      if (this.#lines.length === 0 && this.#unreported > 0) this.#reportDropped();
    }
    this.#writing = undefined;
  }
}
