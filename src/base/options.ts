/**
 * Checks of option objects. An unknown name, and a bound that is undefined or null, are refused: both would silently do
 * more than was requested.
 */
import { BigtableError, Code, invalidArgument, toBigtableError } from './errors.ts';
import { ownOf } from './record.ts';
import { didYouMean } from './similar.ts';

/**
 * `bound`: limits a read, a deletion or a retention, so it has a value or is left out. `free`: undefined means left
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
  try {
    // inherited names are read like own ones
    for (const name in given as object)
      checkMember(name, (given as Readonly<Record<string, unknown>>)[name], { table, what, noun });
  } catch (error) {
    throw error instanceof BigtableError ? error : unreadable(what, error);
  }
}

interface Members {
  readonly table: Readonly<Record<string, OptionKind>>;
  readonly what: string;
  readonly noun: string;
}

function checkMember(name: string, value: unknown, { table, what, noun }: Members): void {
  const kind = ownOf(table, name);
  if (kind === undefined) throw invalidArgument(`${what}: ${unknownName(name, Object.keys(table), noun)}`);
  if (kind === 'bound' && (value === undefined || value === null)) {
    throw invalidArgument(`${what}: ${noun} ${name} must not be ${value}; leave it out where no bound is meant`);
  }
}

/** An error for a caller's value that has a getter, or is a proxy, that throws. */
export function unreadable(what: string, thrown: unknown): BigtableError {
  return new BigtableError(Code.INVALID_ARGUMENT, `${what} cannot be read: ${toBigtableError(thrown).message}`, {
    cause: thrown,
  });
}

/** A message that names the unknown option, a similar one, and all known ones. */
function unknownName(name: string, known: readonly string[], noun: string): string {
  return `unknown ${noun} ${JSON.stringify(shortened(name))}${didYouMean(name, known)}; there are ${known.join(', ')}`;
}

/** True for an object whose content is in named fields: no array, Map or the like. */
export function isObjectOfNames(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return Object.prototype.toString.call(value) === '[object Object]';
  } catch {
    return false;
  }
}

const MAX_CHARS = 64;

function shortened(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text;
}

/** A value of any kind, in few words, for messages. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object') return describeObject(value);
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return `${typeof value} ${shortened(text)}`;
}

/** A value for messages that say what is expected: a primitive value unchanged. */
export function plainText(value: unknown): string {
  return typeof value === 'object' ? describeValue(value) : shortened(String(value));
}

function describeObject(value: object): string {
  try {
    if (Array.isArray(value)) return `an array of ${value.length}`;
    if (value instanceof Promise) return 'a promise (is an await missing?)';
    const { name } = value.constructor ?? {};
    return typeof name === 'string' && name !== '' && name !== 'Object' ? shortened(name) : 'an object';
  } catch {
    return 'an object that cannot be read';
  }
}
