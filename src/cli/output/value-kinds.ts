/**
 * The kind of the values of a column: text, number or base64. The table's schema and the reader's `int64=` decide,
 * never the bytes of a value, so a column has one type.
 */
import { invalidArgument } from '../../base/index.ts';
import type { TableSchema } from '../../model/index.ts';
import { UsageError } from './usage-error.ts';

export type ValueKind = 'text' | 'int64' | 'sketch';

export class ValueKinds {
  readonly #families = new Map<string, ValueKind>();
  /** FAMILY:COLUMN, the column's bytes in latin1. */
  readonly #columns = new Set<string>();

  /** `int64`: the reader's list, FAMILY:COLUMN or FAMILY: for a whole family, separated by commas. */
  constructor(schema: TableSchema, int64 = '') {
    for (const { name, valueType } of Object.values(schema.families)) {
      const aggregate = valueType?.aggregate;
      if (aggregate !== undefined) this.#families.set(name, aggregate.kind === 'hll' ? 'sketch' : 'int64');
    }
    for (const word of int64.split(',').filter((one) => one !== '')) this.#add(word, schema);
  }

  of(family: string, qualifier: Buffer): ValueKind {
    const kind = this.#families.get(family);
    if (kind !== undefined || this.#columns.size === 0) return kind ?? 'text';
    return this.#columns.has(`${family}:${qualifier.toString('latin1')}`) ? 'int64' : 'text';
  }

  #add(word: string, schema: TableSchema): void {
    const at = word.indexOf(':');
    if (at <= 0) throw new UsageError(`int64=: "${word}" must be FAMILY:COLUMN, or FAMILY: for a whole family`);
    const family = word.slice(0, at);
    if (!Object.hasOwn(schema.families, family)) throw invalidArgument(`int64=: the table has no family "${family}"`);
    if (this.#families.get(family) === 'sketch')
      throw invalidArgument(`int64=: family "${family}" holds sketches of distinct values, not int64`);
    if (at === word.length - 1) this.#families.set(family, 'int64');
    else this.#columns.add(`${family}:${Buffer.from(word.slice(at + 1)).toString('latin1')}`);
  }
}
