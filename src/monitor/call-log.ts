/**
 * Logs single calls: the access log has a line for each call, the log of slow calls has the request and the costs of
 * each.
 *
 * Invariant: no line holds values, row keys or credentials; at most MAX_SLOW_LINES slow calls are logged in a second,
 * and the rest are counted.
 */
import { codeName, isSuccessor } from '../base/index.ts';
import type { CallNotes, Clock, Counter, LogFields, Logger, Metrics } from '../env/index.ts';
import type { EndedCall } from '../wire/index.ts';

/** Lines about slow calls in a second. */
const MAX_SLOW_LINES = 10;
/** Kinds of filters that a line names, out of the first MAX_FILTERS parts of a filter. */
const MAX_FILTER_KINDS = 12;
const MAX_FILTERS = 200;
/** Up to this many ranges, single rows are counted separately. */
const MAX_COUNTED_RANGES = 1000;
/** Calls that stay open until one side ends them: they are never slow. */
const ENDLESS = new Set([
  '/grpc.health.v1.Health/Watch',
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
]);

export interface CallLogOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly accessLog: boolean;
  /** A call that takes longer is logged as slow. 0: none is. */
  readonly slowMs: number;
}

export class CallLog {
  readonly #options: CallLogOptions;
  readonly #slow: Counter;
  #second = 0;
  #slowLines = 0;
  /** Slow calls that no line has reported. */
  #unreported = 0;

  constructor(options: CallLogOptions) {
    this.#options = options;
    this.#slow = options.metrics.counter('calls.slow');
  }

  /** True when calls are logged at all. */
  get isOn(): boolean {
    return this.#options.accessLog || this.#options.slowMs > 0;
  }

  ended(call: EndedCall): void {
    const { accessLog, slowMs, logger } = this.#options;
    if (accessLog) logger.access(accessFields(call));
    if (slowMs > 0 && call.durationMs > slowMs && !ENDLESS.has(call.path)) this.#logSlow(call);
  }

  #logSlow(call: EndedCall): void {
    this.#slow.value++;
    const second = Math.floor(this.#options.clock.monotonicMs() / 1000);
    if (second !== this.#second) [this.#second, this.#slowLines] = [second, 0];
    if (++this.#slowLines > MAX_SLOW_LINES) {
      this.#unreported++;
      return;
    }
    const unreported = this.#unreported === 0 ? {} : { slowCallsNotTold: this.#unreported };
    this.#unreported = 0;
    this.#options.logger.warn('a slow call', { ...accessFields(call), ...planOf(call.context.notes), ...unreported });
  }
}

function accessFields({ path, context, peer, code, receivedBytes, sentBytes, durationMs }: EndedCall): LogFields {
  const { principal, appProfile, trace, notes } = context;
  return {
    method: path.slice(1),
    ...(notes?.target ? { target: notes.target } : {}),
    ...(principal === '' ? {} : { principal }),
    ...(appProfile === '' ? {} : { appProfile }),
    peer,
    code: codeName(code),
    receivedBytes,
    sentBytes,
    ...(notes === undefined || notes.rows === 0 ? {} : { rows: notes.rows }),
    ms: rounded(durationMs),
    ...(trace === '' ? {} : { trace }),
  };
}

/** The request of a slow call and its costs, without those that are zero. */
function planOf(notes: CallNotes | undefined): LogFields {
  if (notes === undefined) return {};
  const {
    rowRanges,
    rowsLimit,
    reversed,
    filter,
    tablets,
    files,
    rowsScanned,
    blockHits,
    blockMisses,
    loads,
    loadMs,
    queuedMs,
    writeWaitMs,
    passedOn,
  } = notes;
  const keys = singleRows(rowRanges);
  const numbers = {
    keys,
    ranges: rowRanges.length - keys,
    rowsLimit,
    tablets,
    files,
    rowsScanned,
    blocksInMemory: blockHits,
    blocksNotInMemory: blockMisses,
    waitsForDisk: loads,
    diskMs: rounded(loadMs),
    queuedMs: rounded(queuedMs),
    writeWaitMs: rounded(writeWaitMs),
    passedOn,
  };
  const nonZero = Object.entries(numbers).filter(([, value]) => value !== 0);
  return {
    ...Object.fromEntries(nonZero),
    ...(reversed ? { reversed } : {}),
    ...(filter === undefined ? {} : { filter: filterKinds(filter) }),
  };
}

/** The number of ranges that are single rows, requested by their keys; 0 where there are too many ranges to count. */
function singleRows(ranges: CallNotes['rowRanges']): number {
  if (ranges.length > MAX_COUNTED_RANGES) return 0;
  return ranges.filter(({ start, end }) => end !== undefined && isSuccessor(end, start)).length;
}

/**
 * The kinds of which a filter is made, each once, as far as a bounded search finds them. Its patterns are not logged.
 */
function filterKinds(filter: object): string {
  const kinds = new Set<string>();
  const waiting: unknown[] = [filter];
  for (let seen = 0; waiting.length > 0 && seen < MAX_FILTERS && kinds.size < MAX_FILTER_KINDS; seen++) {
    const next = waiting.shift();
    if (typeof next !== 'object' || next === null) continue;
    const { kind, filters, predicate, whenTrue, whenFalse } = next as Readonly<Record<string, unknown>>;
    if (typeof kind === 'string') kinds.add(kind);
    waiting.push(...(Array.isArray(filters) ? filters.slice(0, MAX_FILTERS) : []), predicate, whenTrue, whenFalse);
  }
  return `${[...kinds].join(',')}${waiting.some((left) => left !== undefined) ? ',…' : ''}`;
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
