/** The options of every call of the library, in its last argument: a signal that cancels it, and a timeout. */
import { checkOptions, describeValue, invalidArgument, isObjectOfNames, type OptionTable } from '../../base/index.ts';

export interface CallOptions {
  /**
   * Cancels the call when it aborts: the call fails with a `CallEndedError` whose `cause` is the signal's reason. A
   * write that had begun may have been applied.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * The timeout of the call, milliseconds, including the loop over a scan's rows. After it the call fails with a
   * `CallEndedError` of code DEADLINE_EXCEEDED. Default: no limit. 0 or less: the call fails immediately.
   */
  readonly timeoutMs?: number | undefined;
}

export const CALL_OPTIONS = { signal: 'free', timeoutMs: 'free' } satisfies OptionTable<CallOptions>;

/** The two of them among the options of a call that has more; undefined where neither is given. */
export function callOptionsOf({ signal, timeoutMs }: CallOptions): CallOptions | undefined {
  return signal === undefined && timeoutMs === undefined ? undefined : { signal, timeoutMs };
}

/** INVALID_ARGUMENT for an unknown option. */
export function checkCallOptions(options: CallOptions): void {
  checkOptions(options, CALL_OPTIONS, 'the options of a call');
}

/** INVALID_ARGUMENT for a value of the wrong type. */
export function checkCallValues({ signal, timeoutMs }: CallOptions): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidArgument(`signal must be an AbortSignal, not ${describeValue(signal)}`);
  }
  if (timeoutMs !== undefined && (typeof timeoutMs !== 'number' || Number.isNaN(timeoutMs))) {
    throw invalidArgument(`timeoutMs must be a number of milliseconds, not ${describeValue(timeoutMs)}`);
  }
}

/** An argument that may be left out, before the options, which may be left out too. */
export type ThenOptions<T, O extends CallOptions = CallOptions> =
  | []
  | [own: T]
  | [options: O]
  | [own: T, options: O | undefined];

/** Such arguments apart: the one in a list, and the options. `T` is never a plain object. */
export function takeOptions<T, O extends CallOptions = CallOptions>(
  given: Readonly<ThenOptions<T, O>>,
): readonly [own: [] | [T], options: O | undefined] {
  const [first, options] = given;
  if (given.length === 0) return [[], undefined];
  if (given.length === 1 && isObjectOfNames(first)) return [[], first as O];
  return [[first as T], options];
}
