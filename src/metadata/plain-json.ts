/**
 * Versioned JSON: the encoding of rows of METADATA, the root file and schema files. Every document is an object with
 * `format` (its version) and `requires` (bits of features that a reader must know). A reader skips fields it does not
 * know; a bit it does not know makes it refuse.
 *
 * Byte strings are text in JSON, a character a byte. Reading checks every field it takes and fails with
 * CorruptionError.
 */
import { asBuffer, assert, CorruptionError, ownOf } from '../base/index.ts';

const FORMAT = 1;
/** Files are listed for parts of a tablet's range: a reader that ignores that shows rows that were deleted. */
export const FEATURE_CLIPS = 1;
/** The row is of a backup: a reader that ignores that gives it to a server, or removes it. */
export const FEATURE_BACKUP = 2;
/** The row names logs that hold changes for a change stream: a sweep that ignores that deletes them. */
export const FEATURE_PAST_OWNERS = 4;
/** The table is deleted and kept: a reader that ignores that removes its rows. */
export const FEATURE_KEPT_TABLE = 8;
/** The backup has policies: a reader that ignores them shows what they keep from callers. */
export const FEATURE_BACKUP_POLICIES = 16;
/** Feature bits this program knows. */
const KNOWN_FEATURES =
  FEATURE_CLIPS | FEATURE_BACKUP | FEATURE_PAST_OWNERS | FEATURE_KEPT_TABLE | FEATURE_BACKUP_POLICIES;

/** `requires`: feature bits that a reader of the document must know. */
export function encodeDocument(fields: Readonly<Record<string, unknown>>, requires = 0): Buffer {
  assert((requires & ~KNOWN_FEATURES) === 0, 'a document needs features that this program can read');
  assert(!('format' in fields) && !('requires' in fields), 'the fields of a document leave its version visible');
  return Buffer.from(JSON.stringify({ format: FORMAT, requires, ...fields }), 'utf8');
}

/** A JSON object whose fields are read one by one, each with a check. */
export class PlainObject {
  readonly #where: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(where: string, value: unknown) {
    this.#where = where;
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw this.wrong('the document', 'an object', value);
    this.#fields = value as Record<string, unknown>;
  }

  static parse(where: string, bytes: Uint8Array): PlainObject {
    let value: unknown;
    try {
      value = JSON.parse(asBuffer(bytes).toString('utf8'));
    } catch (error) {
      throw new CorruptionError(where, 0, 'not JSON', error);
    }
    const object = new PlainObject(where, value);
    const format = object.count('format');
    const requires = object.count('requires');
    if (format !== FORMAT)
      throw new CorruptionError(
        where,
        0,
        `format ${format} is not known to this version of Edubba, which reads ${FORMAT}`,
      );
    const unknown = BigInt(requires) & ~BigInt(KNOWN_FEATURES);
    if (unknown !== 0n)
      throw new CorruptionError(
        where,
        0,
        `needs features 0x${unknown.toString(16)} that this version of Edubba does not have`,
      );
    return object;
  }

  has(name: string): boolean {
    return this.#own(name) !== undefined;
  }

  text(name: string): string {
    const value = this.#own(name);
    if (typeof value !== 'string') throw this.wrong(name, 'a text', value);
    return value;
  }

  /** A byte string: no character above 0xFF. */
  bytes(name: string): string {
    const value = this.text(name);
    for (let i = 0; i < value.length; i++)
      if (value.charCodeAt(i) > 0xff) throw this.wrong(name, 'a byte string', value);
    return value;
  }

  flag(name: string): boolean {
    const value = this.#own(name);
    if (typeof value !== 'boolean') throw this.wrong(name, 'true or false', value);
    return value;
  }

  /** An integer from 0 to 2^53 - 1. */
  count(name: string): number {
    const value = this.#own(name);
    if (!Number.isSafeInteger(value) || (value as number) < 0) throw this.wrong(name, 'a count', value);
    return value as number;
  }

  /** A whole number that may be beyond 2^53 - 1, if it was a number already when it was written. */
  whole(name: string): number {
    const value = this.#own(name);
    if (!Number.isInteger(value)) throw this.wrong(name, 'a whole number', value);
    return value as number;
  }

  oneOf<T extends string>(name: string, choices: readonly T[]): T {
    const value = this.#own(name);
    if (!choices.includes(value as T)) throw this.wrong(name, `one of ${choices.join(', ')}`, value);
    return value as T;
  }

  texts(name: string): string[] {
    const value = this.#own(name);
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
      throw this.wrong(name, 'a list of texts', value);
    return value;
  }

  object(name: string): PlainObject {
    return new PlainObject(`${this.#where}, ${name}`, this.#own(name));
  }

  objects(name: string): PlainObject[] {
    const value = this.#own(name);
    if (!Array.isArray(value)) throw this.wrong(name, 'a list', value);
    return value.map((item, i) => new PlainObject(`${this.#where}, ${name}[${i}]`, item));
  }

  /**
   * The object's own fields as a record, each made by `read`. It has no prototype, so that a family may be named
   * `constructor`.
   */
  record<T>(read: (object: PlainObject, name: string) => T): Record<string, T> {
    const out: Record<string, T> = Object.create(null);
    for (const name of Object.keys(this.#fields)) out[name] = read(this, name);
    return out;
  }

  wrong(name: string, expected: string, value: unknown): CorruptionError {
    return new CorruptionError(
      this.#where,
      0,
      `${name} should be ${expected}, not ${JSON.stringify(value)?.slice(0, 80)}`,
    );
  }

  #own(name: string): unknown {
    return ownOf(this.#fields, name);
  }
}
