/**
 * The form of an Avro schema (Apache Avro 1.8.1, "Schema Declaration"): a whole file, which refers to nothing outside.
 */
import { type BigtableError, invalidArgument, quote } from '../../base/index.ts';

const PRIMITIVES = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string']);
const NAME = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/;
const MAX_DEPTH = 64;

/** INVALID_ARGUMENT, with `field` and what is wrong in it. */
export function checkAvroSchema(text: string, field: string): void {
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    throw invalidArgument(`${field} is not JSON`, { field });
  }
  new AvroSchema(field).check(schema, '', 0);
}

class AvroSchema {
  readonly #field: string;
  /** Full names of the types that were defined so far. */
  readonly #named = new Set<string>();

  constructor(field: string) {
    this.#field = field;
  }

  check(schema: unknown, namespace: string, depth: number): void {
    if (depth > MAX_DEPTH) throw this.#wrong(`is nested deeper than ${MAX_DEPTH}`);
    if (typeof schema === 'string') return this.#checkReference(schema, namespace);
    if (Array.isArray(schema)) {
      for (const each of schema) {
        if (Array.isArray(each)) throw this.#wrong('has a union inside a union');
        this.check(each, namespace, depth + 1);
      }
      return;
    }
    if (!isObject(schema)) throw this.#wrong(`has ${shown(schema)} in place of a type`);
    this.#checkObject(schema, namespace, depth);
  }

  #checkObject(schema: Readonly<Record<string, unknown>>, namespace: string, depth: number): void {
    switch (schema.type) {
      case 'array':
        return this.check(schema.items, namespace, depth + 1);
      case 'map':
        return this.check(schema.values, namespace, depth + 1);
      case 'record':
      case 'error':
        return this.#checkRecord(schema, this.#define(schema, namespace), depth);
      case 'enum': {
        this.#define(schema, namespace);
        const { symbols } = schema;
        if (!Array.isArray(symbols) || symbols.some((symbol) => typeof symbol !== 'string' || !NAME.test(symbol)))
          throw this.#wrong(`has an enum whose symbols are ${shown(symbols)}`);
        if (new Set(symbols).size !== symbols.length) throw this.#wrong('has an enum with a symbol that stands twice');
        return;
      }
      case 'fixed':
        this.#define(schema, namespace);
        if (typeof schema.size !== 'number' || !Number.isSafeInteger(schema.size) || schema.size < 0)
          throw this.#wrong(`has a fixed type whose size is ${shown(schema.size)}`);
        return;
      default:
        return this.check(schema.type, namespace, depth + 1);
    }
  }

  #checkRecord({ fields }: Readonly<Record<string, unknown>>, namespace: string, depth: number): void {
    if (!Array.isArray(fields)) throw this.#wrong(`has a record whose fields are ${shown(fields)}`);
    const names = new Set<unknown>();
    for (const each of fields) {
      const { name, type } = isObject(each) ? each : {};
      if (typeof name !== 'string' || !NAME.test(name) || name.includes('.') || names.has(name))
        throw this.#wrong(`has a record with a field that is called ${shown(name)}`);
      names.add(name);
      this.check(type, namespace, depth + 1);
    }
  }

  /** Defines the named type; returns the namespace of what is inside. */
  #define({ name, namespace: own }: Readonly<Record<string, unknown>>, outer: string): string {
    if (typeof name !== 'string' || !NAME.test(name)) throw this.#wrong(`has a type that is called ${shown(name)}`);
    if (own !== undefined && (typeof own !== 'string' || (own !== '' && !NAME.test(own))))
      throw this.#wrong(`has the namespace ${shown(own)}`);
    const fullName = fullNameOf(name, own ?? outer);
    if (this.#named.has(fullName)) throw this.#wrong(`defines ${fullName} twice`);
    this.#named.add(fullName);
    return fullName.includes('.') ? fullName.slice(0, fullName.lastIndexOf('.')) : '';
  }

  #checkReference(name: string, namespace: string): void {
    if (PRIMITIVES.has(name) || this.#named.has(fullNameOf(name, namespace))) return;
    throw this.#wrong(`refers to type ${quote(name, 100)}, which it does not define before that`);
  }

  #wrong(words: string): BigtableError {
    return invalidArgument(`${this.#field} ${words}`, { field: this.#field });
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fullNameOf(name: string, namespace: string): string {
  return name.includes('.') || namespace === '' ? name : `${namespace}.${name}`;
}

function shown(value: unknown): string {
  return value === undefined ? 'missing' : quote(JSON.stringify(value), 100);
}
