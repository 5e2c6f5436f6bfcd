/**
 * Errors as plain cloneable data, for the seams that lie between threads: structured cloning keeps neither class nor code.
 */
import { BigtableError, type Code, CorruptionError, toBigtableError } from '../../base/index.ts';

export interface PlainError {
  readonly name: string;
  readonly code: Code;
  readonly message: string;
  readonly retry: boolean;
  readonly details: Readonly<Record<string, unknown>>;
  /** Where it was thrown, on the other side. */
  readonly stack: string;
}

/** Whatever was thrown. Details that cannot be cloned, and the cause, stay behind. */
export function toPlainError(thrown: unknown): PlainError {
  const { name, code, message, retry, details, stack } = toBigtableError(thrown);
  return { name, code, message, retry, details: cloneable(details), stack: stack ?? '' };
}

/** The error as it was; the other side's stack is its cause's. */
export function fromPlainError(plain: PlainError): BigtableError {
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

function origin(plain: PlainError): Error {
  const error = new Error(plain.message);
  error.stack = plain.stack;
  return error;
}

function cloneable(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return structuredClone(details);
  } catch {
    return {};
  }
}
