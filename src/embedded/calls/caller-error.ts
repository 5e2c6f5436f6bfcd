/**
 * The error of a failed call for its caller: a BigtableError whose stack continues to the caller's line, and which
 * names tables as the caller does.
 *
 * An error is made far from the caller, and often for several of them: one failed write of the log fails every mutation
 * in it. So each caller gets a copy. The caller's lines come from the engine's own trace of who awaits whom, taken when
 * the call fails: a call that succeeds costs nothing (docs/decisions/0028-the-library-explains-itself.md).
 */
import { BigtableError, toBigtableError } from '../../base/index.ts';
import type { KeepAlive } from '../../boot/index.ts';
import { inOwnWords } from '../values/names.ts';

/**
 * The outcome of the work for the caller who awaits it; the process stays alive meanwhile. The promise must go to the
 * caller unchanged, or through async functions: a second listener (`then`, `catch`) would hide the await.
 */
export async function forCaller<T>(work: Promise<T>, parent: string, keepAlive?: KeepAlive): Promise<T> {
  keepAlive?.hold();
  try {
    return await work;
  } catch (error) {
    throw callersError(error, parent);
  } finally {
    keepAlive?.release();
  }
}

/** A copy of the error with the stack lines of its caller, who called or awaits this. */
export function callersError(thrown: unknown, parent: string): BigtableError {
  const error = toBigtableError(thrown);
  const message = inOwnWords(error.message, parent);
  const frames = framesOf(error);
  const known = new Set(frames.map(withoutAsync));
  const more = framesOf(new Error()).filter((frame) => !OWN.test(frame) && !known.has(withoutAsync(frame)));
  const copy = new Error(message);
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object);
  Object.defineProperties(copy, {
    ...Object.getOwnPropertyDescriptors(error),
    message: hidden(message),
    stack: hidden([`${error.name}: ${message}`, ...frames, ...more].join('\n')),
  });
  return copy as BigtableError;
}

function hidden(value: string): PropertyDescriptor {
  return { value, writable: true, configurable: true, enumerable: false };
}

const FRAME = /^ {4}at /;
/** Frames that only wait for the caller say nothing. */
const OWN = /^ {4}at (async )?(callersError|forCaller|(\w+\.)?#runForCaller) /;

function framesOf({ stack }: Error): string[] {
  return typeof stack === 'string' ? stack.split('\n').filter((line) => FRAME.test(line)) : [];
}

function withoutAsync(frame: string): string {
  return frame.replace('    at async ', '    at ');
}

/**
 * For one failure of many: its own stack, in which every failure of a batch is like the other, is not worth its cost.
 */
export function renamed(error: BigtableError, parent: string): BigtableError {
  const { code, message, retry, details, cause } = error;
  return new BigtableError(code, inOwnWords(message, parent), { retry, details, cause });
}
