/** The operating system's errors as errors of the file system. */
import { BigtableError, Code } from '../../base/index.ts';

const CODES: Readonly<Record<string, Code>> = {
  ENOENT: Code.NOT_FOUND,
  EEXIST: Code.ALREADY_EXISTS,
  ENOTEMPTY: Code.ALREADY_EXISTS,
  ENOSPC: Code.RESOURCE_EXHAUSTED,
  EDQUOT: Code.RESOURCE_EXHAUSTED,
  EACCES: Code.PERMISSION_DENIED,
  EPERM: Code.PERMISSION_DENIED,
  EROFS: Code.PERMISSION_DENIED,
  EIO: Code.UNAVAILABLE,
  EAGAIN: Code.UNAVAILABLE,
  EBUSY: Code.UNAVAILABLE,
  EINTR: Code.UNAVAILABLE,
  EMFILE: Code.RESOURCE_EXHAUSTED,
  ENFILE: Code.RESOURCE_EXHAUSTED,
  ENOMEM: Code.RESOURCE_EXHAUSTED,
  ESTALE: Code.UNAVAILABLE,
  ETIMEDOUT: Code.UNAVAILABLE,
};

/** The system's name of the error, e.g. "ENOENT"; '' for anything else that was thrown. */
export function errnoOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** True when the file is not there. */
export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errnoOf(error));
}

/** True when the disk has no space: some bytes of a write may have been written. */
export function isOutOfSpace(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(errnoOf(error));
}

export function isOutOfDescriptors(error: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes(errnoOf(error));
}

/**
 * True when a resource is lacking that may return: space, descriptors, memory, a disk that can be written to. A call
 * that failed so has made, opened and named nothing.
 */
export function isLackOfResources(error: unknown): boolean {
  return CODES[errnoOf(error)] === Code.RESOURCE_EXHAUSTED || errnoOf(error) === 'EROFS';
}

/** The error as a BigtableError; `what` names the file and the operation. Errors of Edubba are returned unchanged. */
export function systemError(error: unknown, what: string): BigtableError {
  if (error instanceof BigtableError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new BigtableError(CODES[errnoOf(error)] ?? Code.INTERNAL, `${what}: ${message}`, { cause: error });
}

/** Awaits the call and converts its failure. */
export async function systemCall<T>(what: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw systemError(error, what);
  }
}
