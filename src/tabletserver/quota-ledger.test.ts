import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { TableSchema } from '../model/index.ts';
import { FamilyBytes, QuotaLedger } from './quota-ledger.ts';

const FAMILIES = ['a', 'b', 'constructor'];
type Bytes = Readonly<Record<string, number>>;

function bytesOf(bytes: Bytes): FamilyBytes {
  const all = new FamilyBytes();
  for (const [family, count] of Object.entries(bytes)) all.add(family, count);
  return all;
}

function schemaOf(table: number | undefined, families: Bytes): TableSchema {
  const limited = (name: string): [string, { name: string; quotaBytes?: number }] => {
    const quotaBytes = Object.hasOwn(families, name) ? families[name] : undefined;
    return [name, { name, ...(quotaBytes !== undefined && { quotaBytes }) }];
  };
  return {
    name: 't',
    id: '00000010',
    granularity: 'micros',
    deletionProtection: false,
    families: Object.fromEntries(FAMILIES.map(limited)),
    ...(table !== undefined && { quotaBytes: table }),
  };
}

const amount = fc.integer({ min: 0, max: 20 });
const amounts = fc.dictionary(fc.constantFrom(...FAMILIES), amount, { noNullPrototype: true });
type Step =
  | { readonly kind: 'write'; readonly bytes: Bytes }
  | { readonly kind: 'begin' }
  | { readonly kind: 'end'; readonly bytes: Bytes }
  | { readonly kind: 'limit'; readonly table: number | undefined; readonly families: Bytes };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: amounts.map((bytes): Step => ({ kind: 'write', bytes })) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'begin' }) },
  { weight: 1, arbitrary: amounts.map((bytes): Step => ({ kind: 'end', bytes })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }), amounts)
      .map(([table, families]): Step => ({ kind: 'limit', table, families })),
  },
);

/** Every write and count in a list: what is taken is added up from it each time. */
class PlainLedger {
  #counted: Bytes = {};
  #writes: { readonly bytes: Bytes; readonly sinceCount: number }[] = [];
  #counts = 0;
  /** The count whose writes are in what was counted last. */
  #from = 0;

  begin(): void {
    this.#counts++;
  }

  end(bytes: Bytes): void {
    this.#counted = bytes;
    this.#from = this.#counts;
  }

  used(families: readonly string[]): number {
    const of = (bytes: Bytes): number =>
      families.reduce((sum, name) => sum + (Object.hasOwn(bytes, name) ? bytes[name]! : 0), 0);
    return this.#writes
      .filter(({ sinceCount }) => sinceCount >= this.#from)
      .reduce((sum, { bytes }) => sum + of(bytes), of(this.#counted));
  }

  /** The families whose quota is exceeded, `undefined` for the table's. */
  exceeded(table: number | undefined, limits: Bytes, bytes: Bytes): (string | undefined)[] {
    const added = Object.values(bytes).reduce((sum, each) => sum + each, 0);
    if (added === 0) return [];
    const over: (string | undefined)[] = FAMILIES.filter(
      (name) =>
        Object.hasOwn(limits, name) &&
        Object.hasOwn(bytes, name) &&
        bytes[name]! > 0 &&
        this.used([name]) + bytes[name]! > limits[name]!,
    );
    if (table !== undefined && this.used(FAMILIES) + added > table) over.push(undefined);
    return over;
  }

  write(bytes: Bytes): void {
    this.#writes.push({ bytes, sinceCount: this.#counts });
  }
}

describe('what a table with a quota takes', () => {
  test('is what was counted last and what was admitted since that count began, and no more is admitted', () => {
    let [refusals, admissions] = [0, 0];
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const ledger = new QuotaLedger();
        const plain = new PlainLedger();
        let [table, limits]: [number | undefined, Bytes] = [50, { a: 30 }];
        for (const each of steps) {
          if (each.kind === 'begin') {
            ledger.countBegins();
            plain.begin();
          } else if (each.kind === 'end') {
            ledger.counted(bytesOf(each.bytes));
            plain.end(each.bytes);
          } else if (each.kind === 'limit') [table, limits] = [each.table, each.families];
          else {
            const over = plain.exceeded(table, limits, each.bytes);
            const exceeded = ledger.admit(schemaOf(table, limits), bytesOf(each.bytes));
            assert.equal(exceeded === undefined, over.length === 0);
            if (exceeded === undefined) {
              plain.write(each.bytes);
              admissions++;
            } else {
              const { family, quotaBytes, usedBytes } = exceeded;
              assert.ok(over.includes(family), `${family} is exceeded`);
              assert.equal(quotaBytes, family === undefined ? table : limits[family]);
              assert.equal(usedBytes, plain.used(family === undefined ? FAMILIES : [family]));
              refusals++;
            }
          }
          for (const family of FAMILIES) assert.equal(ledger.usedBytes(family), plain.used([family]));
          assert.equal(ledger.usedBytes(), plain.used(FAMILIES));
        }
      }),
    );
    assert.ok(refusals > 50 && admissions > 50, `${refusals} refusals, ${admissions} admissions`);
  });

  test('is not known before the first count, and less than nothing is a bug', () => {
    const ledger = new QuotaLedger();
    assert.equal(ledger.isKnown, false);
    ledger.counted(new FamilyBytes());
    assert.equal(ledger.isKnown, true);
    assert.throws(() => bytesOf({ a: -1 }), /a family takes no less than nothing/);
  });
});
