/**
 * The errors of Edubba: one class that states what the caller can do, and its two special cases.
 *
 * A message names the thing, quotes the value and states the limit; it is not part of the contract, the code is.
 * Codes are gRPC's numbers (https://grpc.io/docs/guides/status-codes).
 */

export const Code = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;
export type Code = (typeof Code)[keyof typeof Code];
export type CodeName = keyof typeof Code;

const NAMES = Object.fromEntries(Object.entries(Code).map(([name, code]) => [code, name])) as Record<Code, CodeName>;

/** The name of a code: `codeName(5)` is 'NOT_FOUND'. */
export function codeName(code: Code): CodeName {
  return NAMES[code];
}

export interface ErrorOptions {
  /** True when the same call may succeed later, unchanged. Default: true for UNAVAILABLE and ABORTED alone. */
  readonly retry?: boolean;
  /** Plain facts for programs, passed on unchanged. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** The error that every failing call of Edubba throws. */
export class BigtableError extends Error {
  override readonly name: string = 'BigtableError';
  /** gRPC's number of the code. */
  readonly code: Code;
  /** Its name, such as NOT_FOUND. */
  readonly codeName: CodeName;
  /** True when the same call may succeed later, unchanged. */
  readonly retry: boolean;
  /** Plain facts for programs; an empty object where there are none. */
  declare readonly details: Readonly<Record<string, unknown>>;

  constructor(code: Code, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.codeName = codeName(code);
    this.retry = options.retry ?? (code === Code.UNAVAILABLE || code === Code.ABORTED);
    const { details = {} } = options;
    // shown only where it is not empty
    Object.defineProperty(this, 'details', { value: details, enumerable: Object.keys(details).length > 0 });
  }

  /** The fields for logs, without stack and cause. Includes the message, which JSON omits from errors. */
  toJSON(): object {
    return Object.assign({ name: this.name, message: this.message }, this);
  }
}

/** Bytes on disk are not those that were written. Code DATA_LOSS; never retried; names the file and the offset. */
export class CorruptionError extends BigtableError {
  override readonly name: string = 'CorruptionError';
  readonly file: string;
  readonly offset: number;

  constructor(file: string, offset: number, what: string, cause?: unknown) {
    super(Code.DATA_LOSS, `${file}: corrupt at byte ${offset}: ${what}`, { details: { file, offset }, cause });
    this.file = file;
    this.offset = offset;
  }
}

/** An invariant of the program does not hold: a bug in Edubba. */
export class AssertionError extends BigtableError {
  override readonly name: string = 'AssertionError';

  constructor(message: string) {
    super(Code.INTERNAL, `invariant broken: ${message}`);
  }
}

/**
 * For our own mistakes alone: bad input and bad bytes get errors of their own. Stays on in production; costly checks
 * run only under `checksInvariants`.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

export function invalidArgument(message: string, details?: Readonly<Record<string, unknown>>): BigtableError {
  return new BigtableError(Code.INVALID_ARGUMENT, message, details ? { details } : {});
}

export function notFound(message: string): BigtableError {
  return new BigtableError(Code.NOT_FOUND, message);
}

export function unavailable(message: string, cause?: unknown): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, message, { cause });
}

/** A thrown value as a BigtableError: unknown values become INTERNAL and keep their cause. */
export function toBigtableError(thrown: unknown): BigtableError {
  if (thrown instanceof BigtableError) return thrown;
  return new BigtableError(Code.INTERNAL, textOf(thrown), { cause: thrown });
}

/** Any value can be thrown, also one that has no text. */
function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return `a ${typeof thrown} without text`;
  }
}
