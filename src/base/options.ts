/**
 * Objects of options as callers give them. A name that is not known, and a bound that is undefined or null, are
 * refused: both would silently do more than was asked for.
 */
import { invalidArgument } from './errors.ts';
import { ownOf } from './record.ts';

/**
 * `bound`: limits what is read, deleted or kept, so it is given with a value or left out. `free`: undefined means left
 * out.
 */
export type OptionKind = 'bound' | 'free';

/** The known options by name. Write it as `satisfies OptionTable<SomeOptions>`, so that none is forgotten. */
export type OptionTable<T = Readonly<Record<string, unknown>>> = { readonly [K in keyof T]-?: OptionKind };

/**
 * INVALID_ARGUMENT where `given` is no object, has a name that `table` has not, or a bound that is undefined or null.
 * `what` names the call or thing that the options are for; `noun` is what one of them is called.
 */
export function checkOptions(
  given: unknown,
  table: Readonly<Record<string, OptionKind>>,
  what: string,
  noun = 'option',
): void {
  if (!isObjectOfNames(given)) {
    throw invalidArgument(
      `${what} must be an object with any of ${Object.keys(table).join(', ')}, not ${describeValue(given)}`,
    );
  }
  // inherited names are read like own ones
  for (const name in given as object) {
    const kind = ownOf(table, name);
    if (kind === undefined)
      throw invalidArgument(`${what}: there is no ${noun} "${name}"; there are ${Object.keys(table).join(', ')}`);
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (kind === 'bound' && (value === undefined || value === null)) {
      throw invalidArgument(`${what}: ${noun} ${name} must not be ${value}; leave it out where no bound is meant`);
    }
  }
}

/** Neither an array nor a Map nor anything else that keeps what it holds elsewhere than in named fields. */
export function isObjectOfNames(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.prototype.toString.call(value) === '[object Object]';
}

const MOST_CHARS = 64;

/** A value of any kind, in few words, for messages. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return value.constructor?.name ?? 'an object';
  if (typeof value === 'function') return 'a function';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return `${typeof value} ${text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text}`;
}
