/**
 * Counts the calls of a server by method: those in progress, how they ended and how long they took.
 *
 * Invariant: the number of counters is bounded by the registered methods, whatever paths callers make up.
 */
import { assert, type Code, codeName } from '../../base/index.ts';
import { type Counter, type Histogram, labelled, type Metrics } from '../../env/index.ts';
import type { OnCall } from '../contract/rpc-server.ts';

/** Stands for all methods that do not exist. */
const UNKNOWN_METHOD = 'unknown';

/** The ledger of one method. */
export class MethodLedger {
  inFlight = 0;
  readonly name: string;
  readonly #metrics: Metrics;
  readonly #durations: Histogram;
  /** By code, those that have been counted. */
  readonly #ended: (Counter | undefined)[] = [];

  constructor(name: string, metrics: Metrics) {
    this.name = name;
    this.#metrics = metrics;
    this.#durations = metrics.histogram(labelled('calls.durationMs', name));
  }

  end(code: Code, durationMs: number): void {
    this.inFlight--;
    assert(this.inFlight >= 0, 'no more calls have ended than begun');
    this.#durations.observe(durationMs);
    const ended = (this.#ended[code] ??= this.#metrics.counter(labelled('calls.ended', this.name, codeName(code))));
    ended.value++;
  }
}

export class CallLedger {
  /** Called for each call that has ended. */
  readonly onCall: OnCall | undefined;
  readonly #metrics: Metrics;
  readonly #methods = new Map<string, MethodLedger>();
  readonly #stops: (() => void)[] = [];

  constructor(metrics: Metrics, onCall: OnCall | undefined) {
    this.#metrics = metrics;
    this.onCall = onCall;
  }

  /** A call of the method has begun. */
  begin(path: string, isKnown: boolean): MethodLedger {
    const method =
      (isKnown ? this.#methods.get(path) : this.#methods.get(UNKNOWN_METHOD)) ??
      this.#add(isKnown ? path : UNKNOWN_METHOD);
    method.inFlight++;
    return method;
  }

  /** Removes the gauges. */
  close(): void {
    for (const stop of this.#stops) stop();
  }

  #add(path: string): MethodLedger {
    const name = path.startsWith('/') ? path.slice(1) : path;
    const method = new MethodLedger(name, this.#metrics);
    this.#methods.set(path, method);
    this.#stops.push(this.#metrics.gauge(labelled('calls.inFlight', name), () => method.inFlight));
    return method;
  }
}
