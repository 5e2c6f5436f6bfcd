/**
 * Errors as plain cloneable data, to cross between threads and servers, from a handler to its caller (call-errors.ts):
 * structured cloning keeps neither class nor code.
 */
import { BigtableError, type Code, CorruptionError, toBigtableError } from '../../base/index.ts';
import { detailsForCaller } from './call-errors.ts';

/** A BigtableError as data. */
export interface PlainError {
  readonly code: Code;
  readonly message: string;
  readonly retry: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

/** An error that a call or a task threw. */
export interface PlainThrown extends PlainError {
  readonly name: string;
  /** The stack of the throwing side. */
  readonly stack: string;
}

export function toPlainError({ code, message, retry, details }: BigtableError): PlainError {
  return { code, message, retry, details: detailsForCaller(details) };
}

export function fromPlainError({ code, message, retry, details }: PlainError): BigtableError {
  return new BigtableError(code, message, { retry, details });
}

/** Omits the cause, and details that cannot be cloned. */
export function toPlainThrown(thrown: unknown): PlainThrown {
  const { name, code, message, retry, details, stack } = toBigtableError(thrown);
  return { name, code, message, retry, details: cloneable(detailsForCaller(details)), stack: stack ?? '' };
}

/** The error as it was; the other side's stack is its cause's. */
export function fromPlainThrown(plain: PlainThrown): BigtableError {
  const { file, offset } = plain.details;
  if (plain.name === 'CorruptionError' && typeof file === 'string' && typeof offset === 'number') {
    const prefix = `${file}: corrupt at byte ${offset}: `;
    return new CorruptionError(
      file,
      offset,
      plain.message.startsWith(prefix) ? plain.message.slice(prefix.length) : plain.message,
      origin(plain),
    );
  }
  return new BigtableError(plain.code, plain.message, {
    retry: plain.retry,
    details: plain.details,
    cause: origin(plain),
  });
}

function origin(plain: PlainThrown): Error {
  const error = new Error(plain.message);
  error.stack = plain.stack;
  return error;
}

function cloneable(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  // a clone costs as much as the rest of the error, and most have no details
  if (Object.keys(details).length === 0) return {};
  try {
    return structuredClone(details);
  } catch {
    return {};
  }
}
